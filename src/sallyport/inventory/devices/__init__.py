"""Network devices and the stations behind them, as their requests show them.

A device is one (domain, source address, client address, NAS-Identifier). `sightings` holds the active devices in
memory. A first sighting is written in the transaction of the decision on its request, before the reply is sent; counts
and times follow within a second. A deleted device is a new one with its next request.
"""
