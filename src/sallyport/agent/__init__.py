"""The agents: programs near a directory, or on a machine, that the service does not reach. They send HTTPS requests to
the service, and do not depend on store and web.

Both have one file (TOML, mode 0600), made by `sallyport agent key create`, with the service's address and an enrolment
key. At its first start an agent makes a key of its own, sends the hash of the key to the service, and replaces the
enrolment key in the file by the key. It makes the next key long before this one expires. The file holds a valid key at
every moment.

The modules that both share need the standard library alone, so that an agent starts at once and stays small:

file         the configuration file, read and rewritten; the lock of the state
service      a client of the service over one HTTPS connection; the back-off after a failure
keys         the agent's own key: enrolment and renewal

endpoint     the agent of a machine's accounts
directory    the agent of a directory
templates    the files that agents start with, and their systemd units
cli          `sallyport agent install`, `uninstall` and `key`
"""
