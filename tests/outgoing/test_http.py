"""Tests of HTTP for providers: a request ends with a response or a ProviderError, and connects only to allowed
addresses."""

import gzip
import resource
import socket
import ssl
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from sallyport.areas.mfa.contract import HTTP_FAILURES, Behaviour
from sallyport.base.trace import Trace, following
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory, json_array, json_object, link_of, member, text_at
from sallyport.outgoing.pool import MAX_BODY
from sallyport.settings.values import ANYWHERE
from tests.areas.mfa.certificates import self_signed
from tests.areas.mfa.web import Call, Reply, WebServer, serving


async def echo(call: Call) -> Reply:
    """Answer with the request."""
    return Reply(200, {"path": call.path, "parameters": call.parameters, "headers": call.headers})


async def ask(server: WebServer, url: str = "/x", http: HttpFactory | None = None) -> httpx.Response:
    """Send one GET."""
    async with (http or HttpFactory(egress=ANYWHERE))(f"http://127.0.0.1:{server.port}") as client:
        return await client.get(url)


class NamedHosts:
    """A DNS for the test.

    answers: the addresses that each look-up returns, in order, whatever the name is.
    """

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)

    def look_up(self, host: str, port: int, kind: socket.SocketKind) -> Sequence[str]:
        """Return the next answer."""
        addresses = self.answers.pop(0)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        return addresses


async def test_connections_are_reused() -> None:
    """Requests that follow each other share a connection. Concurrent requests have their own connections."""
    async with serving(echo) as server, HttpFactory(egress=ANYWHERE)(f"http://127.0.0.1:{server.port}") as client:
        for _ in range(5):
            await client.get("/x")
        assert server.connections == 1
        server.behave(Behaviour.SILENT)
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(client.get, "/x")
                while server.requests < 105:
                    await trio.sleep(0.01)
                nursery.cancel_scope.cancel()
        assert server.connections == 100
        server.behave(Behaviour.APPROVE)
        assert (await client.get("/x")).status_code == 200


async def test_headers_of_a_request() -> None:
    """Each request has the service's User-Agent and asks for an uncompressed response. Cookies are not sent back."""

    async def cookies(call: Call) -> Reply:
        assert "cookie" not in call.headers
        assert call.headers["user-agent"].startswith("Sallyport/")
        assert call.headers["accept-encoding"] == "identity"
        return Reply(200, {}, {"Set-Cookie": "sid=1"})

    async with serving(cookies) as server, HttpFactory(egress=ANYWHERE)(f"http://127.0.0.1:{server.port}") as client:
        for _ in range(2):
            await client.post("/x", data={"a": "1"})


async def test_only_traced_servers_learn_the_trace() -> None:
    """A factory for servers of the login sends `traceparent`, with the limits of its tenant. No other factory does, and
    none outside of a request."""
    plain = HttpFactory(egress=ANYWHERE).of(7)
    traced = plain.traced(is_sampled=False)
    async with serving(echo) as server:
        before = (await ask(server, http=traced)).json()["headers"]
        with following(trace := Trace("1" * 32, "2" * 16)):
            found = [(await ask(server, http=each)).json()["headers"] for each in (plain, traced)]
    assert [each.get("traceparent") for each in (before, *found)] == [None, None, trace.header(is_sampled=False)]
    assert traced.egress is plain.egress


@pytest.mark.parametrize("failure", sorted(HTTP_FAILURES - {Behaviour.SILENT, Behaviour.RUBBISH, Behaviour.EMPTY}))
async def test_each_failure_names_the_host_and_the_cause(failure: Behaviour) -> None:
    """Each kind of failure raises a ProviderError."""
    said = {
        Behaviour.BROKEN_OFF: "is incomplete",
        Behaviour.NO_PROTOCOL: "not HTTP",
        Behaviour.HUGE: f"more than {MAX_BODY // 1024} KiB",
        Behaviour.REDIRECT: "redirect",
        Behaviour.FAIL: "HTTP 500",
        Behaviour.BUSY: "429",
    }
    async with serving(echo) as server:
        server.behave(failure)
        with pytest.raises(ProviderError, match=rf"127\.0\.0\.1: .*{said[failure]}") as raised:
            await ask(server)
        assert raised.value.limited == (failure == Behaviour.BUSY)
        assert server.requests == 1


async def test_time_is_limited_for_the_whole_answer() -> None:
    """The timeout applies to the whole answer, even if its octets arrive slowly one by one."""

    async def trickle(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            await stream.send_all(b"x")
            await trio.sleep(0.02)

    async def serve(stream: trio.SocketStream) -> None:
        try:
            await trickle(stream)
        except trio.BrokenResourceError:
            await stream.aclose()

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        async with HttpFactory(egress=ANYWHERE)(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(ProviderError, match="no answer in time"), trio.fail_after(5):
                await client.get("/", timeout=0.2)
        nursery.cancel_scope.cancel()


async def test_a_closed_port_is_a_provider_error() -> None:
    async with serving(echo) as server:
        pass
    with pytest.raises(ProviderError, match="no connection"):
        await ask(server)


@pytest.mark.parametrize(
    "url", ["http://localhost:1/", "https://127.0.0.1/", "http://evil.example/", "ftp://127.0.0.1/"]
)
async def test_a_url_at_another_origin_is_refused(url: str) -> None:
    """A URL with another origin is refused before a connection is made."""
    async with serving(echo) as server:
        with pytest.raises(ProviderError):
            await ask(server, url)
        assert server.connections == 0


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("/next?a=b", "http://api.example/next?a=b"),
        ("http://api.example:80/next", "http://api.example/next"),
        ("//api.example/next", "http://api.example/next"),
    ],
)
async def test_a_link_of_an_answer(text: str, link: str) -> None:
    """A relative link and a link to the same origin are read as a URL."""
    async with HttpFactory()("http://api.example") as client:
        assert link_of(client, text) == link


@pytest.mark.parametrize(
    "text",
    [
        "http://[::1",
        "http://api.example:x/",
        "http://api.example/\x00",
        "http://api.example/" + "x" * 20_000,
        "http://api.example.evil.example/",
        "http://api.example:81/",
        "https://api.example/",
        "ftp://api.example/",
        "//evil.example/",
        "http://user@api.example/",
        "mailto:a@api.example",
    ],
    ids=lambda text: text[:40],
)
async def test_another_link_is_a_provider_error(text: str) -> None:
    """A text that is no URL, a URL with a user, and a URL at another origin raise a ProviderError."""
    async with HttpFactory()("http://api.example") as client:
        with pytest.raises(ProviderError, match=r"^api\.example: the link in the answer (is|belongs)"):
            link_of(client, text)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "17"}, 17.0),
        ({"Date": "Fri, 20 Nov 2026 10:00:00 GMT", "Retry-After": "Fri, 20 Nov 2026 10:00:30 GMT"}, 30.0),
        ({"Date": "Fri, 20 Nov 2026 10:00:00 GMT", "X-Rate-Limit-Reset": "1795168840"}, 40.0),
        ({"Retry-After": "soon"}, 5.0),
        ({"Retry-After": "-1"}, 5.0),
        ({}, 5.0),
    ],
)
async def test_a_429_sets_the_pause(headers: dict[str, str], wait_s: float) -> None:
    """The pause is set by Retry-After in either form, or by X-Rate-Limit-Reset relative to the server's clock."""

    async def busy(call: Call) -> Reply:
        return Reply(429, {}, headers)

    async with serving(busy) as server:
        with pytest.raises(ProviderError) as refused:
            await ask(server)
    assert (refused.value.retry_after_s, refused.value.limited) == (wait_s, True)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", b"x"), ("gzip, gzip", gzip.compress(gzip.compress(bytes(100 << 20)))), ("br", b"x"), ("x-own", b"x")],
    ids=["no gzip", "a bomb", "no brotli", "an unknown encoding"],
)
async def test_compressed_answers_are_refused(encoding: str, body: bytes) -> None:
    """A compressed answer is refused and not decompressed, because it was not requested."""

    async def compressed(call: Call) -> Reply:
        return Reply(200, body, {"Content-Encoding": encoding})

    async with serving(compressed) as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ProviderError, match="compressed"):
            await ask(server)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10


async def test_no_cookie_is_parsed() -> None:
    """Cookies of answers are neither kept nor parsed: a hostile one would take the parser 0.4 s."""

    async def with_cookies(call: Call) -> Reply:
        return Reply(200, {}, {"Set-Cookie": "a=b; Path=/"})

    async with (
        serving(with_cookies) as server,
        HttpFactory(egress=ANYWHERE)(f"http://127.0.0.1:{server.port}") as client,
    ):
        for _ in range(2):
            answer = await client.get("/x")
        assert [*client.cookies.jar] == []
        policy = client.cookies.jar._policy
        assert isinstance(policy, DefaultCookiePolicy) and not (policy.netscape or policy.rfc2965)
    assert "cookie" not in answer.request.headers


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"null", b"\xff", b"[" * 200_000, b'{"a": ' + b"9" * 9000])
def test_a_malformed_json_object_is_a_provider_error(body: bytes) -> None:
    """A body that is not a JSON object raises a ProviderError, and so does a body that would exhaust a parser."""
    with pytest.raises(ProviderError):
        json_object(httpx.Response(200, content=body))


@pytest.mark.parametrize("part", [b"{}", b"[]"])
def test_json_of_many_parts_is_refused(part: bytes) -> None:
    """JSON with too many parts is refused, because it would be decoded in one step on the event loop."""
    with pytest.raises(ProviderError, match="20,000 objects and arrays"):
        json_array(httpx.Response(200, content=b"[" + (part + b",") * 20_000 + b"1]"))


def test_values_of_a_json_answer() -> None:
    """A value that is missing or has the wrong type counts as absent.

    Lone surrogates are replaced, because no codec accepts them.
    """
    document = json_object(httpx.Response(200, content=b'{"a": {"b": "x", "c": 7, "d": "\\ud800"}}'))
    assert text_at(document, "a", "b") == "x"
    assert text_at(document, "a", "c") == text_at(document, "a", "b", "c") == text_at(None, "a") == ""
    assert member(document, "a", "c") == 7
    assert text_at(document, "a", "d") == "?"
    assert json_array(httpx.Response(200, content=b"[1]")) == [1]
    with pytest.raises(ProviderError):
        json_array(httpx.Response(200, content=b"{}"))


# --- TLS ------------------------------------------------------------------------------------------------------


async def test_wrong_certificates_are_refused(tmp_path: Path) -> None:
    """An untrusted certificate is refused before a request is sent, and so is a certificate for another name.

    A trusted certificate for the host name is accepted.
    """
    context, chain = self_signed(tmp_path, "localhost")
    foreign, foreign_chain = self_signed(tmp_path, "other.example")

    async def get(port: int, trusted: Path | None) -> httpx.Response:
        verify = None if trusted is None else ssl.create_default_context(cafile=str(trusted))
        async with HttpFactory(egress=ANYWHERE, verify=verify)(f"https://localhost:{port}") as client:
            return await client.get("/")

    async with serving(echo, tls=context) as server, serving(echo, tls=foreign) as other:
        with pytest.raises(ProviderError, match="certificate is not trusted"):
            await get(server.port, None)
        with pytest.raises(ProviderError, match="certificate is not trusted: Hostname mismatch"):
            await get(other.port, foreign_chain)
        assert server.requests == other.requests == 0
        assert (await get(server.port, chain)).status_code == 200


@pytest.mark.parametrize(
    ("made", "trusted", "reason"),
    [
        pytest.param(
            {"issuer": "Example Root"}, False, "its issuer is unknown: CN=Example Root; trust it", id="issuer"
        ),
        pytest.param({}, False, "it signed itself: CN=localhost; trust it by the system", id="itself"),
        pytest.param({"since": timedelta(days=-9)}, True, "it expired on .*renew it", id="expired"),
        pytest.param({"since": timedelta(days=9)}, True, "it is not valid before .*clocks", id="not yet"),
        pytest.param({"host": "a.example"}, True, "the certificate is for a.example, and not for localhost", id="name"),
    ],
)
async def test_the_message_for_a_refused_certificate(
    tmp_path: Path, made: dict[str, Any], trusted: bool, reason: str
) -> None:
    """The message contains the remedy and either the issuer, the end date or the names of the certificate.

    No request is sent.
    """
    context, chain = self_signed(tmp_path, **{"host": "localhost", **made})
    verify = ssl.create_default_context(cafile=str(chain)) if trusted else None
    async with serving(echo, tls=context) as server:
        async with HttpFactory(egress=ANYWHERE, verify=verify)(f"https://localhost:{server.port}") as client:
            with pytest.raises(ProviderError, match=f"its certificate is not trusted: .*{reason}"):
                await client.get("/")
        assert server.requests == 0


async def test_https_to_a_plain_http_port_is_a_provider_error() -> None:
    async with serving(echo) as server, HttpFactory(egress=ANYWHERE)(f"https://localhost:{server.port}") as client:
        with pytest.raises(ProviderError, match="no TLS connection"):
            await client.get("/")


# --- egress ---------------------------------------------------------------------------------------------------


async def test_forbidden_addresses_are_not_connected_to() -> None:
    """An address outside the allowed networks is refused without a connection."""
    async with serving(echo) as server:
        with pytest.raises(ProviderError, match="address not allowed"):
            await ask(server, http=HttpFactory(egress=[ip_network("192.0.2.0/24")]))
        assert server.connections == 0
    async with HttpFactory()("http://169.254.169.254") as client:
        with pytest.raises(ProviderError, match="address not allowed"):
            await client.get("/latest/meta-data/")


async def test_the_checked_address_is_the_one_connected_to() -> None:
    """The addresses come from one look-up, and the forbidden ones are not used."""
    resolver = NamedHosts(["169.254.169.254", "127.0.0.1"], ["169.254.169.254"], [])
    http = HttpFactory(egress=[ip_network("127.0.0.0/8")], look_up=resolver.look_up)
    async with serving(echo) as server:
        for _ in range(3):
            async with http(f"http://rebind.example:{server.port}") as client:
                if len(resolver.answers) == 3:
                    answer = json_object(await client.get("/"))
                    assert text_at(answer, "headers", "host") == f"rebind.example:{server.port}"
                else:
                    with pytest.raises(ProviderError, match=r"address not allowed|no address"):
                        await client.get("/")
        assert server.connections == 1
    assert resolver.answers == []


async def test_the_next_address_is_tried() -> None:
    """If one address of a host cannot be reached, another address of the host is used."""
    http = HttpFactory(egress=ANYWHERE, look_up=NamedHosts(["127.0.0.2", "127.0.0.1"]).look_up)
    async with serving(echo) as server, http(f"http://two.example:{server.port}") as client:
        assert (await client.get("/")).status_code == 200
