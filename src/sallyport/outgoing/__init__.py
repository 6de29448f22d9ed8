"""The connections that the service makes to second factors, directories and upstream servers.

egress  the allowed addresses, and the limit of a tenant's sockets
pool    connections of HTTP clients to allowed addresses
http    HTTP clients, and one exchange with its limits
openid  sign-in with identity providers
mail    mail to people
tls     TLS to servers that a tenant configures
pem     keys and certificates that a tenant supplies, read at a bounded cost
fields  the types of configured values: hosts, URLs, secrets
errors  errors of connections, keys and certificates
"""
