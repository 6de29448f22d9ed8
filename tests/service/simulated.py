"""The whole service in simulated time. All tasks of the service run, over a store on disk. Trio's clock makes jumps,
and the clock of the day follows it. In addition, the clock of the day can be set, as on a real machine.

With PostgreSQL, the clock of the database follows trio's clock too. It has the right time, whatever the clock of the
day says. The service has no heartbeats: a jump of the time is longer than a lease, so each jump would cancel the tasks
of the leader. `tests/nodes/test_service.py` drives leases in steps of half a second.

OpenSSL asks the machine itself for the time when it verifies a certificate, so handshakes are not simulated.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sallyport.areas.directory.directory import DirectoryConfiguration, DirectoryKind
from sallyport.areas.directory.schedules.schedule import Timing
from sallyport.base.clock import SECOND
from sallyport.nodes.periodic import while_leading
from sallyport.radius.packet import ACCESS_ACCEPT
from tests.areas import Areas, SetClock, running_engine
from tests.areas.login.listen.conftest import Wire
from tests.packets import pap
from tests.peers.postgres import set_database_clock
from tests.waiting import until

NAS = ("192.0.2.1", 40000)
QUIET_S = 0.01
"""All tasks must wait for so long, in seconds of the machine, before the time makes the next jump."""


class DayClock(SetClock):
    """The clock of the day. It follows trio's clock, and `pass_by` sets it. begin: its time when trio's clock is at
    0."""

    def __init__(self, begin: datetime, mock: MockClock) -> None:
        super().__init__(int(begin.timestamp()) * SECOND)
        self._begin = self.now
        self._mock = mock  # it is read in the threads of the store, too

    def __call__(self) -> int:
        return self.now + int(self._mock.current_time() * SECOND)

    def right(self) -> int:
        """Return the time that it would be if the clock had never been set."""
        return self._begin + int(self._mock.current_time() * SECOND)


@dataclass
class Simulated:
    """The service with the users ann and bob, and what it has answered.

    clock: the clock of the day. wire: the exchange with the NAS. accepted, asked: the numbers of logins.
    """

    areas: Areas
    clock: DayClock
    wire: Wire
    mock: MockClock
    numbers: "count[int]" = field(default_factory=count)
    random: Random = field(default_factory=lambda: Random(7))

    def request(self, user: str, password: str) -> bytes:
        """Return a new request."""
        number = next(self.numbers) & 0xFF
        return pap(user, password, identifier=number, authenticator=self.random.randbytes(16))

    async def send(self, datagram: bytes, *, is_accounting: bool = False) -> bytes:
        """Send a request, and return its answer."""
        at, exchange = self.clock(), self.wire.acct if is_accounting else self.wire.auth
        exchange.receive([(datagram, NAS, at, trio.current_time())])
        self.areas.journal.flush()
        return (await self.wire.take())[0]

    async def logs_in(self, user: str, password: str = "hello") -> bool:  # noqa: S107
        """Log in. Return whether the login was accepted."""
        return (await self.send(self.request(user, password)))[0] == ACCESS_ACCEPT

    async def pass_by(self, seconds: float, *, step_s: float = 60.0) -> None:
        """Let time pass, in steps. After each step, all tasks do their due work."""
        end = trio.current_time() + seconds
        while (left := end - trio.current_time()) > 0:
            step = min(step_s, left)
            if self.areas.store.is_shared:
                at = self.clock.right() + int(step * SECOND)
                await set_database_clock(self.areas.store, at)
            self.mock.jump(step)
            await wait_all_tasks_blocked(QUIET_S)
            await self.areas.journal.drained()

    async def schedule(self, timing: Timing) -> None:
        """Let the service read a directory. No server answers, so each reading fails."""
        wanted = DirectoryConfiguration("hq", kind=DirectoryKind.LDAP, app_url="ldap://127.0.0.1:1")
        await self.areas.directory.directories.save([(self.areas.domain, wanted)])
        await self.areas.directory.schedules.set(self.areas.domain, "hq", timing)

    async def readings(self) -> list[int]:
        """Return the times at which the directory was read, the oldest first."""
        jobs = await self.areas.directory.jobs.page(self.areas.domain, 0, 1000)
        return [each.created_at for each in jobs][::-1]

    async def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return await self.areas.store.read(lambda tx: tx.value(int, f"select count(*) from {table}") or 0)  # noqa: S608


@asynccontextmanager
async def simulated(directory: Path, begin: datetime, mock: MockClock, **settings: object) -> AsyncIterator[Simulated]:
    """Yield the service with all its tasks, and with a store in a directory. begin: the time of the day. settings:
    further settings."""
    clock = DayClock(begin, mock)
    mock.rate = 1  # the waits of the test itself end, too
    async with running_engine(directory) as store:
        if store.is_shared:
            await set_database_clock(store, clock.right())
        areas = Areas(store, clock, lockout_failures=10, more=settings)
        app = areas.app
        await areas.prepare()
        for user in ("ann", "bob"):
            await areas.add_user(areas.domain, user, b"hello")
        await areas.client(name="nas")
        async with trio.open_nursery() as waiting, trio.open_nursery() as nursery:
            await nursery.start(app.parts.notices.run)
            await nursery.start(app.events.login_log.run)
            for task in (app.follower.run, *app.areas.node_tasks):
                nursery.start_soon(task)
            leading = partial(while_leading, begin=app.parts.settled.begin)
            nursery.start_soon(leading, app.parts.cluster, app.areas.leader_tasks)
            await nursery.start(app.login.first.run)
            await nursery.start(app.login.second.run)
            await until(lambda: app.parts.settled() > 0)  # a test may set the clock at once
            yield Simulated(areas, clock, Wire(areas, waiting), mock)
            nursery.cancel_scope.cancel()
            waiting.cancel_scope.cancel()
