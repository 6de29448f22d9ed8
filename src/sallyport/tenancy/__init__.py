"""Organizations, their tenants, the access tokens that speak for a tenant, and the API keys of agents.

The store keeps only the SHA-256 of a token; the token is shown once, when it is made. A look-up is a read by that
hash, with a bounded cache in front that is exact: a revocation in this process drops the record before it returns, and
`forget` drops it when another process changed the store.

repo            Tenant, TokenRecord and their SQL
authentication  the cache; limits for wrong keys; tokens and keys together, as web asks for them
service         Tenancy: tenants and tokens
keys            API keys of agents
"""
