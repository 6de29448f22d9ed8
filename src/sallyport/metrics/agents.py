"""The agents on endpoint machines."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import Read, Tally


class AgentMetrics:
    """Who is heard of, who waits, and what they tell. kind: of a message: poll, report, rotation, privileges. outcome:
    ok, refused (it was none, or did not fit), repeated."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.messages = Tally(
            registry, "sallyport_agent_messages", "Messages of endpoint agents by outcome.", ("kind", "outcome")
        )

    def watch(self, read: Callable[[], tuple[int, float]], waiting: Callable[[], int]) -> None:
        """Read when somebody scrapes. read: active agents, and the seconds since the most silent of them was heard."""
        Read(self._registry, "sallyport_agents", "Endpoint agents that are active.", (), lambda: {(): float(read()[0])})
        Read(
            self._registry,
            "sallyport_agent_last_seen_seconds",
            "Since the active agent that was heard longest ago.",
            (),
            lambda: {(): read()[1]},
        )
        Read(
            self._registry,
            "sallyport_agents_waiting",
            "Agents that wait for their next state.",
            (),
            lambda: {(): float(waiting())},
        )
