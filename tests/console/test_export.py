"""CSV files of long lists: they are sent part by part, and count as large answers of their tenant."""

import httpx
import trio
import trio.testing
from starlette.types import Message

from sallyport.areas.clients.service import NewClient
from sallyport.console.export import OF_A_FILE
from sallyport.console.table import MAX_EXPORTED
from sallyport.web.bodies import LONG
from sallyport.web.content import MAX_OCTETS_SENT
from tests.console.visitor import Site, Visitor

CLIENTS = 2 * LONG + 5


async def add_clients(site: Site, count: int) -> None:
    """Add RADIUS clients with the names `client 0`, `client 1` and so on."""
    new = [NewClient(f"client {number}", f"10.{number >> 8}.{number & 255}.1/32", b"s") for number in range(count)]
    await site.areas.clients.add_all(site.areas.tenant, new)


class Download:
    """A browser that downloads a CSV file. It reads the first piece at once, and the others after `reads`."""

    def __init__(self, site: Site, visitor: Visitor) -> None:
        cookie = f"__Host-sallyport={visitor.http.cookies['__Host-sallyport']}".encode()
        self._site = site
        self._scope = httpx.URL("https://console.example/clients?format=csv&column=name")
        self._headers = [(b"host", b"console.example"), (b"cookie", cookie)]
        self.began, self.reads, self.ended = trio.Event(), trio.Event(), trio.Event()
        self.status = 0
        self.pieces: list[bytes] = []
        self.is_complete = False

    async def run(self) -> None:
        """Send the request, and receive the answer."""
        scope = {
            "type": "http", "http_version": "1.1", "method": "GET", "scheme": "https", "path": self._scope.path,
            "raw_path": self._scope.path.encode(), "query_string": self._scope.query, "root_path": "",
            "client": ("127.0.0.1", 50000), "server": ("console.example", 443), "state": {},
            "headers": self._headers,
        }  # fmt: skip
        await self._site.app(scope, self._receive, self._send)
        self.ended.set()

    async def _receive(self) -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.pieces.append(message["body"])
        self.is_complete = not message.get("more_body", False)
        self.began.set()
        await self.reads.wait()


async def test_a_file_is_sent_part_by_part(site: Site, admin: Visitor, nursery: trio.Nursery) -> None:
    """A part is read from the store when the browser has read the part before. The file has each row once, and counts
    as a large answer until it is read."""
    await add_clients(site, CLIENTS)
    download, octets = Download(site, admin), site.answers.octets
    nursery.start_soon(download.run)
    await download.began.wait()
    await trio.testing.wait_all_tasks_blocked()
    assert len(download.pieces[0].splitlines()) == LONG + 1
    assert (len(download.pieces), octets[site.areas.tenant]) == (1, OF_A_FILE)
    download.reads.set()
    await download.ended.wait()
    assert download.is_complete
    lines = b"".join(download.pieces).decode().split()
    assert lines[0] == "Client"
    assert lines[2::2] == [str(number) for number in range(CLIENTS)]
    assert octets[site.areas.tenant] == 0


async def test_a_file_ends_with_its_session(site: Site, admin: Visitor, nursery: trio.Nursery) -> None:
    """If the session ends while a browser reads the first part, the browser gets no other part and no complete file."""
    await add_clients(site, CLIENTS)
    download = Download(site, admin)
    nursery.start_soon(download.run)
    await download.began.wait()
    for session in await site.areas.console_sessions.everything():
        await site.areas.console_sessions.end(session.id)
    download.reads.set()
    await download.ended.wait()
    assert (len(download.pieces), download.is_complete) == (1, False)


async def test_the_files_of_a_tenant_are_limited(site: Site, admin: Visitor, nursery: trio.Nursery) -> None:
    """If a tenant does not read its files, no further file is begun."""
    await add_clients(site, CLIENTS)
    unread = [Download(site, admin) for _ in range(MAX_OCTETS_SENT // OF_A_FILE)]
    for each in unread:
        nursery.start_soon(each.run)
        await each.began.wait()
    refused = Download(site, admin)
    refused.reads.set()
    await refused.run()
    assert {each.status for each in unread} == {200}
    assert refused.status == 429
    nursery.cancel_scope.cancel()


async def test_a_file_has_a_limit_of_rows(site: Site, admin: Visitor) -> None:
    """A file ends after MAX_EXPORTED rows, also within a part."""
    await add_clients(site, MAX_EXPORTED + 1)
    answer = await admin.get("/clients?format=csv&column=name")
    assert len(answer.text.splitlines()) == MAX_EXPORTED + 1
