"""The export of spans to an OpenTelemetry collector: OTLP over HTTP, from a thread of its own.

The event loop only puts what it has finished into a queue, without waiting. If the queue is full because the collector
is slow or away, further logins are not exported, and are counted. The packages of the extra `otel` are imported only by
an exporter.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeAlias

import httpx
import structlog
import trio

from sallyport import __version__
from sallyport.base.clock import BackOff
from sallyport.base.errors import ConfigError
from sallyport.metrics import SpanMetrics
from sallyport.outgoing.tls import client_context

NEEDED: Final = (
    "otlp_url needs the extra `otel`: pip install "
    f"'./sallyport_radius-{__version__}-py3-none-any.whl[otel]', with the path of your wheel"
)
MAX_WAITING: Final = 8192
"""Maximum number of logins that wait for their export."""
BATCH: Final = 256
"""Maximum number of logins in one request. Encoding them takes some 8 ms, and the interpreter lock is given away in
between."""
PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 30.0
TIMEOUT_S: Final = 5.0
LAST_S: Final = 1.0
"""Time that the last export has when the service stops."""

log = structlog.get_logger()

AttributeValue: TypeAlias = str | int | bool


class Span(NamedTuple):
    """A part of a trace. trace_id: 32 hexadecimal digits. span_id, parent_id: 16 hexadecimal digits; parent_id is empty
    in the root. start_us, end_us: microseconds since 1970. is_server: whether the span answers a request of another
    system."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start_us: int
    end_us: int
    attributes: Mapping[str, AttributeValue]
    is_server: bool = False


class Finished(Protocol):
    """A finished piece of work with its spans."""

    def spans(self) -> Sequence[Span]:
        """Return the spans. The exporter's thread calls this method."""


Encode: TypeAlias = Callable[[Iterable[Span], Mapping[str, AttributeValue]], bytes]


class SpanExporter:
    """The exporter of one process.

    url: the address of the collector for traces, such as `http://127.0.0.1:4318/v1/traces`. node: the name of this
    node. Raises ConfigError if the extra is not installed.
    """

    def __init__(self, url: str, node: str, metrics: SpanMetrics) -> None:
        if find_spec("opentelemetry") is None:
            raise ConfigError(NEEDED)
        from sallyport.outgoing.otlp import encode

        self._encode: Encode = encode
        self._url = url
        self._resource = {
            "service.name": "sallyport",
            "service.version": __version__,
            "service.instance.id": node,
        }
        self._metrics = metrics
        self._waiting = deque[Finished]()
        self._stop = threading.Event()
        self._back_off = BackOff(first_s=PAUSE_S, most_s=MAX_PAUSE_S)
        self._is_failing = False

    def offer(self, finished: Sequence[Finished]) -> None:
        """Add finished work to the queue, or count it as dropped if the queue is full. Never waits."""
        room = max(0, MAX_WAITING - len(self._waiting))
        self._waiting.extend(islice(finished, room))
        if len(finished) > room:
            self._metrics.dropped(len(finished) - room)

    async def run(self) -> None:
        """Export until cancelled. Then export what waits, for at most LAST_S."""
        thread = threading.Thread(target=self._work, name="spans", daemon=True)
        thread.start()
        try:
            await trio.sleep_forever()
        finally:
            self._stop.set()
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(thread.join, LAST_S)

    def _work(self) -> None:
        pause_s = PAUSE_S
        with httpx.Client(verify=client_context(), timeout=TIMEOUT_S, trust_env=False) as client:
            while not self._stop.wait(pause_s):
                pause_s = self._export(client)
            self._export(client)

    def _export(self, client: httpx.Client) -> float:
        """Export what waits. Return the time until the next export, in seconds."""
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            error = self._send(client, batch)
            self._metrics.exported(len(batch), is_taken=not error)
            if error:
                self._tell(error)
                return self._back_off.failed()
            self._tell("")
            self._back_off.worked()
        return PAUSE_S

    def _send(self, client: httpx.Client, batch: Sequence[Finished]) -> str:
        """Send the spans of a batch. Return the reason if the collector does not take them. They are not sent again."""
        try:
            octets = self._encode((span for each in batch for span in each.spans()), self._resource)
            answer = client.post(self._url, content=octets, headers={"Content-Type": "application/x-protobuf"})
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return type(error).__name__
        return "" if answer.is_success else f"HTTP {answer.status_code}"

    def _tell(self, error: str) -> None:
        """Log the first failure and the recovery."""
        if error and not self._is_failing:
            log.warning("spans_not_exported", error=error)
        elif self._is_failing and not error:
            log.info("span_export_recovered")
        self._is_failing = bool(error)
