"""The first factor `ldap`. It makes a bind to the domain's directory with the user's name and password (RFC 4513).

    directory   several servers: selection, pause after a failure, connection pool
    account     evaluates an entry or an error: groups, units, and the reason why an account may not log in
    memory      a short-lived cache of correct passwords
    checker     checks the credentials of one login

Each login makes at most one bind with the user's password, so that the directory's own lock-out counts each failure
once. The service account finds the user's entry. The user's password is sent over a separate connection to the server
that found the entry, because libldap's bindings cannot bind a connection twice.

`sallyport.directory.reading` implements the connections and the protocol.
"""
