"""The stream of new logins: what an open page gets, and when the stream ends."""

from collections.abc import Sequence

import httpx
import pytest
import trio
from starlette.responses import Response
from starlette.types import Message

from sallyport.base.errors import TooMany
from sallyport.console.live import MOST_OF_PERSON, Feed, IsValid, Streams
from sallyport.events.repo import NewEvent
from sallyport.login.login import Reason
from tests.console.test_logins import add
from tests.console.visitor import Site, Visitor
from tests.web.serving import serving

EMPTY = b":\n\n"


async def users(new: Sequence[NewEvent]) -> bytes:
    """Return the names of users as a row."""
    return " ".join(each.user_name for each in new).encode()


async def valid() -> bool:
    """Return that the session is valid."""
    return True


async def ended() -> bool:
    """Return that the session has ended."""
    return False


class OpenPage:
    """An open page, which receives a stream in a nursery until `close`. Its waits have no time limit, because the clock
    of the tests would jump to it while a thread reads the store."""

    def __init__(self) -> None:
        self._send, self._received = trio.open_memory_channel[bytes](100)
        self._closed = trio.Event()

    async def open(self, nursery: trio.Nursery, streams: Streams, is_valid: IsValid = valid) -> "OpenPage":
        """Open the stream, and wait for its first message."""
        response = await streams.response("token 1", is_valid, users)
        nursery.start_soon(self._receive, response)
        assert await self.next() == b"retry: 2000\n\n"
        return self

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

    def close(self) -> None:
        """Close the page."""
        self._closed.set()


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
    pages = [await OpenPage().open(nursery, streams) for _ in range(MOST_OF_PERSON)]
    with pytest.raises(TooMany):
        await OpenPage().open(nursery, streams)
    pages[0].close()
    await pages[0].rest()
    await OpenPage().open(nursery, streams)


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


async def test_a_stream_needs_a_session(site: Site) -> None:
    """Without a session, the stream is not opened."""
    async with site.visitor() as visitor:
        assert (await visitor.get("/logins/live")).status_code == 303
