"""Modules that every area may import, and that import no area.

config, setting_values  the settings, and the types of their values
limits                  the limits of a tenant
errors                  every error that is raised on purpose, as one tree
validation, model       conversion of pydantic's errors to `errors.Invalid`; the base class of all pydantic models
wire, agentwire         JSON to dataclasses; the messages between service and endpoint agents
command                 the interface of command line and control socket for the commands of an area
actor                   the token or user that makes a change, for the audit trail
secret, sha512crypt     secrets in memory and random names; password hashes for /etc/shadow
text, addresses         canonical forms, for comparison
clock, periodic         time in microseconds; repeated work
bounded, fair           tables and queues with a share for each owner
disk, tls               files written as a whole; the server side of TLS connections
log, notify             the log; messages to systemd
"""
