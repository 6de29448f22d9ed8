"""Organizations, their tenants, access tokens, and the API keys of agents.

The store has only the SHA-256 hash of a token. The token itself is shown once, when it is created. Each request looks
up its token by this hash, with a bounded cache that is never stale. A revocation in this process removes the record
from the cache before the call returns. `forget` empties the cache after another process has changed the store.

    authentication  TokenRecord, the cache, and the look-up of tokens and keys for the package web
    guesses         the rate limit for wrong keys
    passwords       the slow hash of passwords and codes that people type
    repo            Tenant, TokenQuery, and the SQL of tenants and tokens
    service         Tenancy: tenants and tokens
    keys            API keys of agents
"""
