"""Decentralized identity: issuers and holders with DIDs, schemas, credentials that can be revoked, and wallets.

crypto         the formats, sans-io: keys, DIDs, tokens, proofs
dids           issuers and holders, and the keys that the service stores
credentials    credentials, their schemas and status lists
wallets        the wallets of holders, and the credentials of endpoint users
presentations  requests for a credential, and their answers; the wallet as second factor
holder         `sallyport wallet`: a wallet that uses only the HTTP API of the service
public         documents that are published without a token
area           all services of this package
"""
