"""Network devices, the stations behind them, RADIUS clients, and sessions.

clients   RADIUS clients that an admin configured: addresses, shared secrets, domains, rules for unsigned requests
devices   devices that the service detects from their requests
sessions  user sessions that devices report by RADIUS accounting
"""
