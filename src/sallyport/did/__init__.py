"""Decentralized identity: issuers and holders with DIDs, schemas, credentials that can be revoked, and who holds them.

crypto   the formats, sans-io: keys, DIDs, tokens, proofs, status lists
"""
