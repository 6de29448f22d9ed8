"""API keys of agents. A key of an endpoint agent acts for one instance, a key of a directory agent for one domain.

An admin makes an **enrolment key** (`createKey`, `sallyport agent key create`). It is shown once, and the admin writes
it into the agent's file. It can do one thing: register the agent's own key. It is bound to a domain or to one instance.
It expires, after 30 days by default, and may have a limit of uses. A second enrolment of the same machine is no second
use.

The agent makes its **own key** on its host, and sends its SHA-256 to the service (`exchangeKey`, with the enrolment
key). A lost answer therefore loses no key, and the agent may repeat the request. The key expires after 90 days. Before
that the agent makes the next one (`renewKey`), which replaces the old key at its first use. After a crash in between,
one of the agent's two keys is valid.

If an instance has an agent's key, an enrolment key of the whole domain cannot replace it. To set up such a machine
again, an admin makes an enrolment key for that instance.

For areas whose operations agents call:

    roles=AGENTS            (an endpoint agent: caller.domain_id, caller.instance_id), DIRECTORY_AGENTS, ENROLMENTS
    Keys.spend(tx, caller, agent, machine)        one use of an enrolment key, in the caller's own transaction
    Keys.exchange_in(tx, caller, hash, instance)  an agent's own key for its hash; spends by itself
    Body.claimed_key()                            for a body that carries the key, as add-machine does

key         the values
bodies      requests and answers
operations  the declarations
repo        the SQL
service     Keys: made, exchanged, renewed, revoked; the caller of a key
"""
