"""The first factor `radius`: another RADIUS server that gets every request (RFC 2865 section 2.3), EAP too.

    checker  a login: the question, and the result of its answer
    rewrite  a request and an answer as they are on the other hop: hidden with its secret, and with its names
    home     a home server and its sockets; each has 256 identifiers
    link     RADIUS over TLS to a home server (RFC 6614)
    health   the state of a home server: states and times as in FreeRADIUS; no socket, no clock
    pool     choice of the home server, matching of questions and answers, failover

Retransmissions of the NAS cause ours: a request is sent again when the NAS sends it again, as the same packet, so that
the server sees the same packets as without Sallyport. No login waits longer than `pool.LIMIT_S`, or the response window
if that is longer.

A waiting login costs its parked task and an entry under its identifier, and no task or timer of its own on this side: a
few times a second, the pool searches for expired windows.
"""
