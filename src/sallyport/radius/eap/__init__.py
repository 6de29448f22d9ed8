"""EAP on the server's side (RFC 3748), sans-io: the client's octets in, the next step out, time as `now=`.

    conversation        one of them: identity, which method, identifiers, repeated responses, rounds; and all, by State
    methods             which methods can be offered, and why the others cannot
    password_methods    the methods without a tunnel (RFC 3748; draft-kamath-pppext-eap-mschapv2)
    tls ttls peap       the protocols inside TLS (RFC 5216, 9190; RFC 5281; MS-PEAP version 0; RFC 9427)
    tunnelled           the part that those three share: the handshake, its fragments, the keys, the end
    tunnel              TLS in memory; server: its certificate and contexts; resumption: the users of sessions
    packet              the codec, and messages in fragments
    certificate         which user a client certificate names; model: the values of all these modules

A method asks questions: it returns `Check`, the caller finds the verdict, in its own time, and passes it to `answer`.
So no method knows passwords, directories or second factors, and a conversation that waits for a person is an object
without a task. Inside PEAP and TTLS runs another `Conversation` with the same methods.

TLS is pyOpenSSL's `Connection` without a socket, the one maintained binding with key export; only its public calls are
used. Octets that are no answer to the last request raise PacketError and change nothing. An error inside a method ends
the conversation as failed, with a reason.
"""
