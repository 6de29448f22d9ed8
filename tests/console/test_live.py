"""The stream of new logins: what an open page gets, and when the stream ends."""

import re
import socket
import struct
from collections.abc import Sequence

import httpx
import pytest
import trio
from starlette.responses import Response
from starlette.types import Message
from structlog.testing import capture_logs

from sallyport.areas.events.event import DomainEvent
from sallyport.areas.login.login import Reason
from sallyport.base.errors import TooMany
from sallyport.console.live import KEPT, MAX_OF_PERSON, MAX_STREAMS, Feed, IsValid, Rows, Streams, Viewer
from sallyport.console.table import SIZE
from sallyport.store.model import Tx
from sallyport.web.scope import Role
from tests.console.test_logins import add
from tests.console.visitor import Site, Visitor
from tests.web.serving import serving

ANN, BOB = Viewer("token 1", 1), Viewer("admin bob", 2)
EMPTY = b":\n\n"
SCOPE: dict[str, object] = {
    "type": "http", "http_version": "1.1", "method": "GET", "scheme": "https", "path": "/logins/live",
    "raw_path": b"/logins/live", "query_string": b"", "root_path": "", "client": ("127.0.0.1", 50000),
    "server": ("console.example", 443), "state": {},
}  # fmt: skip


async def users(new: Sequence[DomainEvent]) -> bytes:
    """Return the names of users as a row."""
    return " ".join(each.user_name for each in new).encode()


async def valid() -> bool:
    """Return that the session is valid."""
    return True


async def ended() -> bool:
    """Return that the session has ended."""
    return False


async def add_many(site: Site, count: int) -> None:
    """Store the events of the users user0, user1 and so on, in one transaction."""
    last = await add(site, "last before many")

    def write(tx: Tx) -> None:
        copied = "at, domain_id, ip_address, client_ip, device_id, device_name, station, method, factor, decision, "
        copied += "applied_decision, would_have_been, reason, latency_us"
        sql = f"insert into events (user_name, {copied}) select :user, {copied} from events where id = :id"  # noqa: S608
        for number in range(count):
            tx.execute(sql, user=f"user{number}", id=last)

    await site.areas.store.write(write)


class OpenPage:
    """An open page, which receives a stream in a nursery until `close`. Its waits have no time limit, because the clock
    of the tests would jump to it while a thread reads the store.

    most: the number of messages that the network keeps for the page.
    """

    def __init__(self, most: int = 100) -> None:
        self._send, self._received = trio.open_memory_channel[bytes](most)
        self._closed = trio.Event()

    async def open(
        self,
        nursery: trio.Nursery,
        streams: Streams,
        is_valid: IsValid = valid,
        *,
        view: str = "all",
        rows: Rows = users,
        viewer: Viewer = ANN,
    ) -> "OpenPage":
        """Open the stream, and wait for its first message."""
        response = await streams.response(viewer, is_valid, view, rows)
        self.receive(nursery, response)
        assert await self.next() == b"retry: 2000\n\n"
        return self

    def receive(self, nursery: trio.Nursery, response: Response) -> None:
        """Begin to receive the messages of a response."""
        nursery.start_soon(self._receive, response)

    async def _receive(self, response: Response) -> None:
        async def receive() -> Message:
            await self._closed.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if body := message.get("body"):
                await self._send.send(body)

        async with self._send:
            await response({"type": "http"}, receive, send)

    async def next(self) -> bytes:
        """Return the next message that is not empty."""
        while (message := await self.message()) == EMPTY:
            pass
        return message

    async def message(self) -> bytes:
        """Return the next message."""
        return await self._received.receive()

    async def rest(self) -> list[bytes]:
        """Return the messages until the stream ends."""
        return [each async for each in self._received]

    async def is_full(self) -> None:
        """Wait until the stream cannot send because the page does not read."""
        while not self._received.statistics().tasks_waiting_send:
            await trio.sleep(0.1)

    def close(self) -> None:
        """Close the page."""
        self._closed.set()


class LivePage:
    """An open live log of a signed-in person, without a filter. text: everything that it has received."""

    def __init__(self, site: Site, visitor: Visitor) -> None:
        self._site = site
        cookie = f"__Host-sallyport={visitor.http.cookies['__Host-sallyport']}".encode()
        self._headers = [(b"host", b"console.example"), (b"cookie", cookie)]
        self.text = ""
        self.ended = trio.Event()

    async def open(self, nursery: trio.Nursery) -> "LivePage":
        """Open the stream, and wait for its first message."""
        nursery.start_soon(self._run)
        await self.contains("retry: 2000")
        return self

    async def _run(self) -> None:
        await self._site.app({**SCOPE, "headers": self._headers}, self._receive, self._send)
        self.ended.set()

    async def _receive(self) -> Message:
        await self.ended.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.text += message.get("body", b"").decode()

    async def contains(self, text: str) -> None:
        """Wait until the page has received a text."""
        while text not in self.text:
            await trio.sleep(0.1)


@pytest.fixture
def streams(site: Site) -> Streams:
    """Return the streams of a service that runs."""
    return Streams(Feed(site.areas.events), trio.Event())


async def test_each_open_page_gets_each_new_login_once(
    site: Site, streams: Streams, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """A page gets the logins since it was opened, and another page that was opened later only the later ones."""
    await add(site, "before")
    first = await OpenPage().open(nursery, streams)
    await add(site, "ann")
    assert b"data: ann\n" in await first.next()
    second = await OpenPage().open(nursery, streams)
    await add(site, "bob")
    assert b"data: bob\n" in await second.next()
    assert b"data: bob\n" in await first.next()


async def test_the_stream_of_an_ended_session_ends(
    streams: Streams, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """The page gets a last message, after which the browser does not connect again."""
    page = await OpenPage().open(nursery, streams, ended)
    assert (await page.rest())[-1].startswith(b"event: end\n")


async def test_a_stream_ends_when_the_service_stops(
    streams: Streams, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """A stop does not wait for open pages."""
    page = await OpenPage().open(nursery, streams)
    streams.stopping.set()
    assert set(await page.rest()) <= {EMPTY}


async def test_a_silent_stream_is_kept_alive(
    streams: Streams, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """Without logins, the page gets an empty message now and then, so that proxies keep the connection."""
    page = await OpenPage().open(nursery, streams)
    assert await page.message() == EMPTY


async def test_the_streams_of_a_person_are_limited(
    streams: Streams, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """One person cannot use up the streams of all, and a closed page makes room."""
    pages = [await OpenPage().open(nursery, streams) for _ in range(MAX_OF_PERSON)]
    with pytest.raises(TooMany):
        await OpenPage().open(nursery, streams)
    pages[0].close()
    await pages[0].rest()
    await OpenPage().open(nursery, streams)


async def test_streams_that_begin_together_are_counted(
    streams: Streams, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """If several streams are ready before the first of them begins, only as many begin as the limit allows."""
    for _ in range(MAX_OF_PERSON - 1):
        await OpenPage().open(nursery, streams)
    ready = [await streams.response(ANN, valid, "all", users) for _ in range(2)]
    page = OpenPage()
    page.receive(nursery, ready[0])
    assert await page.next() == b"retry: 2000\n\n"
    statuses = list[object]()

    async def send(message: Message) -> None:
        statuses.append(message.get("status"))

    await ready[1]({"type": "http"}, trio.sleep_forever, send)
    assert statuses[0] == 429


async def test_a_tenant_leaves_streams_to_others(
    streams: Streams, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """Many people of one tenant cannot open all streams."""
    opened = 0
    with pytest.raises(TooMany):
        for opened in range(MAX_STREAMS):
            await OpenPage().open(nursery, streams, viewer=Viewer(f"token {opened}", 1))
    assert opened == MAX_STREAMS * 7 // 8
    for _ in range(MAX_OF_PERSON):
        await OpenPage().open(nursery, streams, viewer=BOB)


async def test_pages_with_the_same_rows_share_them(
    streams: Streams, site: Site, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """The rows of a login are rendered once for all pages of a view, and again for another view."""
    rendered = list[str]()

    def rows_of(view: str) -> Rows:
        async def rows(new: Sequence[DomainEvent]) -> bytes:
            rendered.append(view)
            return await users(new)

        return rows

    views = ("all", "all", "all", "other")
    pages = [await OpenPage().open(nursery, streams, view=view, rows=rows_of(view)) for view in views]
    await add(site, "ann")
    for page in pages:
        assert b"data: ann\n" in await page.next()
    assert sorted(rendered) == ["all", "other"]


async def test_a_page_that_reads_nothing_misses_old_logins(
    streams: Streams, site: Site, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """The service keeps nothing for a page that does not read, except the newest logins for all pages. When the page
    reads again, it gets these.
    """
    page = await OpenPage(most=0).open(nursery, streams)
    await page.is_full()  # with an empty message, because there are no logins yet
    await add_many(site, KEPT + 500)
    names = (await page.next()).decode().split()
    assert f"user{KEPT + 499}" in names
    assert "user0" not in names
    assert len(names) <= KEPT + 3


async def test_the_stream_of_a_revoked_token_ends(
    site: Site, admin: Visitor, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """When the token of a session is revoked, the open page gets a last message within some seconds."""
    page = await LivePage(site, admin).open(nursery)
    await site.areas.tenancy.revoke(Role.ADMIN.value)
    await page.contains("event: end")
    await page.ended.wait()


async def test_a_message_has_a_page_of_rows(
    site: Site, admin: Visitor, nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    """If more logins arrive at once than a page has rows, the newest are sent. The page says that others are not
    shown.
    """
    page = await LivePage(site, admin).open(nursery)
    await add_many(site, SIZE + 20)
    await page.contains(f"user{SIZE + 19}<")
    assert "user20<" in page.text and "user19<" not in page.text
    assert re.search("2[01] earlier logins of this moment are not shown", page.text)
    page.ended.set()


async def test_a_page_gets_only_what_its_filters_and_its_tenant_allow(site: Site) -> None:
    """Over HTTP, a stream has the rows of the tenant's logins that match the address, without HTML from packets."""
    foreign = await site.areas.domains.add(await site.areas.tenancy.ensure_tenant(2, 2), "theirs")
    async with serving(site.app) as served:
        async with httpx.AsyncClient(base_url=f"http://{served.address}") as http:
            await Visitor(http).sign_in(await site.token())
            key = http.cookies["sallyport"]
        stream = await served.connect_tcp()
        path = "/logins/live?reason=wrong%20password"
        await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: x\r\nCookie: sallyport={key}\r\n\r\n".encode())
        text = ""
        with trio.fail_after(30):
            while "retry: 2000" not in text:
                text += (await stream.receive_some()).decode()
            await add(site, "mallory", reason=Reason.WRONG_PASSWORD, domain=foreign)
            await add(site, "bob")
            await add(site, "<b>ann", reason=Reason.WRONG_PASSWORD)
            while "</tr>" not in text:
                text += (await stream.receive_some()).decode()
        await stream.aclose()
    assert "content-type: text/event-stream" in text
    assert "default-src 'self'" in text
    assert "&lt;b&gt;ann" in text
    assert "mallory" not in text and "bob" not in text


async def test_a_reset_connection_is_no_error(site: Site) -> None:
    """A browser that resets the connection of its stream ends the stream, without an entry in the log."""
    with capture_logs() as logged:
        async with serving(site.app) as served:
            async with httpx.AsyncClient(base_url=f"http://{served.address}") as http:
                await Visitor(http).sign_in(await site.token())
                key = http.cookies["sallyport"]
            stream = await served.connect_tcp()
            await stream.send_all(f"GET /logins/live HTTP/1.1\r\nHost: x\r\nCookie: sallyport={key}\r\n\r\n".encode())
            with trio.fail_after(30):
                while b"retry: 2000" not in await stream.receive_some():
                    pass
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await stream.aclose()
            with trio.fail_after(30):
                assert await served.answers()
                await trio.sleep(0.3)
    assert [each["event"] for each in logged if each["log_level"] in ("warning", "error")] == []


async def test_a_stream_needs_a_session(site: Site) -> None:
    """Without a session, the stream is not opened."""
    async with site.visitor() as visitor:
        assert (await visitor.get("/logins/live")).status_code == 303
