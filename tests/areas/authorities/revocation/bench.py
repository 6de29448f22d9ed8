"""A bench for tests of revocation: the parts of one node, and a small HTTP server with lists and a responder."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio
from cryptography import x509
from prometheus_client import CollectorRegistry

from sallyport.areas.authorities.revocation.certified import CertifiedUsers
from sallyport.areas.authorities.revocation.fetching import ListFetcher
from sallyport.areas.authorities.revocation.responders import Responders
from sallyport.areas.authorities.revocation.revoked_repo import RevokedCertificates
from sallyport.areas.authorities.revocation.service import RevocationChecks
from sallyport.areas.authorities.revocation.sources import RevocationLists
from sallyport.areas.authorities.revocation.state import RevocationRules, RevocationState
from sallyport.metrics import RevocationMetrics
from sallyport.nodes.notices import NoNotices
from sallyport.outgoing.http import HttpFactory
from sallyport.settings.values import ANYWHERE
from sallyport.store.model import Engine, Tx
from tests.areas import SetClock
from tests.areas.authorities.revocation.issuer import Issuer
from tests.areas.mfa.web import Call, Reply, WebServer, serving

CA = Issuer.new()


@dataclass
class Bench:
    """The revocation of one authority.

    published: the body that the server answers for each path. held: for a path, the number of all calls before which
    the server does not answer. authorities: the rules of each authority, by its id. ended: the users whose sessions
    were ended, as (domain_id, name).
    """

    store: Engine
    clock: SetClock
    server: WebServer
    published: dict[str, bytes]
    calls: list[Call]
    lists: RevocationLists
    responders: Responders
    checks: RevocationChecks
    fetcher: ListFetcher
    registry: CollectorRegistry
    certified: CertifiedUsers
    ended: list[tuple[int, str]]
    held: dict[str, int]
    authorities: dict[int, RevocationRules] = field(default_factory=dict)

    def url(self, path: str) -> str:
        """Return an address of the server."""
        return f"http://127.0.0.1:{self.server.port}{path}"

    def rules(self, **given: object) -> RevocationRules:
        """Set and return the rules of the authority."""
        fields: dict[str, object] = {"authority_id": 1, "tenant_id": 1, "bundle": CA.pem, **given}
        rules = RevocationRules(**fields)  # type: ignore[arg-type]
        self.authorities[rules.authority_id] = rules
        self.lists.tell()
        return rules

    async def fetched(self, path: str, authority_id: int = 1) -> None:
        """Wait until the list of a path was fetched."""
        with trio.fail_after(30):
            while (found := self.lists.of(authority_id).get(self.url(path))) is None or not found.row.checked_at:
                await self.lists.changed.wait()

    async def fetched_again(self, path: str) -> None:
        """Let the leader fetch the list of a path again, and wait until it has."""
        before = self.lists.of(1)[self.url(path)].row
        self.clock.pass_by(6 * 3600 + 1)
        with trio.fail_after(30):
            await self.lists.look_again(1)
            while self.lists.of(1)[self.url(path)].row.checked_at <= before.checked_at:
                await self.lists.changed.wait()

    async def state(self, certificate: x509.Certificate, rules: RevocationRules) -> RevocationState:
        """Return the state of a certificate of the authority."""
        with trio.fail_after(30):
            return await self.checks.state([certificate, CA.certificate], rules)

    def count(self, name: str, result: str) -> float:
        """Return the value of a counter."""
        return self.registry.get_sample_value(f"sallyport_{name}_total", {"result": result}) or 0.0


@asynccontextmanager
async def running(store: Engine, clock: SetClock) -> AsyncIterator[Bench]:
    """Yield a bench whose leader fetches lists. Its responder answers as the test says by `published["/ocsp"]`."""
    published: dict[str, bytes] = {}
    calls: list[Call] = []
    held: dict[str, int] = {}

    async def answer(call: Call) -> Reply:
        calls.append(call)
        while len(calls) < held.get(call.path, 0):
            await trio.sleep(0.01)
        body = published.get(call.path)
        return Reply(404, b"") if body is None else Reply(200, body)

    async with serving(answer) as server, trio.open_nursery() as nursery:
        registry = CollectorRegistry()
        metrics, http = RevocationMetrics(registry), HttpFactory(egress=ANYWHERE)
        lists = RevocationLists(store, NoNotices(), clock)
        responders = Responders(http, clock, metrics, RevokedCertificates(store, clock))
        authorities: dict[int, RevocationRules] = {}
        fetcher = ListFetcher(lists, store, http, clock, lambda: authorities, metrics)
        checks = RevocationChecks(lists, responders, clock)
        ended: list[tuple[int, str]] = []

        def revoke(_tx: Tx, domain_id: int, names: Sequence[str], _reason: str) -> None:
            ended.extend((domain_id, name) for name in names)

        certified = CertifiedUsers(store, store, checks, lists, responders, clock, lambda: authorities, revoke)
        bench = Bench(
            store, clock, server, published, calls, lists, responders, checks, fetcher, registry, certified, ended,
            held, authorities,
        )  # fmt: skip
        await lists.load()
        nursery.start_soon(lists.follow)
        nursery.start_soon(fetcher.lead)
        nursery.start_soon(certified.run)
        yield bench
        nursery.cancel_scope.cancel()
