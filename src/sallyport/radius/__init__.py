"""The RADIUS protocol, sans-io: octets in, values out. The caller passes in the time and the secrets.

packet          decode requests, encode replies, and the keyed hashes that authenticate both
                (RFC 2865, 2866, 2869, 3579, 5997)
attributes      the numbers of attributes, and the layout of attributes in a packet (RFC 2865 section 5)
password        the method of an Access-Request (PAP, CHAP, MS-CHAP, EAP), User-Password and CHAP-Password
mschap          MS-CHAP and MS-CHAPv2 (RFC 2433, 2759); mschap_reply encodes the answers (RFC 2548, 3079)
eap             the server side of EAP (RFC 3748, 5216, 5281, 9190, 9427)
salted          keys and tunnel passwords of a reply: encrypt, decrypt, and re-encrypt as a proxy (RFC 2548, 2868)
dynamic         requests to a NAS to disconnect or change a session, and their answers (RFC 5176)
retransmission  when the service sends its own request again, or gives up (RFC 5080)
duplicates      recent requests and their answers, to detect retransmissions (RFC 5080)
vendors         the product that sent a request, and the medium of the user's connection
dictionary      names and types of attributes, for people; `values` converts attribute values to text and back

The service has its own codec for two reasons. The codec must not change octets, and it must reject each packet with a
wrong length. pyrad only parses the dictionary files. No module here opens a socket or a database.
"""
