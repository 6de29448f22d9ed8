"""Tests that waiting requests release their connection slots and take them again."""

from contextlib import nullcontext

import trio
from starlette.types import Receive, Scope, Send

from sallyport.web.connections import Limits, parked
from tests.web.serving import GOOD, Served, read_answer, serving

WAIT = GOOD.replace(b"/healthz", b"/wait")


class Waiting:
    """An app with a path /wait that answers when `release` is set. The request is parked unless `parks` is false."""

    def __init__(self) -> None:
        self.release = trio.Event()
        self.waiting = 0
        self.parks = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/wait":
            self.waiting += 1
            with parked() if self.parks else nullcontext():
                await self.release.wait()
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})


async def open_waiting(running: Served, app: Waiting, count: int) -> list[trio.abc.Stream]:
    """Return connections with waiting requests."""
    streams: list[trio.abc.Stream] = []
    while len(streams) < count:
        streams.append(await running.connect())
        await streams[-1].send_all(WAIT)
        with trio.fail_after(30):
            while app.waiting < len(streams):
                await trio.sleep(0.001)
    return streams


async def test_parked_requests_do_not_block_others() -> None:
    """With two slots and ten parked requests, another request is answered. The ten requests are answered later."""
    app = Waiting()
    async with serving(app, limits=Limits(connections=2)) as running:
        streams = await open_waiting(running, app, 10)
        assert await running.answers()
        app.release.set()
        for stream in streams:
            assert (await read_answer(stream)).startswith(b"HTTP/1.1 200")
            await stream.aclose()


async def test_slots_are_taken_again_after_parking() -> None:
    """When more parked requests than slots have ended, the limit of connections is the same as before."""
    app = Waiting()
    async with serving(app, limits=Limits(connections=2, idle_s=60)) as running:
        streams = await open_waiting(running, app, 10)
        app.release.set()
        for stream in streams:
            await read_answer(stream)
            await stream.aclose()
        app.release, app.waiting, app.parks = trio.Event(), 0, False
        streams = await open_waiting(running, app, 2)
        third = await running.connect()
        await third.send_all(GOOD)
        with trio.move_on_after(0.3) as patience:
            await third.receive_some(1)
        assert patience.cancelled_caught, "a third connection was served at once"
        app.release.set()
        for stream in streams:
            await read_answer(stream)
            await stream.aclose()
        assert (await read_answer(third)).startswith(b"HTTP/1.1 200")
        await third.aclose()


async def test_parking_without_a_connection_has_no_effect() -> None:
    """An operation of the command line has no connection."""
    with parked():
        await trio.lowlevel.checkpoint()
