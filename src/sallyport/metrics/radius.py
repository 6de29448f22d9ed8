"""The RADIUS listeners."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import Durations, Read, ReadCounter, Tally, Values

DISCARDS: Final = (
    "bad_authenticator", "bad_message_authenticator", "duplicate", "internal_error", "malformed", "no_domain",
    "overload", "proxy_state", "unknown_client", "unknown_type", "unsigned",
)  # fmt: skip
"""Why a datagram gets no answer. RadSec has two more: `handshake` and `slow_reader`."""


FROM_THE_START: Final = ("Access-Accept", "bad_authenticator", "bad_message_authenticator")


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
            registry,
            "sallyport_radius_request_duration_seconds",
            "From receipt to reply, without a reject's delay and the wait for a second factor.",
            "type",
        )
        self.clients = Tally(
            registry, "sallyport_client_requests", "Requests of each RADIUS client, by outcome.", ("client", "outcome")
        )

    def listen(self, listener: str) -> None:
        """Show a listener's discards from 0 on, so that the first of a kind is seen as an increase."""
        for reason in DISCARDS:
            self.discards.cell(listener, reason)

    def watch_clients(self, names: Callable[[], Iterable[str]]) -> None:
        """Show each RADIUS client before it is heard, and before its secret is wrong."""
        self.clients.expect(lambda: ((name, outcome) for name in names() for outcome in FROM_THE_START))

    def watch_listeners(self, in_flight: Values, drops: Values) -> None:
        """Read what waits, and what the kernel dropped for want of buffer, when somebody scrapes."""
        Read(
            self._registry,
            "sallyport_radius_inflight_requests",
            "Requests that wait for their answer.",
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
        """Read how many RadSec connections there are when somebody scrapes."""
        Read(
            self._registry,
            "sallyport_radsec_connections",
            "RADIUS servers and devices connected over TLS.",
            (),
            connections,
        )


class DynamicMetrics:
    """What NASes are asked about their sessions (RFC 5176). kind: disconnect, change. outcome: ack, nak, timeout,
    unreachable, unknown client."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Tally(
            registry, "sallyport_dynamic_requests", "Disconnect and CoA requests by outcome.", ("kind", "outcome")
        )
