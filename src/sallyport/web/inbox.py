"""A request's body on its way from the connection to the app: bounded, and never in the way of hanging up."""

import trio
from hypercorn.typing import ASGIReceiveEvent

HELD = 1 << 18


class Inbox:
    """What was received and not yet taken.

    hypercorn's own channel holds ten events and blocks the sender after that, also for the news that the client has
    left: an app that answers without reading a long body would hold its connection for ever. Here small pieces are
    joined, `put` waits only while an app may still read, and a disconnect is always taken.
    """

    def __init__(self) -> None:
        self._octets = bytearray()
        self._complete = False
        self._taken = False
        self._gone = False
        self._deaf = False
        self._changed = trio.Event()

    async def put(self, event: ASGIReceiveEvent) -> None:
        """Add a piece of the body, or the news that the client has left. Waits while too much is held."""
        if event["type"] == "http.request":
            while len(self._octets) > HELD and not self._deaf:
                await self._changed.wait()
            if not self._deaf:
                self._octets += event["body"]
                self._complete = not event["more_body"]
        else:
            self._gone = True
        self._tell()
        await trio.lowlevel.checkpoint()  # a body of one-octet chunks must not hold the loop

    async def receive(self) -> ASGIReceiveEvent:
        """The ASGI `receive`: what there is of the body, and http.disconnect once the client has left."""
        while True:
            if self._octets or (self._complete and not self._taken):
                return self._take()
            if self._gone:
                return {"type": "http.disconnect"}
            await self._changed.wait()

    def close(self) -> None:
        """The app has ended: drop what it did not read, and whatever still comes."""
        self._deaf = True
        self._octets.clear()
        self._tell()

    def _take(self) -> ASGIReceiveEvent:
        body = bytes(self._octets)
        self._octets.clear()
        self._taken = self._complete
        self._tell()
        return {"type": "http.request", "body": body, "more_body": not self._complete}

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
