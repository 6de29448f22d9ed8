"""Network devices and the stations behind them, as they were seen.

A device is one (domain, source address, client address, NAS-Identifier). `sightings` holds those that talk in
memory; a first sighting is written in the same transaction as the decision on its request, before the answer leaves;
counts and last-seen times follow within a second. A device that was deleted is a new one on its next request.
"""
