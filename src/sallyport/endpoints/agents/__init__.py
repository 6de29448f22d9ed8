"""The service's side of endpoint agents: the desired state of each machine, and the reports of its agent.

`base.agentwire` defines the messages, and `tenancy.keys` the API keys. The desired state of a machine is computed from
users, groups, assignments, policies, settings and orders. It is never stored, so it cannot be outdated, and an agent
that has lost its files receives it again. The store has only a digest of the state, and a version that increases
whenever the digest changes. States are signed with a key of the domain; an agent receives the public key when it
registers.

An agent polls for a version other than its own (long polling), and the poll waits in a parked task. Each change that
may affect a state writes an audit-trail entry in the same transaction. `states` therefore follows the trail, which has
the changes of all nodes. Four times a second it reads the new entries, and compares the fingerprints of the states of
waiting agents. It reads a few machines at a time; a fingerprint takes a tenth of a millisecond. The state itself is
built only when its agent polls.

An agent may send any message twice. A password that is generated on a host is stored before it becomes valid there, and
remains stored until the next one is valid: see `rotation`.

grants      the assignments that give a user access to a machine, and the time of their end
desired     builds the state of a machine
states      versions, signatures, and the waiting agents; signers: the keys that sign states
machines    registration of machines; presence: the status Active or Inactive
service     operations on agents for admins: status, settings, take-overs
orders      orders to act now, and their outcomes
reports     reports, drift, discovered accounts
rotation    passwords generated on hosts
repo        SQL of agents, settings and orders; reports_repo: SQL of reports, drift and discovered accounts
bodies      requests and answers for admins; agent_bodies: requests and answers for agents
"""
