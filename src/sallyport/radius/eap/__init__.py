"""EAP as the server speaks it (RFC 3748), sans-io: the client's octets in, what is next out, time as `now=`.

    conversation        one of them: identity, which method, identifiers, repeated responses, rounds; and all, by State
    methods             which methods can be offered, and why the others cannot
    password_methods    the methods without a tunnel (RFC 3748; draft-kamath-pppext-eap-mschapv2)
    tls ttls peap       what goes on inside TLS (RFC 5216, 9190; RFC 5281; MS-PEAP version 0; RFC 9427)
    tunnelled           what those three share: the handshake, its fragments, the keys, the end
    tunnel              TLS in memory; server: its certificate and contexts; resumption: who a session was begun by
    packet              the codec, and messages in fragments
    certificate         which user a client certificate names; model: the values that go between all of them

Whatever has to be looked up is a question: a method returns `Check`, the caller finds out, in its own time, and gives
the verdict to `answer`. So no method knows of passwords, directories or second factors, and a conversation that waits
for a person is an object that nobody calls. Inside PEAP and TTLS the same `Conversation` goes on with the same methods.

TLS is pyOpenSSL's `Connection` without a socket, the one maintained binding with key export; only its public calls are
used. Octets that are no answer to the last request raise PacketError and change nothing; what is wrong inside a method
ends the conversation as failed, with a reason.
"""
