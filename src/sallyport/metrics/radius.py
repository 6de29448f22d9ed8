"""Metrics of the RADIUS listeners."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import Durations, ReadCounter, ReadGauge, Tally, Values

DISCARDS: Final = (
    "bad_authenticator", "bad_message_authenticator", "duplicate", "internal_error", "malformed", "no_domain",
    "other_node", "overload", "proxy_state", "unknown_client", "unknown_type", "unsigned",
)  # fmt: skip
"""The reasons why a datagram gets no reply. RadSec has two more reasons: `handshake` and `slow_reader`."""


FROM_THE_START: Final = ("Access-Accept", "bad_authenticator", "bad_message_authenticator")


class RadiusMetrics:
    """Metrics of the RADIUS listeners. Label listener: `auth`, `acct` or `radsec`. Label type: the name of a packet
    type (RFC 2865)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.requests = Tally(registry, "sallyport_radius_requests", "Requests accepted.", ("listener", "type"))
        self.responses = Tally(registry, "sallyport_radius_responses", "Replies sent.", ("listener", "type"))
        self.discards = Tally(
            registry, "sallyport_radius_discards", "Datagrams that got no reply, by reason.", ("listener", "reason")
        )
        self.rounds = Tally(
            registry,
            "sallyport_radius_rounds",
            "Requests answered without an event: rounds of EAP, or challenges of an upstream server.",
            ("listener",),
        )
        self.seconds = Durations(
            registry,
            "sallyport_radius_request_duration_seconds",
            "Time from receipt to reply, without the delay of a reject and the wait for a second factor.",
            "type",
        )
        self.clients = Tally(
            registry,
            "sallyport_client_requests",
            "Requests of each RADIUS client, by outcome: the type of the reply, or the reason for no reply.",
            ("client", "outcome"),
        )

    def listen(self, listener: str) -> None:
        """Export the discards of a listener with the value 0 for each reason. Otherwise Prometheus would not see the
        first discard as an increase."""
        for reason in DISCARDS:
            self.discards.cell(listener, reason)

    def watch_clients(self, names: Callable[[], Iterable[str]]) -> None:
        """Export the numbers of requests and of wrong secrets of each RADIUS client with the value 0 before the first
        event.

        names: a function that returns the names of the clients. It is called at a scrape.
        """
        self.clients.expect(lambda: ((name, outcome) for name in names() for outcome in FROM_THE_START))

    def watch_listeners(self, in_flight: Values, drops: Values) -> None:
        """Set two functions that are called at a scrape.

        in_flight: returns how many requests are waiting. drops: returns how many datagrams the kernel has dropped.
        """
        ReadGauge(
            self._registry,
            "sallyport_radius_inflight_requests",
            "Requests that the service has not answered yet.",
            ("listener",),
            in_flight,
        )
        ReadCounter(
            self._registry,
            "sallyport_udp_receive_drops",
            "Datagrams dropped by the kernel.",
            ("listener",),
            drops,
        )

    def watch_radsec(self, connections: Values) -> None:
        """Set the function that returns the number of RadSec connections. The function is called at a scrape."""
        ReadGauge(
            self._registry,
            "sallyport_radsec_connections",
            "RADIUS servers and devices connected over TLS.",
            (),
            connections,
        )


class DynamicMetrics:
    """Metrics of the Disconnect and CoA requests that the service sends to NASes (RFC 5176). The labels of these
    metrics:

    kind: `disconnect` or `change`. outcome: `ack`, `nak`, `timeout`, `unreachable` or `unknown client`.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Tally(
            registry,
            "sallyport_dynamic_requests",
            "Disconnect and CoA requests to devices, by outcome: ack, nak, timeout, unreachable, unknown client.",
            ("kind", "outcome"),
        )
        outcomes = ("ack", "nak", "timeout", "unreachable", "unknown client")
        self.requests.expect(lambda: ((kind, each) for kind in ("disconnect", "change") for each in outcomes))
