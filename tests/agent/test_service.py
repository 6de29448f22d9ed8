"""The agents' client of the service. It distinguishes answers and refusals of the service from those of another
server.
"""

import re
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from sallyport.agent.service import ServiceClient
from sallyport.base.clock import BackOff
from sallyport.base.errors import ConfigError, ServiceAway, ServiceRefused
from sallyport.base.secret import Secret
from tests.agent.scripted import HANG, answer, scripted
from tests.radius.eap.certificates import Authority


@pytest.fixture
def reach() -> Iterator[Callable[..., ServiceClient]]:
    """Return a function that creates clients. They are closed after the test."""
    made: list[ServiceClient] = []

    def make(url: str, **options: Any) -> ServiceClient:
        made.append(ServiceClient(url, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


OK = answer(200, {"code": 200, "message": "done"})
KEY = Secret(b"spk_the-key")


def test_an_operation(reach: Callable[..., ServiceClient]) -> None:
    """The body is JSON, the key is a Bearer token, and the connection stays open for the next request."""
    with scripted(OK, OK) as server:
        service = reach(server.url + "/base/")
        for _ in range(2):
            assert service.post("/api/v1/x", {"a": "ü", "b": [1]}, key=KEY) == {"code": 200, "message": "done"}
    assert server.connections == 1
    head, body = server.requests[0]
    assert head.startswith("POST /base/api/v1/x HTTP/1.1\r\n")
    assert "authorization: bearer spk_the-key" in head.lower()
    assert body == {"a": "ü", "b": [1]}


def test_a_connection_that_was_closed_meanwhile(reach: Callable[..., ServiceClient]) -> None:
    """If the connection was closed, the request is sent once more on a new one.

    A service that never answers is unreachable.
    """
    with scripted(OK, b"", OK, b"", b"") as server:
        service = reach(server.url)
        for _ in range(2):
            assert service.post("/x", {})["code"] == 200
        with pytest.raises(ServiceAway, match="closed"):
            service.post("/x", {})
    assert len(server.requests) == 5
    assert server.connections == 3


def test_an_old_connection_is_not_used_again(reach: Callable[..., ServiceClient]) -> None:
    """A connection that was idle for long is replaced by a new one."""
    now = [0.0]
    with scripted(OK, OK) as server:
        service = reach(server.url, clock=lambda: now[0])
        service.post("/x", {})
        now[0] = 60.0
        service.post("/x", {})
    assert server.connections == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413])
def test_a_refusal_has_the_message_of_the_service(reach: Callable[..., ServiceClient], status: int) -> None:
    """The error of a refusal has the message of the service's error body, without control characters."""
    body = {"code": status, "status": "Failure", "message": "no \x1b[31m such"}
    with scripted(answer(status, body)) as server, pytest.raises(ServiceRefused, match=r"^no \?\[31m such$") as caught:
        reach(server.url).post("/x", {})
    assert caught.value.status == status


OTHER_SERVERS = {
    "a portal's page": answer(200, b"<html>log in</html>", kind="text/html"),
    "a redirect": answer(302, b"", headers={"Location": "https://elsewhere.example/"}),
    "a proxy's refusal": answer(401, b"denied", kind="text/plain"),
    "another's error": answer(403, {"error": "denied"}),
    "another's number": answer(403, {"code": 200, "message": "denied"}),
    "busy": answer(503, {"code": 503, "message": "the store does not take requests"}),
    "too often": answer(429, {"code": 429, "message": "too many"}, headers={"Retry-After": "7"}),
    "an array": answer(200, []),
    "no JSON": answer(200, b"{"),
    "deep JSON": answer(200, b"[" * 100_000),
    "half an answer": answer(200, {"code": 200})[:-3],
    "half a chunk": b"HTTP/1.1 200 x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
    "not HTTP": b"SSH-2.0-OpenSSH\r\n",
    "endless headers": b"HTTP/1.1 200 x\r\n" + b"X: y\r\n" * 1000,
    "endless line": b"HTTP/1.1 200 " + b"x" * 100_000,
    "a length that is none": b"HTTP/1.1 200 x\r\nContent-Type: application/json\r\nContent-Length: -5\r\n\r\n{",
    "nothing": b"",
}


@pytest.mark.parametrize("name", OTHER_SERVERS)
def test_an_answer_of_another_server(reach: Callable[..., ServiceClient], name: str) -> None:
    """An answer that comes from another server counts as an unreachable service."""
    with scripted(OTHER_SERVERS[name]) as server, pytest.raises(ServiceAway) as caught:
        reach(server.url).post("/x", {})
    assert caught.value.after_s == (7.0 if name == "too often" else 0.0)
    assert str(caught.value).isprintable()


def test_an_answer_without_end(reach: Callable[..., ServiceClient]) -> None:
    """An endless answer is read up to a limit, and then the connection is closed."""
    head = b"HTTP/1.1 200 x\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n"
    with scripted(head + b" " * (17 << 20)) as server, pytest.raises(ServiceAway, match="longer than"):
        reach(server.url).post("/x", {})


def test_a_service_that_does_not_answer(reach: Callable[..., ServiceClient]) -> None:
    """The timeout covers the whole request."""
    with scripted(HANG) as server, pytest.raises(ServiceAway, match="no answer in time"):
        reach(server.url).post("/x", {}, timeout_s=0.2)


def test_a_refused_connection(reach: Callable[..., ServiceClient]) -> None:
    """If nothing listens at the address, the error has the reason that the system gives."""
    with scripted() as server:
        pass
    with pytest.raises(ServiceAway, match="refused"):
        reach(server.url).post("/x", {})


@pytest.mark.parametrize(
    "url",
    [
        "", "sallyport", "ftp://127.0.0.1", "http://sallyport.example", "http://192.0.2.1", "https://",
        "https://user:hunter2@sallyport.example", "https://sallyport.example?hunter2", "https://sallyport.example/#a",
        "https://sallyport.example:0", "https://sallyport.example:99999", "https://a b", "https://é.example",
        "https://a\nb", "https://[::1", "http://127.0.0.1.example",
    ],
)  # fmt: skip
def test_malformed_urls(url: str) -> None:
    """A malformed URL is refused, and the error does not repeat a value that may be a password. Plain HTTP is accepted
    only for this machine.
    """
    with pytest.raises(ConfigError, match=r"^service: ") as caught:
        ServiceClient(url)
    assert "hunter2" not in str(caught.value)


def test_tls(reach: Callable[..., ServiceClient], tmp_path: Path) -> None:
    """A certificate is accepted if the configured authority issued it for the name of the host. A certificate of
    another authority or for another name is not.
    """
    authority = Authority(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certificate("", [x509.DNSName("localhost")]).file)
    with scripted(OK, tls=context) as server:
        service = reach(f"https://localhost:{server.port}", ca_certificate=authority.file)
        assert service.post("/x", {}, key=KEY)["code"] == 200
        service.close()
        for host, file in (("127.0.0.1", authority.file), ("localhost", Authority(other).file), ("localhost", None)):
            with pytest.raises(ServiceAway, match="the certificate is not trusted"):
                reach(f"https://{host}:{server.port}", ca_certificate=file).post("/x", {}, key=KEY)
    assert len(server.requests) == 1


def test_a_malformed_certificate_file(tmp_path: Path) -> None:
    """A malformed certificate file is refused, and the error names it."""
    path = tmp_path / "ca.pem"
    for content in (None, b"no certificate"):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ConfigError, match=re.escape(str(path))):
            ServiceClient("https://sallyport.example", ca_certificate=path)


def test_waits_double_up_to_a_limit() -> None:
    """The wait doubles with each failure, and a success resets it."""
    waits = BackOff(first_s=1, most_s=10, chance=lambda: 0.0)
    assert [waits.failed() for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    waits.worked()
    assert waits.failed() == 1


def test_no_two_agents_wait_alike() -> None:
    """Each wait is shortened by a random part of up to half, so that agents do not all reconnect at once."""
    assert BackOff(first_s=8, chance=lambda: 1.0).failed() == 4
    assert len({BackOff(first_s=8).failed() for _ in range(20)}) > 1


def test_the_service_may_ask_for_time() -> None:
    """Retry-After sets the wait, within the limit."""
    waits = BackOff(first_s=1, most_s=10, chance=lambda: 0.0)
    assert waits.failed(5) == 5
    assert waits.failed(10**9) == 10
