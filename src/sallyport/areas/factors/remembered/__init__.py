"""Remembered stations: after a strong second factor, a person is not asked again at the same station for a time.

    station   values: a station of a login, a remembered station
    service   finds, keeps, lists and removes remembered stations
    repo      SQL
    bodies, operations   the operations for operators

Only two things are a station: a MAC address that a switch or an access point has seen and that is not made up at
random, and a client certificate. An IP address is none, because many people share the address of a hotel. A MAC address
can be copied by a person in the same room, so the password is checked each time, and a login rule that demands a
phishing-resistant factor is not satisfied by a remembered station.

A domain remembers stations only if `rememberHours` is set, and only after a factor of the strength `two_channels` or
more, in signed requests. A MAC address is remembered for its RADIUS client. A station is forgotten when the time ends,
when the password changes as far as the service sees it, when the person says "not me", when the person loses the
access, and when an operator removes it.

`login.remembered` knows which logins have a station.
"""
