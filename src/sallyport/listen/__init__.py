"""Sockets: RADIUS over UDP and over TLS, and the command line's Unix socket.

udp        reads up to 64 datagrams at each wake-up and hands them on by plain function calls
radsec     the connections of peers, which a certificate identifies
tls        the TLS context of RadSec, which asks for a certificate
exchange   from a datagram to a decided entry in the journal, and from there to the answer
pacing     tasks for the logins that wait, in turns; the delay of rejects
waiting    the limit of waiting requests, shared between clients and tenants
counts     the metrics of an exchange
senders    a bounded table of unknown and unproven senders
causes     the cause and the remedy for each sender without an answer
control    the socket of the command line
"""
