"""DIDs of issuers and of holders, with their keys.

An issuer's key is made here and sealed under the master key. A holder's is either kept by its wallet, which sent the
public half, or made here and sealed twice: to the wallet's own key, then under the master key, so that neither a copy
of the store with the master key nor the walletKey alone signs for the holder.

A did:web is served by this service (`public`), and its key can be replaced: the one before stays in the document for
what it has signed, and may not log in any more. To delete an issuer takes it off the lists and ends its signing; what
it has signed can still be verified, and revoked, since nobody can take a did:key back.
"""
