"""The RADIUS listeners."""

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from sallyport.metrics.instruments import Durations, Read, Tally, Values

MAX_CLIENTS = 1000
OTHER = "other"


class RadiusMetrics:
    """The RADIUS listeners. listener: auth, acct or radsec. type: a packet's name (RFC 2865)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.requests = Tally(registry, "sallyport_radius_requests", "Requests accepted.", ("listener", "type"))
        self.responses = Tally(registry, "sallyport_radius_responses", "Replies sent.", ("listener", "type"))
        self.discards = Tally(
            registry, "sallyport_radius_discards", "Datagrams not answered, by reason.", ("listener", "reason")
        )
        self.rounds = Tally(
            registry, "sallyport_radius_rounds", "Requests that decided nothing and have no event.", ("listener",)
        )
        self.seconds = Durations(
            registry, "sallyport_radius_request_duration_seconds", "Time from receipt to reply.", "type"
        )
        self.clients = Tally(
            registry, "sallyport_client_requests", "Requests of each RADIUS client, by outcome.", ("client", "outcome")
        )
        self._client_names: set[str] = set()

    def client_label(self, name: str) -> str:
        """The label of a RADIUS client: its name, or `other` past the first thousand."""
        if name in self._client_names or len(self._client_names) < MAX_CLIENTS:
            self._client_names.add(name)
            return name
        return OTHER

    def watch_listeners(self, in_flight: Values, drops: Values) -> None:
        """Read what waits, and what the kernel dropped for want of buffer, when somebody scrapes."""
        Read(
            self._registry,
            lambda: GaugeMetricFamily(
                "sallyport_radius_inflight_requests", "Requests that wait for their answer.", labels=("listener",)
            ),
            in_flight,
        )
        Read(
            self._registry,
            lambda: CounterMetricFamily(
                "sallyport_udp_receive_drops", "Datagrams dropped by the kernel.", labels=("listener",)
            ),
            drops,
        )

    def watch_radsec(self, connections: Values) -> None:
        """Read how many RadSec connections there are when somebody scrapes."""
        Read(
            self._registry,
            lambda: GaugeMetricFamily("sallyport_radsec_connections", "RADIUS servers and devices connected over TLS."),
            connections,
        )
