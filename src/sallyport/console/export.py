"""CSV files of lists. A file is sent part by part, so that no list is in memory as a whole.

Each part is the table of the same page, at the address that the table of the part before names as the next one. The
parts of all files are read by a few tasks, and the tenants take turns. A file counts as a large answer of its tenant
while it is sent, however slowly the browser reads it.
"""

from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sallyport.base.errors import Refused, StoreError, TooMany
from sallyport.base.fair import FairLimiter
from sallyport.console.assets import Assets
from sallyport.console.guard import HEADERS
from sallyport.console.table import MAX_EXPORTED, Table
from sallyport.console.visit import Page, Visit
from sallyport.web import problem
from sallyport.web.console_pages import Context
from sallyport.web.content import LargeAnswers

READERS: Final = 2
"""Maximum number of parts that are read at the same time."""
OF_A_FILE: Final = 4 << 20
"""Number of octets that a file counts while it is sent: the size of a large part."""


class Exports:
    """The CSV files that are being sent. answers: the large answers of all tenants."""

    def __init__(self, assets: Assets, answers: LargeAnswers) -> None:
        self._assets = assets
        self._answers = answers
        self._turns: FairLimiter[int] = FairLimiter(READERS)

    async def part(self, page: Page, visit: Visit) -> Context | Response:
        """Return a page with one part of its table. Raises Refused, StoreError."""
        async with self._turns.slot(visit.caller.tenant_id):
            return await page.show(visit)

    async def response(self, page: Page, visit: Visit, first: Table) -> Response:
        """Return a CSV file. first: the table of the first part."""
        name = page.path.strip("/").partition("/")[0] or "list"
        headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}.csv"'}
        octets = await self.octets(visit, first, MAX_EXPORTED, has_titles=True)
        if first.next_url:
            return _File(self, self._answers, page, visit, first, octets, headers)
        response = Response(octets, headers=headers, media_type=_File.media_type)
        return self._answers.counted(response, visit.caller.tenant_id)

    async def octets(self, visit: Visit, table: Table, most: int, *, has_titles: bool = False) -> bytes:
        """Return the first rows of a part as CSV."""
        return await self._assets.in_turn(visit.caller.tenant_id, partial(table.csv, most=most, has_titles=has_titles))


class _File(Response):
    """A file of several parts. first, octets: the first part, as a table and as CSV. If a later part cannot be read,
    or if the session has ended, the connection is closed, so that the browser reports an incomplete file."""

    media_type = "text/csv; charset=utf-8"

    def __init__(
        self,
        exports: Exports,
        answers: LargeAnswers,
        page: Page,
        visit: Visit,
        first: Table,
        octets: bytes,
        headers: dict[str, str],
    ) -> None:
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._exports = exports
        self._answers = answers
        self._page = page
        self._visit = visit
        self._table: Table | None = first
        self._octets = octets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._answers.reserved(self._visit.caller.tenant_id, OF_A_FILE):
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                if await self._send_parts(send):
                    await send({"type": "http.response.body", "body": b""})
        except TooMany as error:
            await problem.response(error, scope["path"])(scope, receive, send)

    async def _send_parts(self, send: Send) -> bool:
        """Send all parts. Return False if a part cannot be read."""
        sent = 0
        while self._table is not None:
            await send({"type": "http.response.body", "body": self._octets, "more_body": True})
            sent += len(self._table.rows)
            following = self._table.next_url if sent < MAX_EXPORTED else ""
            self._table, self._octets = None, b""
            if following:
                visit = replace(self._visit, query=QueryParams(urlsplit(following).query))
                try:
                    if not await self._is_allowed():
                        return False
                    content = await self._exports.part(self._page, visit)
                except (Refused, StoreError):
                    return False
                table = None if isinstance(content, Response) else content.get("table")
                if not isinstance(table, Table):
                    return False
                self._table = table
                self._octets = await self._exports.octets(visit, table, MAX_EXPORTED - sent)
        return True

    async def _is_allowed(self) -> bool:
        """Return whether the session is still valid, and the person may still see the page. A slow browser reads a file
        for minutes."""
        person = await self._visit.services.sessions.again(self._visit.person.session.id)
        return person is not None and bool(person.roles & self._page.roles)
