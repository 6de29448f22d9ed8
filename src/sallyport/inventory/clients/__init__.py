"""RADIUS clients: the addresses and certificates whose requests the listeners accept, with secrets and domains.

client      a client, and the table of all clients; `service` holds the table in memory
issued      the tenants of the certificates that the installation's certificate authority has issued
freeradius  reader of a FreeRADIUS clients.conf; `freeradius_tree` and `freeradius_syntax` parse the file
plan        the planned changes of an import
weakness    weaknesses of clients, as messages that show no secret
"""
