"""Agents and directories: who reports, and what was read."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row

AGENTS: Final = Board(
    "agents",
    "Agents and directories",
    "Agents on endpoints, and what is read from directories.",
    (
        Row("Endpoint agents"),
        Number("Active", "Agents that are in charge of a machine.", Query("sum(sallyport_agents{$here})"), width=6),
        Number(
            "Heard longest ago",
            "How long nothing has come from the quietest active agent; `sallyport doctor` names it.",
            Query("max(sallyport_agent_last_seen_seconds{$here})"),
            unit="s",
            width=6,
        ),
        Number(
            "Waiting",
            "Agents whose request waits for a new state: they hear of a change at once.",
            Query("sum(sallyport_agents_waiting{$here})"),
            width=6,
        ),
        Graph(
            "Messages of agents",
            "By kind and outcome.",
            (
                Query(
                    "sum by (kind, outcome) (rate(sallyport_agent_messages_total{$here}[$__rate_interval])) "
                    "or vector(0)",
                    "{{kind}} {{outcome}}",
                ),
            ),
            unit="reqps",
            width=24,
        ),
    ),
)
