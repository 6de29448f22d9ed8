"""Connections that the service makes: to second factors, directories, upstream servers.

egress  which addresses may be connected to
pool    connections of HTTP clients that obey it
http    HTTP clients, and one exchange with its limits
sockets the limit of a tenant's connections
fields  the types of what an admin configures: hosts, URLs, secrets
errors  what went wrong at the other end
"""
