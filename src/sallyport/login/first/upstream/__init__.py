"""The first factor `radius`: another RADIUS server to which every request is forwarded (RFC 2865 section 2.3), also
EAP.

    checker  one login: the forwarded request, and the result of its answer
    rewrite  converts a request or answer for the other hop: encryption with its secret, and the user's name
    home     a home server and its sockets; each has 256 identifiers
    link     RADIUS over TLS to a home server (RFC 6614)
    health   the state of a home server, with states and times as in FreeRADIUS; no socket, no clock
    pool     selection of the home server, matching of answers to requests, failover

A request is retransmitted only when the NAS retransmits, as the same packet, so that the home server sees the same
traffic as without Sallyport. No login waits longer than `pool.LIMIT_S`, or than the response window if that is longer.

A waiting login has an entry under its RADIUS identifier, but no task or timer in the pool. Instead the pool searches
for expired response windows a few times a second.
"""
