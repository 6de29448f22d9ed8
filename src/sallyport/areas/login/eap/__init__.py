"""EAP conversations that this service handles itself, instead of forwarding them to another RADIUS server.

    login                the state of logins: a conversation, its end, and the EAP method of each station's last login
    rounds               continues conversations, and decides each login at the end of its conversation
    service              finds the conversation of an Access-Request, continues it, and returns the result of the login
    offered              the EAP methods that a client is offered
    tls_servers          the TLS servers: one for each server certificate
    trusts               the TLS servers that trust the authorities of a domain
    client_certificates  checks client certificates, with `holders` for their names, and `revocation`
    verifiers            check credentials against the passwords in memory, or by asking the directory
    answers              the end of a conversation as attributes

The state machines of the EAP methods are in `radius.eap`. They ask this package questions, such as whether a password
is correct.

The service handles EAP itself if the first factor of the domain is `local` or `ldap`. With the first factor `radius`,
EAP is forwarded unchanged. A client is offered only the methods that the first factor can check. A round that does not
decide the login creates no event.

A login with a wrong password is decided at once. Its event and its lock-out are on disk before the client learns the
result inside EAP. Otherwise a client could guess passwords without a trace, if it never completed a conversation. The
further rounds until EAP-Failure are not recorded. A login with a correct password is decided when EAP has succeeded.
Then the login rules apply, and EAP-Success is sent after the second factor is answered.

The outer identity determines the domain, and need not contain a user. The user's name comes from the tunnel or the
certificate. If this name has a realm, the realm must belong to the same domain.

People of Entra ID or Okta have no password here. If the first factor does not know the name in a client certificate,
the name is looked for among the people and devices that were imported from cloud directories (`verifiers.WithCloud`).
This needs no setting of its own: a domain with such people has the first factor `local` or `ldap`.
"""
