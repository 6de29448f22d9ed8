"""Dynamic authorization (RFC 5176), which ends and changes live sessions.

    sender        sends a request over UDP and retransmits it; only a few requests to a NAS run at a time
    service       finds the sessions and the attributes that identify them to their NAS, and records the results
    revocations   ends the sessions of users that lose their access, in domains with that setting
    repo          the SQL of service and revocations

A request goes to the source address of the session's accounting, which is the NAS or a RADIUS proxy of the NAS. Such a
proxy forwards the request to the NAS that the attributes of the request identify (RFC 8559). The source may take no
requests, because its `coaPort` is 0 or it is no longer a RADIUS client. The request then goes to the address of the NAS
in the accounting, if this is the address of a RADIUS client of the same tenant. It is signed with the secret of that
client.

An ACK means that the NAS has accepted the request. The Accounting-Stop then shows the end of the session, as for any
session. A missing answer is reported as `timeout`, because RADIUS cannot show whether the NAS has acted.

A lock-out after failed logins does not end sessions. Otherwise an attacker could end a user's sessions by guessing
passwords.
"""
