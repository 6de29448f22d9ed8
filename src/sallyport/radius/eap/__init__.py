"""EAP on the server's side (RFC 3748), sans-io: octets of the client in, the next step out, time as `now=`.

    conversation        one conversation: identity, choice of the method, identifiers, repeated responses, rounds;
                        and the table of all conversations, by State
    methods             the methods that a conversation offers, and the reasons against the others
    password_methods    the methods without a tunnel (RFC 3748; draft-kamath-pppext-eap-mschapv2)
    tls ttls peap       the protocols inside TLS (RFC 5216, 9190; RFC 5281; MS-PEAP version 0; RFC 9427)
    tunnelled           the common part of these three: the handshake, its fragments, the keys, the end
    tunnel              TLS in memory; server: its certificate and contexts; resumption: the users of sessions
    packet              the codec, and messages in fragments
    certificate         the user that a client certificate names; model: the values of all these modules

A method asks a question by returning a `Check`. The caller finds the verdict, in its own time, and passes it to
`answer`. So no method knows passwords, directories or second factors, and a conversation that waits for a person is an
object without a task. PEAP and TTLS run another `Conversation` inside, with the same methods.

TLS is pyOpenSSL's `Connection` without a socket, the one maintained binding with key export; only its public calls are
used. Octets that do not answer the last request raise PacketError and change nothing. An error inside a method ends the
conversation as failed, with a reason.
"""
