"""Decentralized identity: issuers and holders with DIDs, schemas, credentials that can be revoked, and wallets.

crypto         the formats of keys, DIDs, tokens and proofs, without input and output
dids           issuers and holders, and the keys that the service stores
credentials    credentials, their schemas and their status lists
wallets        the wallets of holders, and the credentials of endpoint users
presentations  requests for a credential, and the answers of wallets; the wallet as second factor
holder         `sallyport wallet`: a wallet that uses only the HTTP API of the service
public         documents that are published without a token
area           creates all services of this package
"""
