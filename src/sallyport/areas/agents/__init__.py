"""The service's side of endpoint agents: the desired state of each machine, and the reports of its agent.

`agentwire` defines the messages. `tenancy.keys` manages the API keys with which agents authenticate. The service
computes the desired state of a machine from users, groups, assignments, policies, settings and orders. The state is
never stored, so it cannot be outdated, and the service can send it again to an agent that has lost its files. The store
contains only a digest of the state, and a version that increases whenever the digest changes. The service signs each
state with a key of the domain. An agent receives the public key when it registers.

An agent sends a poll with the version of its state, and the service answers when there is another version (long
polling). Each change that may affect a state also writes an entry of the audit trail, in the same transaction. The
trail contains the changes of all nodes. Four times a second, `states` reads the new entries of the trail. For each
waiting poll that an entry may concern, `states` computes a fingerprint and compares it with the previous one. A
fingerprint is a hash over the data from which a state is built. Computing it takes a tenth of a millisecond. Short
transactions read the data for a few machines at a time. The state itself is built only when its agent polls.

An agent may send any message twice. When an agent generates a password on a host, the service stores the password
before the password becomes valid on the host. The service keeps it until the next password is valid: see `rotation`.

    grants      the assignments that give a user access to a machine, and the times at which they end
    desired     builds the desired state of a machine
    states      versions and signatures of states, and the waiting polls
    signers     the keys that sign states
    machines    registration of machines
    presence    the status Active or Inactive of machines
    service     operations on agents for admins: status, settings, take-overs of accounts
    orders      orders to act now, and their outcomes
    reports     reports, drift, discovered accounts
    rotation    passwords that are generated on hosts
    repo        the SQL of agents, settings and orders
    reports_repo  the SQL of reports, drift and discovered accounts
    targets     the instances and groups to which a verifiable presentation requests access
    bodies      requests and answers for admins
    agent_bodies  requests and answers for agents
"""
