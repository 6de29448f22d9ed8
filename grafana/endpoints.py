"""Endpoints: the agents on machines, and their messages."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row

ENDPOINTS: Final = Board(
    "endpoints",
    "Endpoints",
    "The agents on machines, and their messages.",
    (
        Row("Now"),
        Number("Active", "Agents that sent a message in the last 90 seconds.", Query("sum(sallyport_agents{$here})")),
        Number(
            "Waiting for a change",
            "Agents with an open poll. If most active agents have none, they cannot keep a connection open.",
            Query("sum(sallyport_agents_waiting{$here})"),
        ),
        Number(
            "Longest silence",
            "Longest time since the last message of an active agent. After 90 seconds, an agent is inactive.",
            Query("max(sallyport_agent_last_seen_seconds{$here})"),
            unit="s",
        ),
        Row("Agents"),
        Graph(
            "Active",
            "Active agents. Causes of a drop: machines are off, or the network between them and the service fails.",
            (Query("sallyport_agents{$here}", "{{instance}}"),),
        ),
        Graph(
            "Messages",
            "Messages by kind and outcome. Refused messages come from agents of another version, or from strangers.",
            (
                Query(
                    "sum by (kind, outcome) (rate(sallyport_agent_messages_total{$here}[$__rate_interval])) "
                    "or on () vector(0)",
                    "{{kind}} {{outcome}}",
                ),
            ),
            unit="reqps",
        ),
    ),
)
