"""The spans of logins, at a collector that speaks OTLP over HTTP, and without one."""

import json
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final

import httpx
import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from sallyport.areas.login.spans import FinishedLogin
from sallyport.base.errors import ConfigError
from sallyport.metrics import SpanMetrics
from sallyport.outgoing import spans
from sallyport.outgoing.spans import MAX_WAITING, Finished, SpanExporter
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from sallyport.service.build import build
from sallyport.settings.settings import Settings
from tests.peers.hook import Hook
from tests.running_service import RunningService, running_service
from tests.waiting import eventually, until

SECRET = "a secret of these tests"
EXPORTED = "sallyport_exported_logins_total"
SCOPE = {"orgId": 1, "tenantId": 1, "domainId": 1}
LOGIN = FinishedLogin(
    None, 1_000_000, 1_500_000, 1_600_000, 200_000, 100_000, ("corp", "vpn", "pap", "local", "accept", "")
)


class Collector:
    """A collector. status: the status of its answers. gate: while it is not set, requests get no answer."""

    def __init__(self) -> None:
        self.received: list[ResourceSpans] = []
        self.bodies: list[bytes] = []
        self.status = 200
        self.gate = threading.Event()
        self.gate.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
                collector.gate.wait()
                if collector.status == 200:
                    collector.bodies.append(body)
                    collector.received += ExportTraceServiceRequest.FromString(body).resource_spans
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        return Handler

    def __enter__(self) -> "Collector":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def traces(self) -> dict[str, dict[str, Span]]:
        """Return the received spans by trace id and name."""
        found: dict[str, dict[str, Span]] = {}
        for resource in tuple(self.received):
            for span in resource.scope_spans[0].spans:
                found.setdefault(span.trace_id.hex(), {})[span.name] = span
        return found


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Yield a collector."""
    with Collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    """Yield the MFA provider."""
    with Hook() as hook:
        yield hook


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, collector: Collector, hook: Hook) -> Iterator[RunningService]:
    """Yield a service that exports spans, whose domain asks the provider for everyone but a user of a rule."""
    settings = {"SALLYPORT_OTLP_URL": collector.url, "SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_NODE_NAME": "n1"}
    with running_service(tmp_path_factory.mktemp("spans"), settings) as service:
        service.add_client("vpn", "127.0.0.1", SECRET)
        for name in ("kim-asked", "lee-known"):
            service.add_user(name, "hello")
        service.post("/ad/SetMFAProvider", {**SCOPE, "provider": "webhook", **hook.fields})
        service.post("/ad/AddLoginRule", {**SCOPE, "name": "known", "action": "allow", "users": ["lee-known"]})
        service.set_mode("default", "enforce")
        yield service


def attributes(span: Span) -> dict[str, str]:
    """Return the attributes of a span."""
    return {each.key: each.value.string_value for each in span.attributes}


def test_a_login_with_a_second_factor_is_four_spans(service: RunningService, collector: Collector, hook: Hook) -> None:
    """The whole contains the factors and the store. The provider got the id of the span of the second factor, and the
    event has the trace id. No span names the user.
    """
    hook.will("kim-asked", "approved")
    with service.radius(SECRET) as client:
        assert client.login("kim-asked", "hello") == ACCESS_ACCEPT
    (event,) = service.post("/ad/GetAuthLog", {**SCOPE, "search": "kim-asked"})["events"]
    by_trace = service.post("/ad/GetAuthLog", {**SCOPE, "traceId": event["traceId"]})
    assert (by_trace["events"], by_trace["totalCount"]) == ([event], 1)
    assert service.post("/ad/GetAuthLog", {**SCOPE, "traceId": event["traceId"][:-1]})["totalCount"] == 0
    found = service.ok("event", "list", "--domain", "default", "--trace-id", event["traceId"], "--json")
    assert [each["eventId"] for each in json.loads(found)] == [event["eventId"]]
    eventually(lambda: event["traceId"] in collector.traces())
    parts = collector.traces()[event["traceId"]]
    whole, first, second, store = (parts[name] for name in ("RADIUS login", "first factor", "second factor", "store"))
    (challenge,) = {each["challenge_id"] for each in hook.prompts}
    assert hook.traces[challenge] == {f"00-{event['traceId']}-{second.span_id.hex()}-01"}
    assert {each.parent_span_id for each in (first, second, store)} == {whole.span_id} and not whole.parent_span_id
    assert len({each.span_id for each in parts.values()}) == 4
    assert whole.start_time_unix_nano == first.start_time_unix_nano <= first.end_time_unix_nano
    assert first.end_time_unix_nano <= second.start_time_unix_nano < second.end_time_unix_nano
    assert second.end_time_unix_nano == store.start_time_unix_nano <= store.end_time_unix_nano
    assert store.end_time_unix_nano == whole.end_time_unix_nano
    asked_ms = (second.end_time_unix_nano - second.start_time_unix_nano) / 1e6
    assert asked_ms == pytest.approx(event["secondFactorMs"], abs=0.01)
    assert attributes(whole) == {
        "sallyport.domain": "default", "sallyport.client": "vpn", "sallyport.method": "pap",
        "sallyport.factor": "local+webhook", "sallyport.decision": "accept",
    }  # fmt: skip
    assert (whole.kind, second.kind) == (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_INTERNAL)
    resource = {each.key: each.value.string_value for each in collector.received[0].resource.attributes}
    assert (resource["service.name"], resource["service.instance.id"]) == ("sallyport", "n1")
    assert all(b"kim-asked" not in body for body in collector.bodies)


def test_a_login_that_is_decided_at_once_has_spans_too(service: RunningService, collector: Collector) -> None:
    """Its trace is in no event, because no other system knows it."""
    known = collector.traces().keys()
    with service.radius(SECRET) as client:
        assert client.login("lee-known", "hello") == ACCESS_ACCEPT
        assert client.login("lee-known", "wrong") == ACCESS_REJECT
    eventually(lambda: len(collector.traces()) >= len(known) + 2)
    found = [each for trace, each in collector.traces().items() if trace not in known]
    assert [sorted(each) for each in found] == [["RADIUS login", "first factor", "store"]] * 2
    whole = [attributes(each["RADIUS login"]) for each in found]
    assert {(each["sallyport.decision"], each.get("sallyport.reason")) for each in whole} == {
        ("accept", None), ("reject", "wrong password"),
    }  # fmt: skip


def test_a_collector_that_hangs_or_refuses_delays_no_login(service: RunningService, collector: Collector) -> None:
    """Logins are answered while the collector holds a request. What it refuses is counted, and not sent again."""
    collector.gate.clear()
    collector.status = 503
    try:
        with service.radius(SECRET) as client:
            for _ in range(20):
                assert client.login("lee-known", "hello") == ACCESS_ACCEPT
    finally:
        collector.gate.set()
    eventually(lambda: exported(service)["failed"] > 0)
    collector.status = 200
    eventually(lambda: sum(exported(service).values()) >= 23)
    assert '"event": "spans_not_exported"' in service.log() and "HTTP 503" in service.log()


def exported(service: RunningService) -> dict[str, float]:
    """Return the metric of exported logins by result."""
    text = httpx.get(f"http://127.0.0.1:{service.ports.http}/metrics", trust_env=False).text
    pairs = re.findall(r'sallyport_exported_logins_total\{result="(\w+)"\} (\S+)', text)
    return {"failed": 0.0} | {result: float(value) for result, value in pairs}


async def test_a_full_queue_drops(collector: Collector) -> None:
    """While the collector does not answer, the queue takes MAX_WAITING logins, and counts the others. The end of the
    exporter does not wait for the collector."""
    registry = CollectorRegistry()
    exporter = SpanExporter(collector.url, "n1", SpanMetrics(registry))
    collector.gate.clear()
    try:
        exporter.offer([LOGIN] * (MAX_WAITING - 1))
        exporter.offer([LOGIN] * 5)
        exporter.offer([LOGIN])
        assert registry.get_sample_value(EXPORTED, {"result": "dropped"}) == 5
        began = time.monotonic()
        with trio.move_on_after(0):
            await exporter.run()
        assert time.monotonic() - began < spans.TIMEOUT_S
    finally:
        collector.gate.set()


async def test_what_waits_is_exported_at_the_end(collector: Collector) -> None:
    """A service that stops exports its last logins."""
    exporter = SpanExporter(collector.url, "last", SpanMetrics(CollectorRegistry()))
    exporter.offer([LOGIN])
    with trio.move_on_after(0):
        await exporter.run()
    eventually(lambda: "last" in {each.resource.attributes[2].value.string_value for each in collector.received})


@pytest.mark.parametrize(
    ("login", "parts"),
    [
        (LOGIN, [(1_000_000, 1_200_000), (1_400_000, 1_500_000), (1_500_000, 1_600_000)]),
        (LOGIN._replace(first_us=0, second_us=0), [(1_000_000, 1_500_000), (1_500_000, 1_600_000)]),
        (LOGIN._replace(first_us=900_000, second_us=400_000), [(200_000, 1_100_000), (1_100_000, 1_500_000),
                                                              (1_500_000, 1_600_000)]),
        (LOGIN._replace(stored_at=0, second_us=0), [(1_000_000, 1_200_000), (1_500_000, 1_500_000)]),
    ],
    ids=["both waited", "neither waited", "rounds of EAP before the last request", "the clock was set back"],
)  # fmt: skip
def test_the_parts_of_a_login(login: FinishedLogin, parts: list[tuple[int, int]]) -> None:
    """Each part lies within the whole, and none ends before it begins."""
    whole, *found = login.spans()
    assert [(each.start_us, each.end_us) for each in found] == parts
    assert whole.start_us == parts[0][0] and whole.end_us == parts[-1][1]


def test_nothing_of_the_extra_is_imported_without_the_setting(tmp_path: Path) -> None:
    """A service without the setting does not import its packages."""
    code = (
        "import sys, sallyport.service.serve; "
        "print([each for each in sys.modules if each.startswith(('opentelemetry', 'google.protobuf'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "[]\n"


async def test_a_service_without_the_extra_refuses_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install. It comes before the store is opened, and only from a process that answers
    logins. Another package of OpenTelemetry does not help."""
    settings = Settings(data_dir=tmp_path, otlp_url="http://127.0.0.1:9/v1/traces")
    monkeypatch.delitem(sys.modules, "sallyport.outgoing.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.trace.v1", None)
    with pytest.raises(ConfigError, match=r"otlp_url needs .*pip install --require-hashes -r requirements-otel.lock$"):
        await stack(settings, joins=True)
    assert not settings.database_path.exists()
    await stack(settings, joins=False)
    assert settings.database_path.exists()


async def stack(settings: Settings, *, joins: bool) -> None:
    """Build a service, and end it."""
    async with build(settings, {}, joins=joins):
        pass


class Endless(socketserver.StreamRequestHandler):
    """Answers each request with a head, or with a body, that does not end. Each octet of the head comes at once."""

    part: ClassVar[bytes] = b"x"

    def handle(self) -> None:
        """Send until the client closes the connection."""
        self.connection.recv(65536)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
        if self.part is BODY:
            self.wfile.write(b"\r\n")
        with suppress(OSError):
            while True:
                self.wfile.write(self.part)
                time.sleep(0.001 if self.part is BODY else 0.05)


BODY: Final = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
HEAD: Final = b"x"


@pytest.mark.parametrize(
    ("part", "why"), [(BODY, "more than 64 KiB"), (HEAD, "no answer in time")], ids=["body", "head"]
)
async def test_an_endless_answer_is_not_read(part: bytes, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter reads a limited number of octets, for a limited time. Then its logins count as failed."""
    monkeypatch.setattr(spans, "TIMEOUT_S", 1.0 if part is HEAD else 30.0)
    handler = type("Handler", (Endless,), {"part": part})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            found = await failure(f"http://127.0.0.1:{server.server_address[1]}/v1/traces")
        finally:
            server.shutdown()
            thread.join()
    (told,) = found
    assert told.startswith("127.0.0.1: ") and told.endswith(why)


async def failure(url: str, *logins: Finished) -> list[str]:
    """Return the error that the log has after a failed export."""
    registry = CollectorRegistry()
    exporter = SpanExporter(url, "n1", SpanMetrics(registry))
    with capture_logs() as logged:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exporter.run)
            exporter.offer(logins or [LOGIN])
            await until(lambda: registry.get_sample_value(EXPORTED, {"result": "failed"}) == 1)
            nursery.cancel_scope.cancel()
    return [each["error"] for each in logged if each["event"] == "spans_not_exported"]


async def test_an_error_of_one_export_does_not_end_the_exporter(collector: Collector) -> None:
    """Its logins count as failed, and the next ones are exported."""

    class Faulty:
        def spans(self) -> Sequence[spans.Span]:
            raise LookupError("no such span")

    registry = CollectorRegistry()
    exporter = SpanExporter(collector.url, "goes on", SpanMetrics(registry))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exporter.run)
        exporter.offer([Faulty()])
        await until(lambda: registry.get_sample_value(EXPORTED, {"result": "failed"}) == 1)
        exporter.offer([LOGIN])
        await until(lambda: registry.get_sample_value(EXPORTED, {"result": "sent"}) == 1)
        nursery.cancel_scope.cancel()


async def test_the_log_says_why_spans_are_not_exported() -> None:
    """The text names the host of the collector, but not the path, which may be a secret."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (told,) = await failure(f"http://127.0.0.1:{port}/v1/secret")
    assert told == f"127.0.0.1: no connection: port {port} is closed; check the port, and that the server runs"
