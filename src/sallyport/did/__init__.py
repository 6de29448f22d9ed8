"""Decentralized identity: issuers and holders with DIDs, schemas, credentials that can be revoked, and who holds them.

crypto         the formats, sans-io: keys, DIDs, tokens, proofs, status lists
dids           issuers and holders, and the keys that are kept here
schemas        what a credential may say
credentials    issued, listed, revoked; their status lists
wallets        where people keep their credentials
held           credentials as wallets hold them, and as endpoint users have them
presentations  what a holder is asked to show, and shows; the wallet as second factor
holder         `sallyport wallet`: a wallet that knows the service by HTTP alone
area, holding  the issuer's and the holder's side, put together over a store
"""
