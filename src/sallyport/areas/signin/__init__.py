"""Sign-in of people to the console: local administrators, identity providers, sessions, and their entries in the audit
trail.

A person signs in with an access token, as a local administrator with a password and a one-time code, or through an
identity provider. The result is a session. The browser keeps the key of the session in a cookie, and the store has
only the hash of this key. Each request reads the session, and the token or administrator of the session, from the
store, without a cache. So a session ends on all nodes at the moment when the session or its token is revoked, when its
token expires, or when its administrator is removed. A change of a role applies to the next request.

A person of an identity provider is bound to the issuer and the subject of the ID token, never to a mail address or a
user name. The settings file gives roles to groups. The store has the groups of the latest sign-in, and each request
compares the role of the session with the role that the settings give to these groups now. A change of the groups at
the provider applies to the next sign-in, and at the latest when the session ends.

A local administrator belongs to a tenant, or to no tenant (`Role.INSTALLATION`). Administrators are made only on the
command line, so they work when every other system is down. The password is hashed, and the hash is sealed under the
master key, like the seed of the one-time codes. Thus a stolen database does not even allow guessing.

Failed attempts count against the sender's address, and against the administrator's name, over all nodes. Attempts from
the machine itself do not count against the name, so that an attacker cannot keep an administrator out.

    person          the values: Administrator, Session, Person
    repo            SQL of administrators and sessions
    administrators  Administrators: add, list, change and remove
    sign_ins        SignIns: sign in with a token, a password or an identity provider
    openid          the sign-in with the providers of the settings, and the sign-out there
    sessions        Sessions: look up, list, end
"""
