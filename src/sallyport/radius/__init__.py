"""The RADIUS protocol, sans-io: octets in, values out; time and secrets are passed in.

packet          decode what a client sent, encode what it gets, and the keyed hashes that prove the sender of either
                (RFC 2865, 2866, 2869, 3579, 5997)
attributes      the numbers of attributes, the walk over them, and their layout in a packet (RFC 2865 section 5)
password        the method of an Access-Request (PAP, CHAP, MS-CHAP, EAP), User-Password and CHAP-Password
mschap          MS-CHAP and MS-CHAPv2 (RFC 2433, 2759); mschap_reply makes the answers (RFC 2548, 3079)
eap             EAP on the server's side (RFC 3748, 5216, 5281, 9190, 9427)
salted          keys and tunnel passwords of a reply: hide, open, and hide again as a proxy (RFC 2548, 2868)
dynamic         disconnect or change a session: requests to its NAS, and their answers (RFC 5176)
retransmission  when a request of the service is sent again, and when it is given up (RFC 5080)
duplicates      recent datagrams and their answers (RFC 5080)
dictionary      names and types of attributes, for people; values codes what they hold

The codec is our own because octets must stay octets and a packet has to be refused for the slightest lie about its
lengths; pyrad's Dictionary is used for the names. Nothing here opens a socket or a database.
"""
