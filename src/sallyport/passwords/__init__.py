"""Password policies of a tenant: stored, assigned to endpoint machines, and applied to passwords.

    engine     check a password against rules: plain functions without I/O, which the endpoint agent uses too
    policy     the stored fields of a policy, the engine's rules for them, and rules that contradict each other
    bodies     requests and answers
    service    changes, assignments, and checks of passwords

A policy has fields of the interface (minLen, firstChar, ...) and additional fields of libpwquality (minlen, dcredit,
...) with their names from pwquality.conf. A field without a value requires nothing. If a machine has several policies,
a password must meet each of them.

This package stores only the ids of machines (`instances`). `Instances` knows the machines of a tenant.
`repo.forget_instance` detaches the policies from a machine before it is deleted.
"""
