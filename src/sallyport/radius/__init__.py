"""The RADIUS protocol, sans-io: octets in, values out. The caller passes in time and secrets.

packet          decode requests, encode replies, and the keyed hashes that prove the sender of each
                (RFC 2865, 2866, 2869, 3579, 5997)
attributes      the numbers of attributes, and the layout of attributes in a packet (RFC 2865 section 5)
password        the method of an Access-Request (PAP, CHAP, MS-CHAP, EAP), User-Password and CHAP-Password
mschap          MS-CHAP and MS-CHAPv2 (RFC 2433, 2759); mschap_reply makes the answers (RFC 2548, 3079)
eap             EAP on the server's side (RFC 3748, 5216, 5281, 9190, 9427)
salted          keys and tunnel passwords of a reply: hide and open them, hide them again as a proxy (RFC 2548, 2868)
dynamic         disconnect or change a session: requests to its NAS, and their answers (RFC 5176)
retransmission  the times at which a request of the service is sent again or given up (RFC 5080)
duplicates      recent requests and their answers, to detect retransmissions (RFC 5080)
dictionary      names and types of attributes, for people; values converts their values

The codec is our own for two reasons: it must not change octets, and it must refuse a packet with any wrong length.
pyrad's Dictionary gives the names. No module here opens a socket or a database.
"""
