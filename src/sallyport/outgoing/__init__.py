"""Connections that the service makes: to second factors, directories, upstream servers.

egress  which addresses may be connected to, and the limit of a tenant's sockets
pool    connections of HTTP clients that obey it
http    HTTP clients, and one exchange with its limits
tls     TLS to servers that a tenant names
pem     keys and certificates that a tenant supplies, read at a bounded cost
fields  the types of what an admin configures: hosts, URLs, secrets
errors  what went wrong at the other end
"""
