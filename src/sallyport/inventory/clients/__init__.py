"""RADIUS clients: the senders that the listeners admit, with their secrets and domains.

client      a client, and the table of all clients; `service` holds the table in memory
issued      the tenant of each certificate that the installation's authority has issued
freeradius  reader of a FreeRADIUS clients.conf, on top of `freeradius_tree` and `freeradius_syntax`
plan        the steps of an import, before anything is changed
weakness    weaknesses of clients, as messages that show no secret
"""
