"""Logins over the wire with the first factor `web`: ann exists only in Entra ID, and signs in there on a page."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

import trio

from sallyport.areas.domains.domain import FirstFactor, Mode
from sallyport.areas.domains.repo import Update
from sallyport.areas.factors.stepup.stepup import Proof, Shown
from sallyport.areas.mfa.own import Own
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.clock import SECOND
from sallyport.radius.attributes import REPLY_MESSAGE
from tests.areas import Areas
from tests.areas.directory.reading.graph_server import GraphServer
from tests.areas.directory.test_partial_objects import entra
from tests.areas.directory.world import at_work, over
from tests.areas.factors.stepups import LAPTOP, SITE, STATION, with_pages
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import a_login, events, exchange
from tests.areas.login.listen.test_second_factor_own import _CODE, VPN, Desk
from tests.areas.mfa.web import serving
from tests.console.provider import CLIENT, SECRET, Provider, providing
from tests.packets import attributes

ANN, EVE = "ann@corp.example", "eve@corp.example"
OIDS = {ANN: "3f2a7c1e-0b1d-4c55-9d0e-6f1a2b3c4d5e", EVE: "8a7b6c5d-0b1d-4c55-9d0e-6f1a2b3c4d5e"}
ASKED, OVER = "second factor asked for", "the challenge is unknown, over or another's"


def at(address: str, *, port: str = "tunnel 7") -> bytes:
    """Return the attributes of a login of a client with an address at the VPN gateway."""
    return attributes(CALLING_STATION_ID=address.encode(), NAS_PORT_ID=port.encode(), NAS_IDENTIFIER=b"vpn-1")


@dataclass
class WebDesk(Desk):
    """Ann at her laptop, the company's identity provider, and the company's directory."""

    company: Provider | None = None
    graph: GraphServer | None = None

    @property
    def areas(self) -> Areas:
        """The areas of the service."""
        return self.wire.areas

    async def provide(self, **fields: object) -> None:
        """Configure the provider."""
        assert self.company is not None
        own = {"factors": "oidc", "issuer": self.company.issuer, "clientId": CLIENT, "clientSecret": SECRET}
        await super().provide(**own | {"userClaim": "oid", "userIs": "directory_id"} | fields)

    async def set_web(self) -> None:
        """Set the first factor."""
        domain = self.areas.domains.table.present(self.areas.domain)
        await self.areas.login.first_settings.set(domain, FirstFactor.WEB, {})

    async def login(
        self,
        body: bytes = VPN,
        *,
        signed: bool = True,
        user: str = "ann",
        password: str = "anything",  # noqa: S107
    ) -> tuple[int, Mapping[int, bytes]]:
        """Log in with some password, and remember the code in the challenge."""
        answer, found = await self.ask(a_login(body, user=user, password=password, signed=signed))
        if code := _CODE.search(found.get(REPLY_MESSAGE, b"")):
            self.code = code[1].decode()
        return answer, found

    async def ask(self, datagram: bytes) -> tuple[int, Mapping[int, bytes]]:
        """Send a request, and return the answer."""
        return await exchange(self.wire, datagram)

    async def sign_in(self, user: str = ANN, browser: str = LAPTOP, source: str = STATION) -> Proof:
        """Open the page, and sign in at the company as a user. Raises Forbidden for another user."""
        shown = await self.open(browser, source)
        assert shown is not None
        return await self.prove_as(shown, user, browser, source)

    async def prove_as(self, shown: Shown, user: str, browser: str = LAPTOP, source: str = STATION) -> Proof:
        """Sign in at the company for an open page."""
        assert self.company is not None
        self.company.claims = {"oid": OIDS[user], "auth_time": self.areas.clock() // SECOND}
        sign_ins = self.areas.app.factors.sign_ins
        back = await self.company.visit(await sign_ins.address(shown, browser))
        answer = dict(parse_qsl(urlsplit(back).query))
        strength = await sign_ins.prove(shown, str(self.areas.domain), browser, answer, source)
        return await self.stepups.prove(shown.id, browser, "oidc", strength, source)

    async def read_directory(self) -> None:
        """Read the company's directory."""
        assert self.graph is not None
        await self.areas.directory.directories.save([(self.areas.domain, entra(self.graph))])
        async with at_work(self.areas):
            job = await over(self.areas, await self.areas.directory.directories.sync(self.areas.domain, "c"))
        assert job.state == "DONE", job.message

    async def reason(self) -> str:
        """Return the reason of the last event."""
        return (await events(self.areas))[-1].reason

    async def add_rule(self, **fields: object) -> int:
        """Add a login rule."""
        return await self.areas.rules.add(self.areas.domain, RuleFields.model_validate(fields))


@asynccontextmanager
async def web_desk(areas: Areas, *, is_web: bool = True) -> AsyncIterator[WebDesk]:
    """Yield ann's desk, in a domain that enforces. Ann is in the group vpn. is_web: whether the first factor is set."""
    stepups, graph = with_pages(areas, "oidc"), GraphServer()
    areas.app.factors.sign_ins._site = SITE
    await areas.domains.update(areas.domain, Update(add_realms=["corp.example"]))
    await areas.client("192.0.2.0/24", name="Berlin")
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    Own.empty_s = 0.0
    try:
        async with (
            serving(graph) as graph.web,
            providing(lambda: areas.clock() // SECOND) as company,
            trio.open_nursery() as nursery,
        ):
            for name, oid in OIDS.items():
                graph.add_user(oid, name)
            graph.add_group("g1", "vpn", OIDS[ANN])
            desk = WebDesk(Wire(areas, nursery), stepups, company=company, graph=graph)
            await desk.read_directory()
            await desk.provide()
            if is_web:
                await desk.set_web()
            yield desk
            nursery.cancel_scope.cancel()
    finally:
        Own.empty_s = 3.0
