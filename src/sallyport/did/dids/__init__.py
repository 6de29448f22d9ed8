"""DIDs of issuers and of holders, with their keys.

An issuer's key is made here and sealed under the master key. A holder's is either kept by its wallet, which sent the
public half, or made here and sealed twice: to the wallet's own key, then under the master key, so that neither a copy
of the store with the master key nor the walletKey alone signs for the holder.

A did:web is served by this service (`public`), and its key can be replaced: the key before stays in the document for
its signatures, and may not log in any more. A deleted issuer is off the lists and signs no more. Its signatures can
still be verified, and its credentials revoked, since a did:key cannot be withdrawn.

`resolver` finds the document of a DID: of itself, from the store, or over the network.
"""
