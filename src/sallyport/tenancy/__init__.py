"""Organizations, their tenants, the access tokens that speak for a tenant, and the API keys of agents.

The store keeps a token's SHA-256 and nothing else of it: the token is shown once, when it is made. Looking one up is
a read by that hash, with a bounded cache in front that is exact: a revocation in this process drops it before it
returns, and `forget` drops it when another process changed the store.

model           Tenant, TokenRecord
repo            the SQL
known           that cache
service         Tenancy: tenants and tokens; authenticates the requests of web
keys            API keys of agents
authentication  tokens and keys together, as web asks for them
commands        token.create, token.list, token.revoke for the command line; cli has the words around them
"""
