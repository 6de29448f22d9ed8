"""Dynamic authorization (RFC 5176): a session is ended, or changed, while it lasts.

    identity     which octets name a session to its NAS
    sender       one request over UDP: repeated by the RFC's timers, few at a time to each NAS
    service      DynamicAuthorization: which sessions, where to, what came of it, told in the audit trail
    revocations  who loses their access loses their sessions, in domains that say so
    repo         the SQL of both

A request goes where the session's accounting came from: to the NAS, or to the server that forwards for it, which
passes it on (RFC 8559) by the NAS's own name in it. Where that one takes none (its `coaPort` is 0, or it is no RADIUS
client any more) it goes to the address that the NAS gives itself, if that is a RADIUS client of the same tenant. The
secret is that client's.

An ACK is the NAS's word; the end of a session is known by its Accounting-Stop, as any other end. What has no answer is
told as such: RADIUS cannot know whether it was obeyed.

A lock-out after failures ends no session: whoever knows a name could end its owner's sessions by guessing passwords.
"""
