"""Field mappings: which attributes of a directory fill each field of a person. `mapping` has the values, `service` the
rules.
"""
