"""RADIUS clients. The listeners accept requests only from the addresses and certificates of these clients. A client
also has a shared secret and domains.

    client      a client, and the table of all clients; `service` holds the table in memory
    activity    when a client has sent requests
    changes     the checks of a change, and its entry in the audit trail
    latches     the settings that the service learns from requests
    issued      the tenants of the certificates that the installation's certificate authority has issued
    freeradius  reader of a FreeRADIUS clients.conf; `freeradius_tree` and `freeradius_syntax` parse the file
    plan        the planned changes of an import
    weakness    weaknesses of clients, as messages that show no secret
"""
