"""API keys of agents: by which an endpoint agent or a directory agent speaks for its instance or its domain, and for
nothing else.

An **enrolment key** is made by an admin (`createKey`, `sallyport agent key create`), shown once, and written into the
agent's file. It may do one thing: give an agent a key of its own. It is bound to a domain or to an instance in it, ends
(after 30 days unless told otherwise) and may have a limit of uses; the same machine again is the same use.

An agent's **own key** is made by the agent, on its host. The service is told its SHA-256 (`exchangeKey`, by the
enrolment key), so that no answer that is lost takes a key with it, and asking again is no harm. It ends after 90 days;
before that the agent makes the next one (`renewKey`), which takes the former's place when it is first used: whatever
crashes in between, one of the two that the agent has is good.

An instance that has an agent's key is not given to another one by a key of the whole domain: whoever sets such a
machine up anew takes an enrolment key of that instance.

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
