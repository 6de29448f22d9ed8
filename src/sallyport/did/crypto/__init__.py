"""The formats of decentralized identity, sans-io: text in, values out; no store, no network, the time passed in.

encoding   base64url, base58btc, JSON without duplicate names, and its canonical form
keys       Ed25519, P-256 and secp256k1, as JWK and as multikey
documents  DIDs and their documents: which key may do what
jws        signed compact tokens
vc         a credential and a presentation as JWT
proofs     a document with a proof in it: eddsa-jcs-2022, ecdsa-jcs-2019

A verifier parses a token first (`jws.parse`), resolves the DID that the token names, and gives the document to `vc`.
The tokens are our own few lines over `cryptography` and not a JOSE library: they exist for their refusals (algorithms
other than the key's, `crit`, duplicate names, padding), and a proof needs the bare keys anyway.
"""
