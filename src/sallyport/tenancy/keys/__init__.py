"""API keys of agents. A key of an endpoint agent is for one instance, a key of a directory agent for one domain.

An admin creates an **enrolment key** (`createKey`, `sallyport agent key create`). It is shown once, and the admin
writes it into the agent's file. Its only use is to register the agent's own key. It is bound to a domain or to one
instance. It expires, after 30 days by default, and may have a limit of uses. A second enrolment of the same machine is
no second use.

The agent creates its **own key** on its host, and sends its SHA-256 to the service (`exchangeKey`, with the enrolment
key). If the answer is lost, the key is not, and the agent may repeat the request. The key expires after 90 days. Before
that the agent creates the next one (`renewKey`), which replaces the old key at its first use. After a crash in between,
one of the agent's two keys is valid.

If an instance has an agent's key, an enrolment key of the whole domain cannot replace it. To set up such a machine
again, an admin creates an enrolment key for that instance.

For areas whose operations agents call:

    roles=AGENTS            (an endpoint agent: caller.domain_id, caller.instance_id), DIRECTORY_AGENTS, ENROLMENTS
    Keys.spend(tx, caller, instance)              one use of an enrolment key, in the caller's own transaction
    Keys.exchange_in(tx, caller, hash, instance)  registration of an agent's own key by its hash; includes `spend`
    Body.claimed_key()                            for a body that contains the key, as in add-machine

key the values bodies request and response bodies operations HTTP operations repo SQL service Keys: create, exchange,
renew and revoke keys, and authenticate their callers
"""
