"""The first factor `ldap`: a bind to the domain's directory with the user's name and password (RFC 4513).

    fields      what an admin sets
    server      from a URL to an open, checked, encrypted stream
    connection  the LDAP conversation over that stream: bind, search; libldap does it, through bonsai
    directory   several servers: which is asked, which rests, which connections are kept
    account     what an entry and an error tell: groups, units, and why an account may not log in
    memory      right answers, remembered for a short time
    checker     one login from its password field to a Reason

One login is one bind, whatever happens, so that the directory's own lock-out counts as many failures as there were.
The service account finds the user's entry; the user's password goes over a connection of its own, to the server that
found it, since libldap's bindings cannot bind a connection twice.

libldap connects, and shakes hands for TLS, while it holds the interpreter: a directory that hangs would stop the
whole service. So the network is ours (`server`), with its time limits, its check of the addresses and Python's TLS;
libldap speaks to a socket of this very process, behind which `connection` hands the octets on.
"""
