"""Decentralized identity: issuers and holders with DIDs, schemas, credentials that can be revoked, and wallets.

crypto         the formats, sans-io: keys, DIDs, tokens, proofs
dids           issuers and holders, and the keys that are kept here
credentials    credentials, their schemas and status lists
wallets        the wallets of holders, and the credentials of endpoint users
presentations  requests for a credential, and their answers; the wallet as second factor
holder         `sallyport wallet`: a wallet that knows the service by HTTP alone
public         the documents that need no token
area           all parts, put together over a store
"""
