"""The server side of EAP (RFC 3748), sans-io: it gets the client's octets and the time (`now=`), and returns the next
step.

    conversation        one conversation: identity, choice of the method, identifiers, repeated responses, rounds;
                        and the table of all conversations, by State
    methods             the methods that a conversation offers, and why other methods are not offered
    password_methods    the methods without a tunnel (RFC 3748; draft-kamath-pppext-eap-mschapv2)
    tls ttls peap       the protocols inside TLS (RFC 5216, 9190; RFC 5281; MS-PEAP version 0; RFC 9427)
    tunnelled           the common part of these three: the handshake, its fragments, the keys, the end
    tunnel              TLS in memory; server: TLS contexts; server_certificate: the certificate that they show;
                        resumption: the users of sessions
    packet              the codec, and fragments of TLS messages
    certificate         the user that a client certificate names, and its facts; certificate_names: their names
    model               the values that all modules use

A method asks the caller a question by returning a `Check`, for example whether a password is correct. The caller passes
its verdict to `answer`, immediately or later. So no method accesses passwords, directories or second factors, and a
conversation that waits for a person needs no task. PEAP and TTLS run another `Conversation` in their tunnel.

pyOpenSSL's `Connection` does TLS without a socket. pyOpenSSL is the only maintained binding that exports keying
material, and only its public calls are used. A packet that does not answer the last request raises PacketError and
changes nothing. After an error inside a method, the conversation has failed, and its outcome contains the reason.
"""
