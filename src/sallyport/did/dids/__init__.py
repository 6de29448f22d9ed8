"""DIDs of issuers and of holders, with their keys.

The service makes an issuer's key and seals it under the master key. A holder's key either stays in the wallet, which
sends only the public key, or is made by the service. The service then seals it twice: to the wallet's own key, and
under the master key. So neither a copy of the store with the master key nor the walletKey alone can sign for the
holder.

The service publishes the document of a did:web (`public`), and can replace its key. The former key stays in the
document, so that its signatures can still be verified. It is not accepted for logins. A deleted issuer is not listed
and signs no more. Its signatures can still be verified and its credentials revoked, since a did:key cannot be
withdrawn.

`resolver` finds the document of a DID: in the DID itself, in the store, or over the network.
"""
