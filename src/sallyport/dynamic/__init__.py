"""Dynamic authorization (RFC 5176): live sessions are ended or changed.

    sender       one request over UDP: repeated by the RFC's timers, few at a time to each NAS
    service      DynamicAuthorization: the sessions, the octets that name them to their NAS, and the results
    revocations  revoked access ends the user's sessions, in domains that are set to do so
    repo         the SQL of both

A request goes to the source of the session's accounting: the NAS, or the server that forwards for it, which forwards
the request (RFC 8559) by the NAS's own name in it. If that source takes none (its `coaPort` is 0, or it is no longer a
RADIUS client), the request goes to the address that the NAS gives itself, if that is a RADIUS client of the same
tenant. The secret is that client's.

An ACK is the NAS's word; an Accounting-Stop shows the end of the session, as it does for any other end. A missing
answer is reported as such: RADIUS cannot show whether the NAS has obeyed.

A lock-out after failures ends no session: otherwise an attacker could end a user's sessions by guessing passwords.
"""
