"""Authorities of a tenant: they sign the client certificates with which people and machines log in by EAP-TLS.

    authority   an authority with its trust anchors, its scope, its names and its settings of revocation
    bundle      reads certificates in PEM, and refuses what cannot be an anchor
    overlaps    finds authorities that may speak for the same users
    service     keeps the authorities of all tenants in memory; a change applies to the next login
    repo        SQL

An authority belongs to one tenant, and speaks for users of its domains alone. A domain with authorities of its own
does not trust the authorities of the setting `eap_ca`, unless the domain says so. The authorities of domains are never
trusted for RadSec, for HTTPS, or for a directory.

A bundle may be a root, a root with intermediates, or an issuing authority alone. A certificate that another one of the
bundle has signed is an intermediate, and all others are trust anchors. The authority of a login follows from the
verified chain: from the SHA-256 of the public key of a certificate of its bundle, and never from the issuer's name,
which any authority can copy. Therefore two authorities of a domain never share a key.

An authority says who the holder of a certificate is, so the scope limits for whom it may speak: the kinds of holders,
their realms, their groups, and the prefix of their SIDs. What is outside the scope is refused, whatever the certificate
contains.
"""
