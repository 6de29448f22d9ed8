"""The settings of an installation: their fields, their types, and the limits of a tenant.

settings           Settings, from the file and the environment
types, values      the types of the fields; the values that they yield, such as addresses
identity_provider  the table of an identity provider
limits             the limits of a tenant
listening          errors for addresses that cannot be bound
"""
