"""Self-service of people: the pages `/me`.

    session     values: a sign-in and its rights
    repo        SQL of sign-ins
    sessions    begins, proves and ends sign-ins
    service     the factors of a signed-in person: adds and removes them, and tells the person by mail
    host        what the pages need of other areas
    pages       the pages
    company     the sign-in at the company as a proof
    texts       their messages

A sign-in has two steps. The first factor is checked as for a login by RADIUS, and failures count for the same
lock-outs. Then the person proves a strong factor, or the person has come with an enrolment link.

A change of the factors needs more than a sign-in: a proof within the last five minutes, with at least the minimum
strength of the domain, and with a passkey, or a sign-in at the company that counts as one, if the person has one. So a
code of an app that was phished does not add a passkey to an account with a passkey. A link adds factors and removes
none. Each change is in the audit trail, and the person is told by mail if the directory has an address.
"""
