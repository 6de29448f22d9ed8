"""How names are looked up: `test_http` has which addresses may be connected to."""

import socket
from collections.abc import Sequence
from threading import Event

import trio
import trio.testing

from sallyport.outgoing.egress import AT_ONCE, Egress


class Silent:
    """A DNS whose servers for `hostile.example` answer once `answers` is set, and all others at once."""

    def __init__(self) -> None:
        self.answers = Event()
        self.asked = 0

    def look_up(self, host: str, port: int, kind: socket.SocketKind) -> Sequence[str]:
        """One address for each name."""
        self.asked += 1
        if host.endswith("hostile.example"):
            self.answers.wait(30)
        return ["192.0.2.7"]


async def test_names_that_nobody_answers_for_are_their_tenants_trouble() -> None:
    """However many there are, and whether their logins still wait or not: another tenant's names are found, an address
    needs no look-up, and whoever else needs a thread has one, as the store does."""
    dns = Silent()
    hostile = Egress(None, dns.look_up)
    other = hostile.apart()
    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(hostile.resolve, f"h{number}.hostile.example", 443)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.01):
            await hostile.resolve("one-more.hostile.example", 443)
        with trio.fail_after(10):
            assert await other.resolve("mfa.example", 443) == ["192.0.2.7"]
            assert await hostile.resolve("2001:db8::7", 443) == ["2001:db8::7"]
            assert await trio.to_thread.run_sync(lambda: "as the store") == "as the store"
            assert dns.asked == AT_ONCE + 1
        nursery.cancel_scope.cancel()
    dns.answers.set()
