"""The MFA providers, which ask for the second factor. They have a common protocol, and each has its own module.

    login --start--> provider --> approved | denied | waiting (poll) | code needed (verify) | not enrolled

`provider` defines the protocol. `host` defines the configuration of a provider and the parts of the service that it may
use. `contract` contains the tests that every provider must pass, including installed ones. Providers connect through
`sallyport.outgoing`. `host.Once` prevents duplicate prompts if the provider's service has no idempotency keys.
`circuit` protects the calls of every provider by a deadline, and by a circuit breaker that opens after five consecutive
failures and allows one call after thirty seconds. `providers` lists the providers. `service` manages the provider of
each domain, and `operations` are the HTTP operations for it.

A failure of a provider is never an approval: the domain's `fallbackAction` decides on the login.
"""
