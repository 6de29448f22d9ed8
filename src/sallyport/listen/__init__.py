"""Sockets: RADIUS over UDP and over TLS, and the command line's Unix socket.

udp        takes up to 64 datagrams at each wake-up and hands them on by plain function calls
radsec     the connections of peers that are known by their certificates
tls        what a TLS connection is, over a context that asks for a certificate
exchange   from a datagram to a decided entry in the journal, and from there to the answer
pacing     logins that have to wait become a task each, in turns; rejects are held back for a while
waiting    the limit of waiting requests, shared between clients and tenants
counts     the metrics of an exchange
senders    a bounded count of senders that are unknown or not proven
causes     why a sender gets no answer, and what to do about it
control    the socket of the command line
"""
