"""The modules at the lowest level: every package may import them, and they import no other package.

errors                every error that is raised on purpose, as one tree
validation, model     conversion of pydantic's errors to `errors.Invalid`; the base class of all pydantic models
wire, spelling        JSON to dataclasses; names in snake_case and camelCase
answer                how answers show the fields of a row, written once in its class
actor                 the token or user that makes a change, for the audit trail
secret, sha512crypt   secrets in memory and random tokens; password hashes for /etc/shadow
text, addresses, mac  normalized texts, addresses and MAC addresses, for comparison
clock, periodic       time in microseconds; repeated work
bounded, fair         tables and queues in which each owner has a fair share
tls, log              the server side of TLS connections; the log
"""
