"""The RADIUS protocol, sans-io: octets in, values out; time and secrets are passed in.

packet          decode what a client sent, encode what it gets (RFC 2865, 2866, 5997)
attributes      the numbers of attributes and the walk over them
authenticator   the keyed hashes that prove a packet's sender (RFC 2865, 2866, 2869, 3579)
password        User-Password and CHAP-Password
mschap          MS-CHAP and MS-CHAPv2 (RFC 2433, 2759); mschap_reply answers them (RFC 2548, 3079), md4 hashes for them
eap             EAP on the server's side: one file a method (RFC 3748, 5216, 5281, 9190, 9427)
salted          keys and tunnel passwords of a reply, hidden, opened, and hidden anew by a proxy (RFC 2548, 2868)
dynamic         disconnect a session or change it: what is asked of its NAS, and what that answers (RFC 5176)
retransmission  when a request of our own is sent again, and when it is given up (RFC 5080)
duplicates      which datagrams were seen and what they were answered (RFC 5080)
dictionary      names and types of attributes, for people; values codes what they hold

The codec is our own because octets must stay octets and a packet has to be refused for the slightest lie about its
lengths; pyrad's Dictionary is used for the names. Nothing here opens a socket or a database.
"""
