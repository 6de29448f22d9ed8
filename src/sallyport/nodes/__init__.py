"""Several nodes over one PostgreSQL database: who runs, who does the periodic work, and what has changed elsewhere.

node       a node as the others see it
repo       the SQL of the tables `nodes`, `leases` and `master_keys`, which only PostgreSQL has
service    `Nodes`: joins, sends heartbeats, holds the lease of the periodic work; `Alone` for the embedded database
periodic   runs the periodic work on the node with the lease
follower   adopts the changes of other nodes
watch      metrics of the nodes and of the database's replication
certificates  the certificates of `sallyport cert` on every node
notices    what each node counts in memory, and must count over all nodes

A node sends a heartbeat each second. A node without one for DEAD_US is dead: its name is free, and other nodes take
over its prompts. All times are the database's, so that the clocks of the nodes do not matter.

One node at a time holds the lease, and runs the work that must happen once for the cluster. Where work by two nodes at
the same time would do harm, each transaction checks the lease's fencing number, so that a node that was paused and
continues changes nothing. Other periodic work compares and sets a row, or deletes what is expired: it may run twice.
"""
