"""Endpoints: the agents on machines, and what they tell."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row

ENDPOINTS: Final = Board(
    "endpoints",
    "Endpoints",
    "The agents on machines: who is heard of, and what they tell.",
    (
        Row("Now"),
        Number("Active", "Agents that were heard within three heartbeats.", Query("sum(sallyport_agents{$here})")),
        Number(
            "Wait for a change",
            "Polls that are open now. Far fewer than the active ones: agents that cannot hold a connection.",
            Query("sum(sallyport_agents_waiting{$here})"),
        ),
        Number(
            "Silent longest",
            "Since the active agent was heard that is silent longest. Past 90 seconds it is inactive.",
            Query("max(sallyport_agent_last_seen_seconds{$here})"),
            unit="s",
        ),
        Row("Agents"),
        Graph(
            "Active",
            "A step down is machines that are off, or a network between them and the service.",
            (Query("sallyport_agents{$here}", "{{instance}}"),),
        ),
        Graph(
            "Messages",
            "By what they are: refused ones are of agents of another version, or of somebody who is none.",
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
