"""Endpoint agents, as the service sees them: what each of them should make of its machine, and what it says of it.

The messages are `base.agentwire`'s, the keys `tenancy.keys`'. What is wanted of a machine is computed from what there
is (users and groups that are assigned, policies, settings, orders), and never stored as such: an agent that has lost
everything gets it anew, and nothing can be forgotten when something changes. Kept is a digest, and a version which
grows whenever the digest is another. States are signed by a key of the domain, which an agent gets when it registers.

An agent asks for a version other than its own, and waits: a parked task. What may change a state writes to the audit
trail in the same transaction, so the trail is the list of changes that `states` follows, of whichever node: it looks
four times a second for entries of the domains whose agents wait, and then compares what the states of those machines
are made of, some at a time: a tenth of a millisecond for each. States themselves are made for who asks.

Whatever an agent sends may come twice. Passwords that are made on a host are kept before they are put in force there,
and until the next one is: see `rotation`.

ways        by which assignments a user may use a machine, and until when
desired     the state of a machine, made of the store
states      versions, signatures, and the agents that wait
machines    registration of machines, and who is heard of (Active, Inactive)
settings    how the agents of a domain or of one machine behave; who is taken over
orders      what agents are told to do now, and what became of it
reports     what agents did and found: reports, drift, discovered accounts
rotation    passwords made on hosts
api, model  what admins ask; agent_operations, agent_model: what agents ask; commands, cli: the command line
"""
