"""Password policies of a tenant: stored, assigned to endpoint machines, and applied to passwords.

    engine     a password against rules: plain functions without I/O, which the endpoint agent uses too
    policy     the stored fields of a policy, the rules that the engine makes of them, and rules that exclude each other
    bodies     requests and answers
    service    changes, assignments, and the checks of passwords

A policy has fields of the interface (minLen, firstChar, ...) and fields of libpwquality (minlen, dcredit, ...), which
are additions under the names that pwquality.conf gives them. A field without a value demands nothing. All policies of a
machine apply to a password, each by itself.

The area has only the ids of machines (`instances`): `Instances` knows which of them a tenant has, and
`repo.forget_instance` takes the policies off one before it is deleted.
"""
