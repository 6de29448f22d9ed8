"""The sockets of RADIUS, over UDP and over TLS, and the exchange from a datagram to its answer.

udp        reads up to 64 datagrams when a socket is readable, and passes them on by plain function calls
radsec     the TLS connections of peers; a certificate identifies each peer
tls        the TLS context of RadSec; it requires a client certificate
exchange   turns a datagram into a decided login for the journal, and sends the answer after the commit
pending    limits pending requests; starts tasks for logins that must wait, a few at a time; delays rejects
senders    a table of unknown and unproven senders, of limited size
causes     tells why a sender gets no answer, and what to do
"""
