"""Foreign did:web: fetched over HTTPS from a host that was named, kept for a while, and taken only as what it is."""

import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest

from sallyport.base.errors import CredentialError
from sallyport.base.setting_values import Network
from sallyport.base.wire import JSON
from sallyport.did.crypto.documents import ASSERTION, Method, of_methods, web_did
from sallyport.did.dids.resolver import KEPT_S, LARGEST, Resolver
from sallyport.mfa.contract import Behaviour
from sallyport.outgoing.http import HttpFactory
from tests.areas import Areas
from tests.did.crypto.signers import HOLDER
from tests.mfa.certificates import self_signed
from tests.mfa.web import Call, Reply, WebServer, serving

KEPT = 3
LOOPBACK: Sequence[Network] = [ip_network("127.0.0.0/8")]


class Time:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Host:
    """A foreign web server with did:web documents, and this service's resolver of them."""

    def __init__(self, server: WebServer, resolver: Resolver, time: Time) -> None:
        self.server = server
        self.resolver = resolver
        self.time = time
        self.documents: dict[str, Reply] = {}
        self.asked: list[Call] = []

    def did(self, *path: str) -> str:
        """The DID of a place."""
        return web_did(f"https://localhost:{self.server.port}", *path)

    def publish(self, did: str, at: str, **changes: JSON) -> None:
        """A DID's document at a path, with the holder's key."""
        document = of_methods(did, [Method(f"{did}#1", HOLDER.key.public)]).content
        self.documents[at] = Reply(200, {**document, **changes})

    async def answer(self, call: Call) -> Reply:
        """The published documents."""
        self.asked.append(call)
        return self.documents.get(call.path, Reply(404, "nothing"))

    async def refused(self, did: str) -> str:
        """Why a DID is not resolved."""
        with pytest.raises(CredentialError) as error:
            await self.resolver.resolve(did)
        return error.value.reason


@asynccontextmanager
async def hosting(
    areas: Areas, directory: Path, *, named: bool = True, egress: Sequence[Network] = LOOPBACK
) -> AsyncIterator[Host]:
    """A host on loopback. named: in the setting did_web_hosts."""
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
    """From the host's well-known place or a path, as a DID document, with nothing of ours in the request."""
    async with hosting(areas, tmp_path) as host:
        for did, place in ((host.did(), "/.well-known/did.json"), (host.did("user", "ann"), "/user/ann/did.json")):
            host.publish(did, place)
            document = await host.resolver.resolve(did)
            assert document.did == did
            assert document.key(f"{did}#1", ASSERTION) == HOLDER.key.public
        assert [call.path for call in host.asked] == ["/.well-known/did.json", "/user/ann/did.json"]
        assert all("application/did+json" in call.headers["accept"] for call in host.asked)
        assert not any({"authorization", "x-authorization", "cookie"} & call.headers.keys() for call in host.asked)


async def test_a_document_is_kept_for_a_while(areas: Areas, tmp_path: Path) -> None:
    """One look-up serves many; after some minutes the host is asked again, and what it says then counts."""
    async with hosting(areas, tmp_path) as host:
        did = host.did("ann")
        host.publish(did, "/ann/did.json")
        first = await host.resolver.resolve(did)
        host.time.now += KEPT_S - 1
        assert await host.resolver.resolve(did) is first and len(host.asked) == 1
        host.time.now += 1
        host.publish(did, "/ann/did.json", assertionMethod=[])
        with pytest.raises(CredentialError, match="no such key"):
            (await host.resolver.resolve(did)).key(f"{did}#1", ASSERTION)
        assert len(host.asked) == 2


async def test_a_failure_is_not_kept(areas: Areas, tmp_path: Path) -> None:
    """A document that is published a moment later is found."""
    async with hosting(areas, tmp_path) as host:
        did = host.did("ann")
        assert await host.refused(did) == "unresolved"
        host.publish(did, "/ann/did.json")
        assert (await host.resolver.resolve(did)).did == did


async def test_as_many_are_kept_as_there_is_room_for(areas: Areas, tmp_path: Path) -> None:
    """Thousands of DIDs fill no memory: the oldest documents make room, and are fetched again."""
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


async def test_a_document_that_is_not_that_dids(areas: Areas, tmp_path: Path) -> None:
    """Another id, a method of another DID, and text that is no document are refused."""
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


async def test_a_document_that_is_too_large(areas: Areas, tmp_path: Path) -> None:
    """It is not read to its end, also where its host never ends it."""
    async with hosting(areas, tmp_path) as host:
        did = host.did("ann")
        host.publish(did, "/ann/did.json", service=["x" * LARGEST])
        assert await host.refused(did) == "unresolved"
        host.publish(did, "/ann/did.json", service=["x" * (LARGEST - 2000)])
        assert (await host.resolver.resolve(did)).did == did
        host.server.behave(Behaviour.HUGE)
        assert await host.refused(host.did("bob")) == "unresolved"


@pytest.mark.parametrize("behaviour", [Behaviour.BROKEN_OFF, Behaviour.NO_PROTOCOL, Behaviour.REDIRECT, Behaviour.FAIL])
async def test_a_host_that_misbehaves(areas: Areas, tmp_path: Path, behaviour: Behaviour) -> None:
    """What it sends is no document, and no redirect leads anywhere else."""
    async with hosting(areas, tmp_path) as host:
        did = host.did("ann")
        host.publish(did, "/ann/did.json")
        host.server.behave(behaviour)
        assert await host.refused(did) == "unresolved"
        assert host.asked == []


async def test_who_is_not_asked(areas: Areas, tmp_path: Path) -> None:
    """A host that the operator has not named, another port of a named host, and an address that egress forbids: no
    connection."""
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
