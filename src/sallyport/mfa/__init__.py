"""The second factor: providers behind one protocol, one file for each.

    login --start--> provider --> approved | denied | waiting (poll) | code needed (verify) | not enrolled

`provider` is the protocol. `host` has the configuration of a provider and the parts of the service that it may use.
`contract` is the test that every provider must pass, including installed ones. Providers connect through
`sallyport.outgoing`. `host.Once` starts a challenge once if the provider's service has no idempotency keys. `circuit`
guards every provider: a deadline for each call, and a circuit that opens after five failures in a row and lets one call
through after thirty seconds. `providers` is the list. `service` holds each domain's provider, and `operations` sets it.

A failure of a provider is never an approval: the domain's `fallbackAction` decides on the login.
"""
