"""The endpoint agent: accounts, groups, sudo, SSH keys and passwords of a Linux host, as the service's state says.

    poll > verify > plan > execute, one step after the other > rotate > report

Each pass compares the host with the state and plans the difference, so that it does not depend on the end of the last
pass: after a crash, a full disk or a lock the next pass continues. The memory has only what the host itself does not
show: the agent's own accounts, the handled orders, an unfinished rotation.

The agent is root among files of other users. Programs get argument lists and a fixed environment, passwords go over
standard input, names are checked before use, and files are written through directories that no other user can change.

    cli         the commands, each of which imports its own modules; wiring: builds the parts, and removes the accounts
    daemon      the loop; agent: one pass; service: the requests; identity: registration
    plan        the steps from host and state; change: of one account; executor: executes them by the host's programs
    accounts    the accounts of the host; files, processes: the means of changing them
    sudoers     rights; keys: SSH keys; discovery: the accounts for the service
    rotation    of passwords; passwords: generates and hashes them
    memory      of the agent, and the service's time
"""
