"""The policies of a domain. They decide on logins in addition to the two factors.

    rules     login rules: allow, block, or require a second factor; reply attributes
    roles     named sets of reply attributes, one for each product
    bypass    stations that are admitted by their MAC address
    lockouts  users and stations that are refused after too many failures

`login` calls these policies. It passes a request as an `attempt.Arrival`, and a login as an `attempt.Attempt`. Both are
frozen.
"""
