"""Network devices and the stations behind them, detected from RADIUS requests.

A device is identified by (domain, source address, client address, NAS-Identifier). `sightings` holds the active devices
in memory. The row of a new device is written in the transaction that stores the decision on its first request, before
the reply is sent. Counts and times are written within a second. A deleted device registers again with its next request.
"""
