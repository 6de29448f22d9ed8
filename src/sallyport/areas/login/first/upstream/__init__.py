"""The first factor `radius` forwards every request, including EAP, to another RADIUS server (RFC 2865 section 2.3).

    checker  forwards one login, and converts the answer to a result
    rewrite  encrypts a request or an answer with the secret of the next hop, and can remove the realm
    home     a home server and its sockets, each with 256 identifiers
    link     RADIUS over TLS to a home server (RFC 6614)
    health   whether a home server is alive, with the states and times of FreeRADIUS
    pool     selects the home server, matches answers to requests, fails over

The service retransmits a request only when the NAS retransmits it, and sends the same octets again. So the home server
gets the same traffic as without Sallyport. A login waits at most `pool.LIMIT_S`, or the response window if this is
longer.

A waiting login has no task and no timer. It is one entry in the pool, under its RADIUS identifier. The pool looks for
expired response windows a few times a second.
"""
