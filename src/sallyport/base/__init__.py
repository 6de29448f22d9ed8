"""The modules at the lowest level: every package may import them, and they import no other package.

config, setting_values  the settings, and the types of their values
limits                  the limits of a tenant
errors                  every error that is raised on purpose, as one tree
validation, model       conversion of pydantic's errors to `errors.Invalid`; the base class of all pydantic models
wire, agentwire         JSON to dataclasses; the messages between service and endpoint agents
command                 how a package adds commands to the command line and the control socket
actor                   the token or user that makes a change, for the audit trail
secret, sha512crypt     secrets in memory and random tokens; password hashes for /etc/shadow
text, addresses         normalized texts and addresses, for comparison
clock, periodic         time in microseconds; repeated work
bounded, fair           tables and queues in which each owner has a fair share
disk, tls               atomic replacement of files; the server side of TLS connections
log, notify             the log; messages to systemd
"""
