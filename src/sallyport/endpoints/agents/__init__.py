"""Endpoint agents, on the side of the service: the desired state of each machine, and the reports of its agent.

The messages are `base.agentwire`'s, the keys `tenancy.keys`'. The desired state of a machine is computed from users,
groups, assignments, policies, settings and orders, and never stored: an agent that has lost everything gets it again,
and no change can be missed. Stored are a digest, and a version that grows whenever the digest changes. A key of the
domain signs states; an agent gets the public key when it registers.

An agent polls for a version other than its own, and waits in a parked task. Each change that may affect a state writes
to the audit trail in its own transaction, so the trail is the list of changes that `states` follows, of all nodes: four
times a second it reads the new entries, and compares the fingerprints of the states of waiting agents, some machines at
a time, a tenth of a millisecond for each. A state itself is built for the agent that polls.

Every message of an agent may come twice. Passwords that are made on a host are stored before they are in force there,
and until the next one is: see `rotation`.

grants      the assignments through which a user has access to a machine, and their end
desired     builds the state of a machine
states      versions, signatures, and the waiting agents; signers: the keys that sign states
machines    registration of machines; presence: Active or Inactive
service     the agents as admins manage them: status, settings, take-overs
orders      orders to act now, and their outcomes
reports     reports, drift, discovered accounts
rotation    passwords made on hosts
repo        SQL of agents, settings and orders; reports_repo: of reports, drift and discovered accounts
bodies      requests and answers for admins; agent_bodies: of agents
"""
