"""The formats of decentralized identity. These modules turn text into values. They use no store, network or clock.

encoding   base64url, base58btc, JSON without duplicate names, and its canonical form
keys       Ed25519, P-256 and secp256k1, as JWK and as multikey
documents  DIDs and their documents: the keys and their purposes
jws        signed compact tokens
vc         credentials and presentations as JWT
proofs     documents that contain a proof: eddsa-jcs-2022, ecdsa-jcs-2019

A verifier first parses a token (`jws.parse`). It then resolves the DID in the token, and passes the DID's document to
`vc`.

The tokens are implemented in a few lines over `cryptography`, without a JOSE library. The main task of this code is to
refuse bad tokens: tokens whose algorithm does not belong to the key, and tokens with `crit`, duplicate names or
padding. Proofs sign with the keys directly, without a token.
"""
