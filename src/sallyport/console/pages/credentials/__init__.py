"""Pages about decentralized identity.

dids           issuers and holders
schemas        the claims that credentials have
credentials    credentials, from their issue to their revocation
wallets        the wallets of people
presentations  requests for a credential
finding        functions that find DIDs, schemas and wallets for these pages
"""
