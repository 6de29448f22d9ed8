"""Password policies of a tenant: kept, assigned to endpoint machines, and applied to passwords.

    engine          a password against rules: plain functions without I/O, which the endpoint agent uses too
    contradictions  rules of a policy that exclude each other
    model           what a policy is, in the store and in the interface
    service         who may change which, and what holds for a machine

A policy has fields of the interface (minLen, firstChar, ...) and fields of libpwquality (minlen, dcredit, ...), which
are additions under the names that pwquality.conf gives them. A field without a value demands nothing. All policies of a
machine apply to a password, each by itself.

The area knows of machines (`instances`) by their ids alone. Which of them a tenant has is asked of `Instances`, and
`repo.forget_instance` takes the policies off one before it is deleted.
"""
