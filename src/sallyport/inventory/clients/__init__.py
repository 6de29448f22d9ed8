"""RADIUS clients: the senders that the listeners admit, with their secrets and domains.

client      values; `service` holds all clients in memory
issued      the tenant of each certificate that the installation's authority has issued
freeradius  clients of a FreeRADIUS clients.conf, over `freeradius_tree` and `freeradius_syntax`
plan        the effect of an import, before anything is changed
weakness    weaknesses of clients, as messages that show no secret
"""
