"""The RADIUS servers that logins are passed on to."""

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import Read, Tally


class UpstreamMetrics:
    """RADIUS servers that logins are passed on to. domain: the domain's id. outcome: what a login got from them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Tally(
            registry, "sallyport_upstream_requests", "Logins passed on to home servers.", ("domain", "outcome")
        )
        self.repeats = Tally(
            registry, "sallyport_upstream_repeats", "Requests sent again, or to another server.", ("domain", "kind")
        )
        self.discards = Tally(
            registry, "sallyport_upstream_discards", "Datagrams of home servers dropped.", ("domain", "reason")
        )
        self.servers: dict[tuple[str, ...], float] = {}  # by (domain, state)
        Read(
            registry,
            "sallyport_upstream_servers",
            "Home servers in each state.",
            ("domain", "state"),
            lambda: dict(self.servers),
        )

    def moved(self, domain: str, before: str, after: str) -> None:
        """A server is in another state; empty: it was not there, or is there no more."""
        for state, change in ((before, -1), (after, 1)):
            if state:
                self.servers[domain, state] = self.servers.get((domain, state), 0) + change
