"""The agents: programs beside a directory, or on a machine, that the service does not reach. They send HTTPS requests
to the service, and know nothing of store and web.

Both have one file (TOML, mode 0600), made by `sallyport agent key create`, with the service's address and an enrolment
key. At its first start an agent makes a key of its own, tells the service its hash, and puts it into the file in the
enrolment key's place; long before it ends it makes the next. At every instant the file holds a key that is good.

The modules that both share need the standard library alone, so that an agent starts at once and stays small:

file         the configuration file, read and rewritten; the lock of the state
service      the service, asked over one HTTPS connection; the time to wait after a failure
keys         the agent's own key: enrolment and renewal

endpoint     the agent of a machine's accounts
directory    the agent of a directory
templates    the files that agents start with, and their systemd units
cli          `sallyport agent install`, `uninstall` and `key`
"""
