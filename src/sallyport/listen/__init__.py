"""Sockets: RADIUS over UDP and over TLS, and the command line's Unix socket.

udp        reads up to 64 datagrams at each wake-up and passes them on by plain function calls
radsec     the TLS connections of peers, which are identified by their certificates
tls        the TLS context of RadSec, which requires a client certificate
exchange   processes a datagram into a decided entry for the journal, and then sends its answer
pacing     starts tasks for logins that must wait, in turns; delays rejects
waiting    the limit of pending requests, shared fairly between clients and tenants
counts     the metrics of an exchange
senders    a bounded table of unknown and unproven senders
causes the causes why a sender gets no answer, with their remedies control    the socket of the command line
"""
