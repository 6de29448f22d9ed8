"""The MFA providers. They check the second factor of a login. They share one protocol, and each has its own module.

    login --start--> provider --> approved | denied | waiting (poll) | code needed (verify) | not enrolled

- `provider` defines the protocol.
- `host` defines the services that a provider may use. Its class `Once` prevents duplicate prompts for providers without
  idempotency keys.
- `contract` has the tests that every provider must pass, also one from an installed package.
- `circuit` guards each provider by deadlines and a circuit breaker. After five failures in a row, no call is made for
  thirty seconds; then one call is tried.
- `providers` lists the providers. `fields` has the fields of their configuration; the options of the command and the
  form of the console follow from the fields. `console.labels` has the names of the providers.
- `service` seals and manages the provider of each domain. `operations` serves it over HTTP.

Providers connect through `sallyport.outgoing`. A failure of a provider never approves a login; the domain's
`fallbackAction` decides.
"""
