"""A person's browser without JavaScript: it has cookies, follows links and sends forms.

async def test_it(site: Site) -> None:
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token())
        page = await visitor.get("/account")
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape

import httpx
import trio
from pyotp import TOTP
from starlette.types import ASGIApp

from sallyport.base.clock import SECOND
from sallyport.console.running import Running
from sallyport.service.commands import commands
from sallyport.service.operations import console, gate_of, operations, pages
from sallyport.web.app import create_app
from sallyport.web.content import LargeAnswers
from sallyport.web.operation import Operations
from sallyport.web.scope import Role
from tests.areas import Areas, SetClock

PASSWORD = "a horse and 42 batteries"
_TOKEN = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


class _Stream(httpx.AsyncByteStream):
    """A body that the service need not read to its end. Of httpx's own streams, an unread part is a warning."""

    def __init__(self, octets: bytes) -> None:
        self._left = [octets]

    def __aiter__(self) -> "_Stream":
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


class Visitor:
    """A browser. http: its client, which has the cookies."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Return a page, without following a redirect."""
        return await self.http.get(path, headers=headers)

    async def send(self, path: str, fields: dict[str, str] | None = None, *, page: str = "") -> httpx.Response:
        """Send a form with the form token of its page. page: the address of the page if it is another one."""
        shown = await self.get(page or path)
        found = _TOKEN.search(shown.text)
        assert found, f"no form on {page or path}: {shown.status_code} {shown.text[:300]}"
        return await self.http.post(path, data={"csrf": found[1], **(fields or {})})

    async def send_file(self, path: str, fields: dict[str, str], name: str, octets: bytes) -> httpx.Response:
        """Send a form with a file, with the form token of its page."""
        found = _TOKEN.search((await self.get(path)).text)
        assert found, f"no form on {path}"
        return await self.post_file(path, {"csrf": found[1], **fields}, name, octets)

    async def post_file(
        self, path: str, fields: dict[str, str], name: str, octets: bytes, **headers: str
    ) -> httpx.Response:
        """Send fields and a file as they are."""
        form = httpx.Request("POST", "http://form", data=fields, files={"file": (name, octets)})
        url, headers = self.http.base_url.join(path), {**headers, **form.headers, "host": self.http.base_url.host}
        stream = _Stream(form.read())
        return await self.http.send(
            httpx.Request("POST", url, headers=headers, stream=stream, cookies=self.http.cookies)
        )

    async def sign_in(self, token: str, **fields: str) -> httpx.Response:
        """Send the form for an access token."""
        return await self.send("/sign-in", {"token": token, **fields})

    async def sign_in_as(self, name: str, code: str, password: str = PASSWORD) -> httpx.Response:
        """Send the form for a local administrator."""
        return await self.send("/sign-in", {"name": name, "password": password, "code": code})

    async def is_signed_in(self, **headers: str) -> bool:
        """Return whether the browser has a valid session."""
        return (await self.get("/account", **headers)).status_code == 200


@dataclass
class Site:
    """The console over the areas. declared: the operations that it runs. running: its slow actions, which run only if a
    test starts them. answers: the large answers that are being sent."""

    areas: Areas
    clock: SetClock
    app: ASGIApp
    declared: list[Operations]
    running: Running
    answers: LargeAnswers

    @asynccontextmanager
    async def visitor(self, source: str = "127.0.0.1", base: str = "https://console.example") -> AsyncIterator[Visitor]:
        """Yield a browser. source: its address. base: the address of the service, with its scheme."""
        transport = httpx.ASGITransport(self.app, client=(source, 50000))
        async with httpx.AsyncClient(transport=transport, base_url=base) as http:
            yield Visitor(http)

    async def token(self, role: Role = Role.ADMIN, *, org: int = 1, tenant: int = 1) -> str:
        """Return a new access token."""
        _, token = await self.areas.tenancy.create_token(org, tenant, role, role.value, None)
        return token

    async def administrator(self, name: str = "root", role: Role = Role.INSTALLATION) -> str:
        """Add a local administrator with PASSWORD, and return the seed of its codes."""
        tenant = None if role is Role.INSTALLATION else self.areas.tenant
        _, seed = await self.areas.administrators.add(name, PASSWORD, role, tenant)
        return seed

    def code(self, seed: str) -> str:
        """Return the present one-time code of a seed."""
        return TOTP(seed).at(self.clock.now // SECOND)

    async def audited(self, action: str) -> list[str]:
        """Return the targets of the entries of the audit trail with an action, the oldest first."""
        sql = "select target from audit_trail where action = :action order by id"
        rows = await self.areas.store.read(lambda tx: tx.rows(sql, action=action))
        return [str(row[0]) for row in rows]


def site_of(areas: Areas, clock: SetClock) -> Site:
    """Return the console over areas."""
    gate = gate_of(areas.app)
    declared = operations(areas.app, gate)
    site = console(areas.app, gate, declared, commands(areas.app), trio.Event())
    app = create_app(
        declared,
        version="1",
        observe=lambda *_: None,
        not_ready=lambda: [],
        metrics=None,
        pages=pages(areas.app, gate, site),
        unknown=site.unknown,
    )
    return Site(areas, clock, app, declared, site.running, gate.answers)


def text_of(page: httpx.Response) -> str:
    """Return the text of a page without its elements, with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.text.replace("<wbr>", ""))).split())
