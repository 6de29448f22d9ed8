"""Dynamic authorization (RFC 5176), which ends and changes live sessions.

    sender        one request over UDP: retransmitted by the RFC's timers, few at a time to each NAS
    service       DynamicAuthorization: the sessions, the attributes that identify them to their NAS, and the results
    revocations   end the sessions of users that lose their access, in domains with that setting
    repo          the SQL of service and revocations

A request goes to the source address of the session's accounting: the NAS, or a RADIUS proxy of the NAS. Such a proxy
forwards the request to the NAS that the request's attributes identify (RFC 8559). If the source takes no requests (its
`coaPort` is 0, or it is no longer a RADIUS client), the request goes to the NAS's own address from the accounting, if
this is a RADIUS client of the same tenant. The request is signed with the secret of that client.

An ACK means that the NAS has accepted the request. The Accounting-Stop then shows the end of the session, as for any
session. A missing answer is reported as `timeout`: RADIUS cannot show whether the NAS has acted.

A lock-out after failed logins does not end sessions. Otherwise an attacker could end a user's sessions by guessing
passwords.
"""
