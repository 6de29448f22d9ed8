"""What decides on a login beside its two factors, for each domain.

    rules     login rules: allow, block, or require a second factor; reply attributes
    bypass    stations that are let in by their MAC address
    lockouts  users and stations that are refused after too many failures

`login` asks them, and passes itself as an `attempt.Attempt`.
"""
