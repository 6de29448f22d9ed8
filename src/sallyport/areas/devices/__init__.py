"""Network devices and the stations behind them, detected from RADIUS requests.

A device is identified by (domain, source address, client address, NAS-Identifier). `sightings` holds the active devices
in memory. The first request of a device creates the device's row, in the transaction that stores the decision on the
request. The reply is sent afterwards. Counts and times are written within a second. A deleted device is registered
again with its next request.
"""
