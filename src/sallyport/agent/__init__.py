"""The agents: what runs beside a directory or on a machine that the service does not reach, and asks the service by
HTTPS. They know nothing of store and web.

Both have one file (TOML, mode 0600), made by `sallyport agent key create`, with the service's address and an enrolment
key. At its first start an agent makes a key of its own, tells the service its hash, and puts it into the file in the
enrolment key's place; long before it ends it makes the next. At every instant the file holds a key that is good.

What both share rests on the standard library alone, so that an agent starts at once and stays small:

file         the configuration file, read and rewritten
disk         files that are there as a whole or not at all
service      the service, asked over one HTTPS connection
keys         the agent's own key: enrolment and renewal
backoff      how long to wait after a failure
notify       systemd: ready, alive, status, stopping

endpoint     the agent of a machine's accounts
directory    the agent of a directory
templates    the files that agents start with
units        their systemd units; install_cli writes both
key_cli      `sallyport agent key`
"""
