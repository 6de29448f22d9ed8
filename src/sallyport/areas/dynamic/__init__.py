"""Dynamic authorization (RFC 5176): end or change live sessions.

    sender        sends a request over UDP and retransmits it; limits the requests to one NAS at a time
    service       finds the sessions, identifies them to their NAS, and records the results
    revocations   ends the sessions of users who lose their access, in domains with `disconnectOnRevoke`
    repo          SQL for sessions and revocations

A request goes to the source address of the session's accounting packets. This is the NAS, or a RADIUS proxy, which
forwards the request to the NAS that its attributes identify (RFC 8559). If the source accepts no requests, because its
`coaPort` is 0 or it is no longer a RADIUS client, the request goes to the NAS address in the accounting packets. But
this address must belong to a RADIUS client of the same tenant. In each case, the request is signed with the secret of
the client that gets it.

An ACK means only that the NAS has accepted the request. The session ends with its Accounting-Stop, as always. If no
answer arrives, the result is `timeout`, because the NAS may or may not have acted.

A lock-out after failed logins ends no session. Otherwise an attacker could end a user's sessions by guessing passwords.
"""
