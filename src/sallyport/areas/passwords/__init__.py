"""Password policies of a tenant: their storage, their assignment to endpoint machines, and the check of passwords.

    engine     checks a password against rules: functions without I/O, which the endpoint agent uses as well
    policy     the stored fields of a policy, their conversion to rules, and contradictions between rules
    bodies     requests and answers
    service    changes, assignments, and checks of passwords

A policy has fields that the API defines (minLen, firstChar, ...). It also has the parameters of libpwquality, under
their names in pwquality.conf (minlen, dcredit, ...). A field without a value requires nothing. If a machine has several
policies, a password must meet each of them.

This package stores only the ids of machines (instances). The interface `Instances` checks that a tenant has a machine.
`repo.forget_instance` detaches the policies from a machine before the machine is deleted.
"""
