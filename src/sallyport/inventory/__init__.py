"""Network devices, the stations behind them, RADIUS clients, and sessions.

clients    RADIUS clients that an admin configured: addresses, shared secrets, domains, rules for unsigned requests
devices   devices detected from requests: a device registers with its first request, and again after its deletion
sessions  user sessions that devices report by RADIUS accounting
"""
