"""Network devices, the stations behind them, and the RADIUS clients that may speak to the listeners.

clients   who may speak: addresses, shared secrets, domains, what their unsigned requests may do
devices   who was seen: found by themselves when they forward a request, again after their deletion

Both are small slices of their own, since a client is configuration and a device is an observation.
"""
