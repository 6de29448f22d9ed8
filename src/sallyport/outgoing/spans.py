"""The export of spans to an OpenTelemetry collector: OTLP over HTTP.

The service only puts finished logins into a queue, without waiting. If the queue is full because the collector is slow
or away, further logins are not exported, and are counted. Spans are encoded in a thread. The packages of the extra
`otel` are imported only by an exporter that runs.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeAlias

import httpx
import structlog
import trio

from sallyport import __version__
from sallyport.base.clock import BackOff
from sallyport.metrics import SpanMetrics
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import REPEATABLE, HttpFactory
from sallyport.settings.values import ANYWHERE

MAX_WAITING: Final = 8192
"""Maximum number of logins that wait for their export."""
BATCH: Final = 256
"""Maximum number of logins in one request. Encoding them takes some 8 ms, and the interpreter lock is given away in
between."""
PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 30.0
TIMEOUT_S: Final = 5.0
MAX_ANSWER: Final = 65_536
"""Maximum size of an answer in octets. A collector answers with a short message."""
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
        """Return the spans. A thread calls this method."""


class SpanExporter:
    """The exporter of one process.

    url: the address of the collector for traces, such as `http://127.0.0.1:4318/v1/traces`. node: the name of this
    node. The extra `otel` must be installed before `run` is called.
    """

    def __init__(self, url: str, node: str, metrics: SpanMetrics) -> None:
        self._url = httpx.URL(url)
        self._resource = {
            "service.name": "sallyport",
            "service.version": __version__,
            "service.instance.id": node,
        }
        self._metrics = metrics
        self._waiting = deque[Finished]()
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
        http = HttpFactory(egress=ANYWHERE)  # the operator of the service has chosen the collector
        origin = self._url.copy_with(raw_path=b"/")
        async with http(str(origin), timeout_s=TIMEOUT_S, most=MAX_ANSWER) as client:
            pause_s = PAUSE_S
            try:
                while True:
                    await trio.sleep(pause_s)
                    pause_s = await self._export(client)
            finally:
                with trio.move_on_after(LAST_S, shield=True):
                    await self._export(client)

    async def _export(self, client: httpx.AsyncClient) -> float:
        """Export what waits. Return the time until the next export, in seconds."""
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            error = "the export was cancelled"
            try:
                error = await self._send(client, batch)
            finally:
                self._metrics.exported(len(batch), is_taken=not error)
            self._tell(error)
            if error:
                return self._back_off.failed()
            self._back_off.worked()
        return PAUSE_S

    async def _send(self, client: httpx.AsyncClient, batch: Sequence[Finished]) -> str:
        """Send the spans of a batch. Return the reason if the collector does not take them. They are not sent again."""
        try:
            octets = await trio.to_thread.run_sync(self._encoded, batch, abandon_on_cancel=True)
            form = {"Content-Type": "application/x-protobuf"}
            answer = await client.post(self._url, content=octets, headers=form, extensions=REPEATABLE)
        except ProviderError as error:
            return str(error)
        except Exception as error:  # the next logins must be exported
            return f"error of the program: {error!r}"
        return "" if answer.is_success else f"{self._url.host}: HTTP {answer.status_code}"

    def _encoded(self, batch: Sequence[Finished]) -> bytes:
        from sallyport.outgoing.otlp import encode

        return encode((span for each in batch for span in each.spans()), self._resource)

    def _tell(self, error: str) -> None:
        """Log the first failure and the recovery."""
        if error and not self._is_failing:
            log.warning("spans_not_exported", error=error)
        elif self._is_failing and not error:
            log.info("span_export_recovered")
        self._is_failing = bool(error)
