"""Network devices, the stations behind them, RADIUS clients, and sessions.

clients   senders that the listeners admit: addresses, shared secrets, domains, rules for unsigned requests
devices   senders that were seen: a device registers with its first request, and again after its deletion
sessions  sessions by the accounting of the devices

A client is configuration, a device is an observation.
"""
