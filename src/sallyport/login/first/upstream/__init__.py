"""The first factor `radius`: another RADIUS server, to which everything goes (RFC 2865 section 2.3), EAP too.

    checker  a login: the question, and the result of its answer
    rewrite  a request and an answer as they look on the other hop: hidden with its secret, and with its names
    home     a home server and its sockets; each has 256 identifiers
    link     RADIUS over TLS to a home server (RFC 6614)
    health   whether a home server is alive: states and times as FreeRADIUS has them; no socket, no clock
    pool     which home server is asked; which question waits for which answer; failover

Retransmits of the NAS drive ours: a request is sent again when the NAS sends it again, as the same packet, so that the
server behind sees what it would have seen without us. No login waits longer than `pool.LIMIT_S`, or the response window
where that is longer.

A login that waits costs its parked task and an entry under its identifier, and no task or timer of its own on this
side: a few times a second, the pool looks for windows that are over.
"""
