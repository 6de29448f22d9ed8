"""The first factor `ldap`: a bind to the domain's directory with the user's name and password (RFC 4513).

    directory   several servers: choice, rest after a failure, kept connections
    account     the meaning of an entry and an error: groups, units, and the reason why an account may not log in
    memory      right answers, remembered for a short time
    checker     one login from its password field to a Reason

One login is one bind in every case, so that the directory's own lock-out counts the real number of failures. The
service account finds the user's entry. The user's password goes over a connection of its own, to the server that found
the entry, since libldap's bindings cannot bind a connection twice.

`sallyport.directory.reading` has the connections and the protocol.
"""
