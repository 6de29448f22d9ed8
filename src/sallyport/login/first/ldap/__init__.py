"""The first factor `ldap`: a bind to the domain's directory with the user's name and password (RFC 4513).

    directory   several servers: which is asked, which rests, which connections are kept
    account     what an entry and an error tell: groups, units, and why an account may not log in
    memory      right answers, remembered for a short time
    checker     one login from its password field to a Reason

One login is one bind, whatever happens, so that the directory's own lock-out counts as many failures as there were.
The service account finds the user's entry; the user's password goes over a connection of its own, to the server that
found it, since libldap's bindings cannot bind a connection twice.

How a server is reached and spoken to is the directory reader's (`sallyport.directory.reading`).
"""
