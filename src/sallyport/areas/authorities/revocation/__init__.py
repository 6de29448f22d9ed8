"""Revocation of client certificates: lists (CRL, RFC 5280) and responders (OCSP, RFC 6960), which renew themselves.

    state       the rules of an authority, and the state of a certificate
    entries     the entries of a list, as a compact table of serial numbers
    lists       which list may be used, and what it says about a certificate
    ocsp        requests to a responder, and which responses count
    addresses   the HTTP exchanges with servers of lists, and with responders
    responders  the answers of responders in memory, and the pauses of dead responders
    revoked_repo  the certificates that a responder has called revoked, for all nodes and over restarts
    sources     the lists of all authorities in memory, on every node
    listing     the lists as the operations show them; `operations` declares these
    composition connects the parts, and has the rules of each authority
    fetching    the work of the leader: lists are fetched ahead of their end
    service     the check of a verified chain, for a login
    repo        SQL

A list or an answer counts only if the issuer of the certificate has signed it; the issuer is known by its key, because
any authority can copy a name. Addresses are taken only from an authority's settings and from certificates of a verified
chain. Otherwise any client could make the service send requests to addresses of its choice.

A state that is already known costs a login one look-up in a dictionary for each certificate.
"""
