"""The RADIUS protocol, sans-io: octets in, values out; time and secrets are passed in.

packet          decode what a client sent, encode what it gets (RFC 2865, 2866, 5997)
attributes      the numbers of attributes and the walk over them
authenticator   the keyed hashes that prove a packet's sender (RFC 2865, 2866, 2869, 3579)
password        User-Password and CHAP-Password
duplicates      which datagrams were seen and what they were answered (RFC 5080)
dictionary      names and types of attributes, for people; values codes what they hold

The codec is our own because octets must stay octets and a packet has to be refused for the slightest lie about its
lengths; pyrad's Dictionary is used for the names. Nothing here opens a socket or a database.
"""
