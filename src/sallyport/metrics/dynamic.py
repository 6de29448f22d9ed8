"""What is asked of NASes while a session lasts."""

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import Tally


class DynamicMetrics:
    """What NASes are asked about their sessions (RFC 5176). kind: disconnect, change. outcome: ack, nak, timeout,
    unreachable, unknown client."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Tally(
            registry, "sallyport_dynamic_requests", "Disconnect and CoA requests by outcome.", ("kind", "outcome")
        )
