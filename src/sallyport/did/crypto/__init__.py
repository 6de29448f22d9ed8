"""The formats of decentralized identity, sans-io: text in, values out; no store, no network, the time passed in.

encoding   base64url, base58btc, JSON without duplicate names, and its canonical form
keys       Ed25519, P-256 and secp256k1, as JWK and as multikey
documents  DIDs and their documents: the keys and their purposes
jws        signed compact tokens
vc         credentials and presentations as JWT
proofs     documents with a proof in them: eddsa-jcs-2022, ecdsa-jcs-2019

A verifier first parses a token (`jws.parse`). It then resolves the DID in the token, and passes the DID's document to
`vc`.

The tokens are implemented in a few lines over `cryptography`, without a JOSE library. Their main task is to refuse
tokens (algorithms other than the key's, `crit`, duplicate names, padding), and proofs need the bare keys anyway.
"""
