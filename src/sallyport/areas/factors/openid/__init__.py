"""The factor `oidc`: a person signs in with the company's identity provider, to prove that a login is theirs.

    service   CompanySignIns: the redirect to the provider of a domain, and the checks when the browser returns
    page      the factor on the step-up page, and the two routes

The provider's user must be the user of the login: otherwise a person with any account there could confirm the login of
another person. The field `userClaim` names the claim, and `userIs` says what it has.

The person must sign in now (`prompt=login`, `max_age=0`). A provider may ignore this, so `auth_time` is checked.

The same sign-in is a proof at /me. Nothing is stored. The parameter `state` has the step-up or the sign-in at /me, a
time, a random value, and a keyed hash over these, the provider and the cookie of the browser. So another browser,
another login, or another provider cannot use it. The nonce and the code verifier are keyed hashes of it. Each domain
has a redirect URI of its own, so a code of one provider is never sent to that of another tenant (mix-up, RFC 9700
section 4.4). A proof is accepted only once, because a step-up takes one proof.
"""
