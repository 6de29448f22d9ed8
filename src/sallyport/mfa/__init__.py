"""The second factor: providers behind one protocol, one file a provider.

    login --start--> provider --> approved | denied | waiting (poll) | a code, please (verify) | not enrolled

`model` is the protocol; `contract` the test that it must pass, for those of others too. Providers reach the network
through `sallyport.outgoing`, which has the types of what they are configured with as well. `once` begins a challenge
once where a provider's service knows no idempotency keys. `circuit` stands before every provider: a deadline for each
call, and a circuit that opens after five failures in a row and lets one call through after thirty seconds. `providers`
is the list. `service` holds each domain's provider, `api` sets it, `bodies` are the interface's words for that.

A failure of a provider is never an approval: what it means for a login is the domain's `fallbackAction`.
"""
