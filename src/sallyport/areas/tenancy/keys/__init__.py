"""API keys of agents. There are two kinds: enrolment keys, and agents' own keys.

An admin creates an **enrolment key** (`createKey`, `sallyport agent key create`). The key is shown once, and the admin
writes it into the agent's configuration file. An enrolment key can only be used to register the agent and its own key.
It is for a domain or for one instance. It expires, after 30 days by default, and the number of its uses may be limited.
If the same machine enrols again, this does not count as another use.

The agent generates its **own key** on its host, and sends the SHA-256 of the key to the service (`exchangeKey`, with
the enrolment key). If the answer is lost, the agent can repeat the request with the same key. The own key of an
endpoint agent is for one instance. The own key of a directory agent is for one domain. An own key expires after 90
days. Long before its expiry, the agent generates the next key (`renewKey`). The next key replaces the old key when the
agent first uses the next key. If the agent crashes before that, at least one of the two keys is valid.

If an instance has an agent's own key, an enrolment key of the whole domain cannot replace that key. To set up such a
machine again, an admin creates an enrolment key for this instance.

Packages with operations for agents use:

    roles=AGENTS            (an endpoint agent: caller.domain_id, caller.instance_id), DIRECTORY_AGENTS, ENROLMENTS
    Keys.spend(tx, caller, instance)              one use of an enrolment key, in the caller's own transaction
    Keys.exchange_in(tx, caller, hash, instance)  registration of an agent's own key by its hash; includes `spend`
    Body.claimed_key()                            for a body that contains the key, as in add-machine

Modules:

    key         the records
    bodies      request and response bodies
    operations  HTTP operations
    repo        SQL
    service     Keys: create, exchange, renew and revoke keys, and authenticate callers
"""
