"""Dynamic authorization (RFC 5176): live sessions are ended or changed.

    sender       one request over UDP: repeated by the RFC's timers, few at a time to each NAS
    service      DynamicAuthorization: the sessions, the octets that name them to their NAS, and the results
    revocations  revoked access ends the user's sessions, in domains that are set to do so
    repo         the SQL of both

A request goes to the source of the session's accounting: the NAS, or a server that forwards for it. Such a server
forwards the request by the NAS's name in it (RFC 8559). If the source takes no requests (its `coaPort` is 0, or it is
no longer a RADIUS client), the request goes to the NAS's own address from the accounting, if this is a RADIUS client of
the same tenant. The request is signed with the secret of that client.

An ACK means that the NAS has accepted the request. The Accounting-Stop then shows the end of the session, as for any
session. A missing answer is reported as `timeout`: RADIUS cannot show whether the NAS has acted.

A lock-out after failures ends no session: otherwise an attacker could end a user's sessions by guessing passwords.
"""
