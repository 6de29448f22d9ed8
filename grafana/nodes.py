"""Nodes: the services that use one PostgreSQL database, and its replication."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row

NODES: Final = Board(
    "nodes",
    "Nodes",
    "The services that use one PostgreSQL database, and its replication.",
    (
        Row("Now"),
        Number(
            "Alive",
            "Nodes that send heartbeats.",
            Query('max(sallyport_nodes{$here, state="alive"})'),
        ),
        Number(
            "Silent",
            "Nodes without a heartbeat for five seconds. sallyport node list names them.",
            Query('max(sallyport_nodes{$here, state="silent"})'),
        ),
        Number(
            "Leader",
            "The node that does the periodic work for all.",
            Query("sallyport_node_leads{$here} == 1", "{{instance}}"),
            is_text=True,
        ),
        Number(
            "Lease held",
            "1 if a node holds the lease of the periodic work. If it is 0, schedules and outlets stand still.",
            Query("max(sallyport_lease_held{$here})"),
        ),
        Number(
            "Standby servers",
            "Standby servers of the database.",
            Query("max(sallyport_database_standbys{$here})"),
        ),
        Number(
            "Synchronous",
            "1 if a commit waits for a standby server. If it is 0, a failover of the database can lose answers.",
            Query("min(sallyport_database_synchronous{$here})"),
        ),
        Row("Over time"),
        Graph(
            "Nodes",
            "Nodes that send heartbeats, and silent ones.",
            (Query("max by (state) (sallyport_nodes{$here})", "{{state}}"),),
            width=8,
        ),
        Graph(
            "Leader",
            "The line of the node that does the periodic work is at 1. A change without a stop of a node means that "
            "heartbeats were late.",
            (Query("sallyport_node_leads{$here}", "{{instance}}"),),
            width=8,
        ),
        Graph(
            "Age of the heartbeat",
            "Time since the last heartbeat of each node. Above five seconds, the other nodes take over its work.",
            (Query("sallyport_node_heartbeat_age_seconds{$here}", "{{instance}}"),),
            unit="s",
            width=8,
        ),
        Graph(
            "Versions",
            "Nodes by version. During an upgrade there are two.",
            (Query("count by (version) (sallyport_build_info{$here})", "{{version}}"),),
            stacked=True,
            width=8,
        ),
        Graph(
            "Logins by node",
            "Answers of each node to requests, by second.",
            (
                Query(
                    "sum by (instance) (rate(sallyport_radius_responses_total{$here}[$__rate_interval]))",
                    "{{instance}}",
                ),
            ),
            stacked=True,
            width=8,
        ),
        Graph(
            "Accounting spool",
            "Accounting records that wait on the disk of each node until the database accepts them.",
            (
                Query(
                    "sum by (instance) (sallyport_accounting_spool_waiting_records{$here}) or on () vector(0)",
                    "{{instance}}",
                ),
            ),
            width=8,
        ),
    ),
)
