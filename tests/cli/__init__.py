"""The command line as people and scripts use it: the installed program, with and without a running service."""

TENANT = ("--org", "1", "--tenant", "1")
OTHER_TENANT = ("--org", "9", "--tenant", "4")
SECRET = "n0t-the-default-secret"
