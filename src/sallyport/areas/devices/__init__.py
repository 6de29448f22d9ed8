"""Network devices and the stations behind them, detected from RADIUS requests.

    rows         devices, stations and history in the store, and what the service has learned of a device
    device       devices and stations in memory, with the posture
    sightings    the active devices and stations, in memory
    tagging      tags and notes of devices
    usage        counts of logins by SSID, method and transport
    comparison   the comparison with a list from another source
    targets      the devices as targets of Prometheus
    service      pages, changes, deletion. SQL is in `repo` (reading), `write_repo`, `station_repo`, `tag_repo` and
                 `usage_repo`

A device is identified by (domain, source address, client address, NAS-Identifier). `sightings` holds the active devices
in memory. The first request of a device creates the device's row, in the transaction that stores the decision on the
request. The reply is sent afterwards. Counts and times are written within a second. A deleted device is registered
again with its next request.
"""
