"""The service's side of endpoint agents: the desired state of each machine, and the reports of its agent.

`base.agentwire` defines the messages, `tenancy.keys` the API keys. The desired state of a machine is computed from
users, groups, assignments, policies, settings and orders, and never stored: an agent that has lost everything gets it
again, and no change can be missed. The store has only a digest of the state, and a version that grows whenever the
digest changes. A key of the domain signs states; an agent gets the public key when it registers.

An agent polls for a version other than its own, and the poll waits in a parked task. Each change that may affect a
state writes to the audit trail in its own transaction. `states` therefore follows the trail, which has the changes of
all nodes. Four times a second it reads the new entries and compares the fingerprints of the states of waiting agents,
some machines at a time, a tenth of a millisecond for each. The state itself is built when its agent polls.

An agent may send any message twice. A password that is made on a host is stored before it is in force there, and stays
stored until the next one is in force: see `rotation`.

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
