"""How directories are read: LDAP, without store and web, since the directory agent does it too.

fields      the types of what an admin configures: URLs, names, filters, certificates
filters     search filters, checked and put together (RFC 4515)
answers     limits of the octets, attributes and values of a server's answers
server      from a URL to an open, checked, encrypted stream
connection  the LDAP conversation over that stream: bind, search, pages; libldap does it, through bonsai

libldap connects, and shakes hands for TLS, while it holds the interpreter: a directory that hangs would stop the
whole service. So the network is ours (`server`), with its time limits, its check of the addresses and Python's TLS;
libldap speaks to a socket of this very process, behind which `connection` hands the octets on.
"""
