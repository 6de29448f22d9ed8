"""Passkeys (Web Authentication level 2, https://www.w3.org/TR/webauthn-2/).

    passkey     values: a passkey, a person, the binding of a challenge to browser and login
    webauthn    the checks of registrations and assertions, without I/O
    service     challenges that are used once, and the passkeys of all domains
    repo        SQL
    bodies, operations   the operations for operators

A registration and an assertion begin with a challenge of 32 random octets. The challenge belongs to a person, a browser
and a login; it ends after two minutes, with its first answer, and with the next challenge of the same browser and
login. It is in the store, so that any node accepts the answer, and only one does.

The identity of the service to authenticators (rpId) is the host of the setting `public_url`. It is stored with each
passkey. After a change of the host, the former passkeys cannot be used: browsers do not offer them, and the service
does not accept them. They work again when the setting has its former value.

A passkey proves possession and user verification (a PIN or a fingerprint), and its assertion contains the origin of the
page. So it cannot be used at the page of an attacker. It does not prove that the browser belongs to the person who
started the login; the binding of the login does that.
"""
