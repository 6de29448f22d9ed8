"""The first factor `ldap`. It sends a bind request with the user's name and password to the domain's directory (RFC
4513).

    directory   selects a server, pauses after a server's failure, pools connections
    account     evaluates an entry or an error: groups, units, and the reason why an account may not log in
    memory      caches correct passwords for a short time
    checker     checks the credentials of one login

Each login sends at most one bind with the user's password, so the directory's own lock-out counts each failure once.
The service account searches for the user's entry. The user's password then goes over a separate connection to the
server that returned the entry, so that the pooled connections stay bound to the service account.

`sallyport.areas.directory.reading` implements the connections and the LDAP protocol.
"""
