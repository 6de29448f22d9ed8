"""DIDs of issuers and of holders, with their keys.

The service makes an issuer's key and seals it under the master key. A holder's key either stays in the wallet, which
sends only the public key, or is made by the service. In the second case the service seals the key twice: to the
wallet's own key, and under the master key. So a signature for the holder needs the store, the master key and the
walletKey together.

The service publishes the document of a did:web (`public`), and can replace its key. The former key is kept in the
document, so that its signatures can still be verified, but it is not accepted for logins. A deleted issuer is not
listed and does not sign any more. Its signatures can still be verified, because a did:key cannot be withdrawn, and its
credentials can still be revoked.

`resolver` finds the document of a DID: in the DID itself, in the store, or over the network.
"""
