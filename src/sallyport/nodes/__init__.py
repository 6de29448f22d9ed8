"""Several nodes that share one PostgreSQL database: which nodes run, which node does the periodic work, and what other
nodes have changed.

node          a node as other nodes see it
repo          the SQL of the tables that only PostgreSQL has, such as `nodes`, `leases` and `master_keys`
service       `Nodes`: joins, sends heartbeats, holds the lease of the periodic work; `SingleNode` for the embedded
              database; `NodeMetricsTask` counts the nodes
periodic      runs the periodic work on the node with the lease
follower      removes values from memory if other nodes have changed them in the database
certificates  the certificates of `sallyport cert` on every node
senders       the senders without an answer of all nodes
notices       events that each node counts in memory, but that must be counted over all nodes

A node sends a heartbeat each second. If a node has sent no heartbeat for DEAD_US, it is dead. Then another node may
take its name, and other nodes take over its prompts. All times are from the database's clock, so it does not matter if
the clocks of the nodes differ.

One node at a time holds the lease. This node does the periodic work, which must be done only once for the cluster. Some
of this work would do harm if two nodes did it at the same time. The transactions of this work check the fencing number
of the lease. Thus a node that was paused and continues later changes nothing. The other periodic work may be done
twice, because it compares and sets a row, or deletes expired rows.
"""
