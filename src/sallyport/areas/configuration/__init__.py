"""Configuration as code: `sallyport export` and `sallyport apply`.

Each area declares the kinds of its objects that files may describe (`Area.configured`). The command line reads the
files (`files`), replaces references to secrets by the secrets (`secrets`), and sends the objects to the service. The
service compares them with the store (`planning`), and writes all changes of a tenant in one transaction (`service`).

What is outside: passwords, seeds, passkeys, bypass codes, wallets, sessions, and all that the service has learned.
"""
