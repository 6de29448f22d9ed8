"""Answers of cloud services in JSON over HTTP: providers of second factors, directories, and identity providers.

An input is a list of answers, one in a line. The first octet of a line chooses the status, and the text before a tab is
the header `Link`. The first line chooses the client. After the last answer, the server cannot be reached.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl

import httpx
import trio
from joserfc import jwt
from joserfc.jwk import ECKey
from trio.testing import MockClock

from sallyport.areas.directory.entry.entry import Batch, Gone
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.graph import GraphReader, GraphSource
from sallyport.areas.directory.reading.okta import OktaReader, OktaSource
from sallyport.areas.mfa.host import ConfiguredProvider
from sallyport.areas.mfa.provider import Answer, Code, Outcome, ProviderError
from sallyport.areas.mfa.providers import BUILT_IN
from sallyport.base.clock import SECOND
from sallyport.base.errors import Refused
from sallyport.base.secret import Secret
from sallyport.outgoing.http import USER_AGENT, HttpFactory, ServerTransport
from sallyport.outgoing.openid.client import Flow, OpenIdClient, Registration
from sallyport.outgoing.pool import MAX_BODY, HttpAnswer
from sallyport.outgoing.tls import client_context
from tests.areas.directory.reading import okta_server as okta_directory
from tests.areas.directory.reading.graph_server import CLIENT_ID, CLIENT_SECRET, TENANT, GraphServer
from tests.areas.mfa import duo_server, hook_server, okta_server
from tests.areas.mfa.host import USER, make_host, question
from tests.areas.mfa.web import Call, Handler, WebServer

PORT: Final = 8080
HOST: Final = f"127.0.0.1:{PORT}"
"""The name of all services, as the servers of the tests write it into links. No socket is opened."""
URL: Final = f"http://{HOST}"
STATUS: Final = {b"2": 200, b"4": 404, b"1": 401, b"3": 403, b"0": 410, b"9": 400, b"5": 503, b"8": 429, b"6": 302}
NOW: Final = 1_767_225_600
NONCE: Final = "nonce"
FIELDS: Final[Mapping[str, Mapping[str, object]]] = {
    "duo": {"ikey": duo_server.IKEY, "skey": duo_server.SKEY, "host": HOST},
    "okta": {"domain": HOST, "apiToken": okta_server.TOKEN},
    "webhook": {"url": f"{URL}/hook", "secret": hook_server.SECRET},
    "privacyidea": {"url": URL, "adminToken": "token"},
}
"""The configuration of each provider of second factors that answers in JSON."""


class Cloud(HttpFactory):
    """A factory of clients. respond: the server, which raises httpx.ConnectError if it cannot be reached."""

    def __init__(self, respond: Callable[[httpx.Request], Awaitable[HttpAnswer]]) -> None:
        super().__init__(verify=_TRUST)
        self._respond = respond

    def __call__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        most: int = MAX_BODY,
    ) -> httpx.AsyncClient:
        transport = _Transport(self.egress, _TRUST, httpx.URL(base_url), most)
        transport.respond = self._respond
        sent = {"User-Agent": USER_AGENT, **(headers or {})}
        return httpx.AsyncClient(base_url=base_url, headers=sent, timeout=timeout_s, transport=transport)


_TRUST: Final = client_context()


class _Transport(ServerTransport):
    """A transport that gets its answers from a function."""

    respond: Callable[[httpx.Request], Awaitable[HttpAnswer]]

    async def fetch(
        self, request: httpx.Request, most: int = MAX_BODY, *, is_repeatable: bool | None = None
    ) -> HttpAnswer:
        return await self.respond(request)


def cloud(octets: bytes) -> None:
    """The answers of a cloud service are understood, or the documented error is raised."""
    first, *lines = octets.split(b"\n")
    client = CLIENTS[first[0] % len(CLIENTS) if first else 0]

    async def respond(request: httpx.Request) -> HttpAnswer:
        if not lines:
            raise httpx.ConnectError("no further answer")
        return answer_of(lines.pop(0))

    trio.run(client, Cloud(respond), clock=MockClock(autojump_threshold=0))


def answer_of(line: bytes) -> HttpAnswer:
    """Return the answer of a line of the input."""
    link, tab, body = line[1:].partition(b"\t")
    headers = [(b"link", link)] if tab else []
    return HttpAnswer(STATUS.get(line[:1], 200), headers, body if tab else link)


def line_of(answer: HttpAnswer) -> bytes:
    """Return the line of an answer."""
    first = next((octet for octet, status in STATUS.items() if status == answer.status), b"2")
    link = b", ".join(value for name, value in answer.headers if name.lower() == b"link")
    return first + (link + b"\t" if link else b"") + answer.body.replace(b"\n", b" ")


def _second_factor(name: str) -> Callable[[HttpFactory], Awaitable[None]]:
    kind: type[ConfiguredProvider] = next(each for each in BUILT_IN if each.name == name)

    async def ask(http: HttpFactory) -> None:
        """Ask a provider as logins do. No answer is an error of another kind than ProviderError."""
        provider = kind(kind.fields.model_validate(FIELDS[name]), make_host(http=http))
        found: list[Answer] = []
        with contextlib.suppress(ProviderError):
            await provider.enrolled(USER)
        with contextlib.suppress(ProviderError):
            found.append(await provider.start(question()))
        for each in [each for each in found if each.outcome is Outcome.WAITING]:
            with contextlib.suppress(ProviderError):
                found.append(await provider.poll(each.handle))
        with contextlib.suppress(ProviderError):
            found.append(await provider.verify(question(), Code("123456"), found[0].handle if found else ""))
        with contextlib.suppress(ProviderError):
            await provider.cancel(found[0].handle if found else "")
        for each in found:
            json.dumps([each.handle, each.text], ensure_ascii=False).encode()
        await provider.aclose()

    return ask


async def _graph(http: HttpFactory) -> None:
    source = GraphSource(TENANT, CLIENT_ID, Secret(CLIENT_SECRET.encode()), URL, URL, devices=True)
    with contextlib.suppress(ReadError):
        async with GraphReader(http).read(source) as batches:
            await _read(batches)


async def _okta(http: HttpFactory) -> None:
    source = OktaSource(URL, "", Secret(okta_directory.TOKEN.encode()))
    with contextlib.suppress(ReadError):
        async with OktaReader(http, lambda: NOW * SECOND).read(source) as batches:
            await _read(batches)


async def _read(batches: AsyncIterator[Batch]) -> None:
    async for batch in batches:
        for entry in batch.entries:
            assert isinstance(entry, Gone) or str(entry).encode()


async def _openid(http: HttpFactory) -> None:
    client = OpenIdClient(http, lambda: NOW * SECOND)
    provider = Registration("idp", "the provider", URL, "client", lambda: "secret")
    flow = Flow("https://sallyport.example/back", "state", NONCE, "v" * 43)
    with contextlib.suppress(Refused):
        assert (await client.address(provider, flow)).startswith(("https://", URL))
    with contextlib.suppress(Refused):
        claims, _ = await client.claims(provider, flow, {"state": "state", "code": "code"}, "192.0.2.1")
        assert (claims["iss"], claims["nonce"]) == (URL, NONCE)
    end = await client.end_address(provider, "", "https://sallyport.example/")
    assert not end or end.startswith(("https://", URL))


CLIENTS: Final = (*map(_second_factor, FIELDS), _graph, _okta, _openid)
"""The clients, by the first octet of an input."""


def recorded(number: int, server: Handler) -> bytes:
    """Return the input with the answers that a server of the tests gives to a client."""
    lines = [bytes((number,))]

    async def respond(request: httpx.Request) -> HttpAnswer:
        path, _, query = request.url.raw_path.decode().partition("?")
        headers = {name.lower(): value for name, value in request.headers.items()}
        is_form = headers.get("content-type") == "application/x-www-form-urlencoded"
        sent = request.content.decode() if is_form else query
        reply = await server(Call(request.method, path, dict(parse_qsl(sent, True)), headers, request.content))
        headers_of_reply = [(name.encode(), value.encode()) for name, value in reply.headers.items()]
        answer = HttpAnswer(reply.status, headers_of_reply, json.dumps(reply.document).encode())
        lines.append(line_of(answer))
        return answer

    trio.run(CLIENTS[number], Cloud(respond), clock=MockClock(autojump_threshold=0))
    return b"\n".join(lines)


def answers() -> Iterator[bytes]:
    """Yield the first inputs: what the servers of the tests answer."""
    web = WebServer(hook_server.HookServer())
    web.port = PORT
    duo, okta, hook = duo_server.DuoServer(), okta_server.OktaServer(), hook_server.HookServer()
    duo.web = okta.web = hook.web = web
    yield from (recorded(number, server) for number, server in enumerate((duo, okta, hook)))
    hook.asks_for_code = True
    yield recorded(2, hook)
    document = {"result": {"status": True, "value": True}, "detail": {"transaction_id": "1", "message": "push"}}
    yield b"\3" + b"\n2" + "\n2".join([json.dumps(document)] * 4).encode()
    graph, directory = GraphServer(), okta_directory.OktaServer()
    graph.web = directory.web = web
    for number in range(3):
        graph.add_user(f"u{number}", f"user{number}@corp.example", businessPhones=["+1 555"], jobTitle=None)
        directory.add_user(f"u{number}", f"user{number}", "2026-01-01T08:00:00.000Z", email="a@b")
    graph.add_device("d1", "0f0f", "laptop", isCompliant=True)
    graph.add_group("g1", "vpn", "u1", "u2")
    directory.add_group("g1", "vpn", "2026-01-01T08:00:00.000Z", "u1", "u2")
    yield recorded(4, graph)
    yield recorded(5, directory)
    key = ECKey.generate_key("P-256", {"kid": "k"})
    claims = {"iss": URL, "aud": "client", "nonce": NONCE, "sub": "1", "exp": NOW + 60, "iat": NOW, "auth_time": NOW}
    token = jwt.encode({"alg": "ES256", "kid": "k"}, claims, key, algorithms=["ES256"])
    names = ("authorization_endpoint", "token_endpoint", "end_session_endpoint", "jwks_uri")
    discovery = {"issuer": URL, **{name: f"{URL}/{name}" for name in names}}
    documents: list[object] = [discovery, {"keys": [key.as_dict(private=False)]}, {"id_token": token}]
    yield b"\6" + b"".join(b"\n2" + json.dumps(each).encode() for each in documents)
