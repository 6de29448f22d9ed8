"""Resolution of did:web documents on other hosts. They are fetched over HTTPS from configured hosts, checked and
cached.
"""

import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest

from sallyport.areas.did.crypto.documents import ASSERTION, Method, of_methods, web_did
from sallyport.areas.did.dids.resolver import KEPT_S, MAX_SIZE, Resolver
from sallyport.areas.mfa.contract import Behaviour
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON
from sallyport.outgoing.http import HttpFactory
from sallyport.settings.values import Network
from tests.areas import Areas
from tests.areas.did.crypto.signers import HOLDER
from tests.areas.mfa.certificates import self_signed
from tests.areas.mfa.web import Call, Reply, WebServer, serving

KEPT = 3
LOOPBACK: Sequence[Network] = [ip_network("127.0.0.0/8")]


class Time:
    """A clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Host:
    """A web server of another organization with did:web documents, and a resolver of this service that uses it."""

    def __init__(self, server: WebServer, resolver: Resolver, time: Time) -> None:
        self.server = server
        self.resolver = resolver
        self.time = time
        self.documents: dict[str, Reply] = {}
        self.asked: list[Call] = []

    def did(self, *path: str) -> str:
        """Return the DID that has this path."""
        return web_did(f"https://localhost:{self.server.port}", *path)

    def publish(self, did: str, at: str, **changes: JSON) -> None:
        """Publish the document of a DID at a path. The document has the holder's key."""
        document = of_methods(did, [Method(f"{did}#1", HOLDER.key.public)]).content
        self.documents[at] = Reply(200, {**document, **changes})

    async def answer(self, call: Call) -> Reply:
        """Return the published document."""
        self.asked.append(call)
        return self.documents.get(call.path, Reply(404, "nothing"))

    async def refused(self, did: str) -> str:
        """Return the reason for which a DID is not resolved."""
        with pytest.raises(CredentialError) as error:
            await self.resolver.resolve(did)
        return error.value.reason


@asynccontextmanager
async def hosting(
    areas: Areas, directory: Path, *, named: bool = True, egress: Sequence[Network] = LOOPBACK
) -> AsyncIterator[Host]:
    """Serve a host on loopback. named: whether the setting did_web_hosts contains the host."""
    context, chain = self_signed(directory, "localhost")
    hosts: list[Host] = []

    async def answer(call: Call) -> Reply:
        return await hosts[0].answer(call)

    async with serving(answer, tls=context) as server:
        http = HttpFactory(egress=egress, verify=ssl.create_default_context(cafile=str(chain)))
        time = Time()
        resolver = Resolver(areas.store, http, [f"LOCALHOST:{server.port}"] if named else [], time, KEPT)
        hosts.append(Host(server, resolver, time))
        yield hosts[0]


async def test_a_document_is_fetched(areas: Areas, tmp_path: Path) -> None:
    """The document is fetched from the well-known path of the host or from another path and is read as a DID document.
    The request has no data of this service.
    """
    async with hosting(areas, tmp_path) as host:
        for did, place in ((host.did(), "/.well-known/did.json"), (host.did("user", "ann"), "/user/ann/did.json")):
            host.publish(did, place)
            document = await host.resolver.resolve(did)
            assert document.did == did
            assert document.key(f"{did}#1", ASSERTION) == HOLDER.key.public
        assert [call.path for call in host.asked] == ["/.well-known/did.json", "/user/ann/did.json"]
        assert all("application/did+json" in call.headers["accept"] for call in host.asked)
        assert not any({"authorization", "x-authorization", "cookie"} & call.headers.keys() for call in host.asked)


async def test_a_document_is_cached(areas: Areas, tmp_path: Path) -> None:
    """One request serves many look-ups. After some minutes the document is fetched again."""
    async with hosting(areas, tmp_path) as host:
        did = host.did("ann")
        host.publish(did, "/ann/did.json")
        first = await host.resolver.resolve(did)
        host.time.now += KEPT_S - 1
        assert await host.resolver.resolve(did) is first and len(host.asked) == 1
        host.time.now += 1
        host.publish(did, "/ann/did.json", assertionMethod=[])
        with pytest.raises(CredentialError, match="no key with this id"):
            (await host.resolver.resolve(did)).key(f"{did}#1", ASSERTION)
        assert len(host.asked) == 2


async def test_a_failure_is_not_cached(areas: Areas, tmp_path: Path) -> None:
    """A failure is not cached: a document that is published a moment later is found."""
    async with hosting(areas, tmp_path) as host:
        did = host.did("ann")
        assert await host.refused(did) == "unresolved"
        host.publish(did, "/ann/did.json")
        assert (await host.resolver.resolve(did)).did == did


async def test_the_cache_is_bounded(areas: Areas, tmp_path: Path) -> None:
    """When the cache is full, the oldest documents are evicted. The next look-up fetches them again."""
    async with hosting(areas, tmp_path) as host:
        dids = [host.did(f"u{number}") for number in range(KEPT + 1)]
        for number, did in enumerate(dids):
            host.publish(did, f"/u{number}/did.json")
            await host.resolver.resolve(did)
        for did in (dids[1], dids[-1]):
            await host.resolver.resolve(did)
        assert len(host.asked) == len(dids)
        await host.resolver.resolve(dids[0])
        assert len(host.asked) == len(dids) + 1


async def test_a_document_of_another_did_is_refused(areas: Areas, tmp_path: Path) -> None:
    """A document is refused if it has another id, has a method of another DID, or is not a DID document."""
    async with hosting(areas, tmp_path) as host:
        did, other = host.did("ann"), host.did("bob")
        host.publish(other, "/ann/did.json")
        assert await host.refused(did) == "malformed"
        stolen = [{"id": f"{other}#1", "controller": did, "publicKeyMultibase": HOLDER.key.public.multikey}]
        host.publish(did, "/ann/did.json", verificationMethod=stolen)
        assert await host.refused(did) == "malformed"
        odd = [{"id": f"{did}#1", "publicKeyJwk": {"kty": "OKP", "crv": crv}} for crv in ([], {})]
        for method in odd:
            host.publish(did, "/ann/did.json", verificationMethod=[method])
            assert (await host.resolver.resolve(did)).methods == ()
            host.time.now += KEPT_S
        for text in ("", "[]", "<html>", '{"id": 1, "id": 2}', json.dumps({"verificationMethod": []})):
            host.documents["/ann/did.json"] = Reply(200, text)
            assert await host.refused(did) == "malformed"
        host.documents["/ann/did.json"] = Reply(403, "{}")
        assert await host.refused(did) == "unresolved"


async def test_a_document_that_is_too_large_is_refused(areas: Areas, tmp_path: Path) -> None:
    """Reading stops at the limit, even if the host never ends the document."""
    async with hosting(areas, tmp_path) as host:
        did = host.did("ann")
        host.publish(did, "/ann/did.json", service=["x" * MAX_SIZE])
        assert await host.refused(did) == "unresolved"
        host.publish(did, "/ann/did.json", service=["x" * (MAX_SIZE - 2000)])
        assert (await host.resolver.resolve(did)).did == did
        host.server.behave(Behaviour.HUGE)
        assert await host.refused(host.did("bob")) == "unresolved"


@pytest.mark.parametrize("behaviour", [Behaviour.BROKEN_OFF, Behaviour.NO_PROTOCOL, Behaviour.REDIRECT, Behaviour.FAIL])
async def test_a_misbehaving_host_is_refused(areas: Areas, tmp_path: Path, behaviour: Behaviour) -> None:
    """A response that is not a document is refused. Redirects are not followed."""
    async with hosting(areas, tmp_path) as host:
        did = host.did("ann")
        host.publish(did, "/ann/did.json")
        host.server.behave(behaviour)
        assert await host.refused(did) == "unresolved"
        assert host.asked == []


async def test_no_connection_to_a_host_that_is_not_allowed(areas: Areas, tmp_path: Path) -> None:
    """The service does not connect to a host that is not configured, to another port of a configured host, or to an
    address that egress forbids.
    """
    async with hosting(areas, tmp_path, named=False) as host:
        assert await host.refused(host.did("ann")) == "unresolved"
        assert host.server.connections == 0
    async with hosting(areas, tmp_path) as host:
        assert await host.refused(f"did:web:localhost%3A{host.server.port - 1}:ann") == "unresolved"
        assert host.server.connections == 0
    async with hosting(areas, tmp_path, egress=[ip_network("192.0.2.0/24")]) as host:
        host.publish(host.did("ann"), "/ann/did.json")
        assert await host.refused(host.did("ann")) == "unresolved"
        assert host.server.connections == 0
