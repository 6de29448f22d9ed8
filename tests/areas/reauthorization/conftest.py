"""A NAS whose users log in and have sessions, and which answers Disconnect and CoA requests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest
import trio

from sallyport.areas.domains.domain import Mode
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.reauthorization.reauthorization import Reauthorization
from sallyport.areas.sessions.report import Status
from sallyport.base.clock import SECOND
from sallyport.radius.packet import ACCESS_ACCEPT
from tests.areas import Areas, areas, clock
from tests.areas.dynamic.nas import LocalNas, ack, running_nas
from tests.areas.login.listen.conftest import Wire
from tests.areas.sessions.records import octets
from tests.packets import accounting, attributes, pap
from tests.waiting import until

__all__ = ["areas", "clock"]
LOCAL = "127.0.0.1"
SOURCE = (LOCAL, 40000)


class Office:
    """The users ann, bob and cy, whose password is hello, at a NAS with the NAS-Identifier ap-1. The domain
    enforces."""

    def __init__(self, areas: Areas, wire: Wire, nas: LocalNas) -> None:
        self.areas, self.wire, self.nas = areas, wire, nas
        self.service = areas.app.reauthorization.service
        self._numbers = count(1)

    async def rule(self, name: str, action: str, **fields: object) -> int:
        """Add a rule, and return its id."""
        given = RuleFields.model_validate({"name": name, "action": action, **fields})
        return await self.areas.rules.add(self.areas.domain, given)

    async def change(self, rule_id: int, **fields: object) -> None:
        """Change a rule."""
        await self.areas.rules.update(self.areas.domain, rule_id, RuleFields.model_validate(fields))

    async def log_in(self, user: str, password: str = "hello", **facts: bytes) -> int:  # noqa: S107
        """Let a user log in and have a session, and return its id."""
        number = next(self._numbers)
        names = {"NAS_IDENTIFIER": b"ap-1", "CALLING_STATION_ID": b"02-00-00-00-00-%02x" % number, **facts}
        login = pap(user, password, attributes(**names), identifier=number)
        assert await self.wire.ask(login, source=SOURCE) == ACCESS_ACCEPT
        self.areas.clock.pass_by(1)
        stamp = self.areas.clock() // SECOND
        body = octets(Status.START, b"%d" % number, USER_NAME=user, EVENT_TIMESTAMP=stamp, **names)
        await self.wire.ask(accounting(body, identifier=number), source=SOURCE, acct=True)
        return await self.areas.store.read(lambda tx: tx.value(int, "select max(id) from sessions")) or 0

    async def preview(self) -> dict[int, tuple[str, str]]:
        """Return the effect and the reason of each session that would change."""
        found = await self.service.preview(self.areas.domain)
        return {each.session_id: (each.effect, each.reason) for each in found.changes}

    async def carried_out(self, run_id: int) -> Reauthorization:
        """Carry out a run, and return it after its end."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.service.run)

            async def has_ended() -> bool:
                return (await self.found(run_id)).ended_at is not None

            await until(has_ended, seconds=60)
            nursery.cancel_scope.cancel()
        return await self.found(run_id)

    async def found(self, run_id: int) -> Reauthorization:
        """Return a run."""
        return next(each for each in await self.service.page(self.areas.domain) if each.id == run_id)


@asynccontextmanager
async def running_office(areas: Areas) -> AsyncIterator[Office]:
    """Yield the office."""
    for user in ("ann", "bob", "cy"):
        await areas.add_user(areas.domain, user, b"hello")
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    async with running_nas(ack) as nas, trio.open_nursery() as nursery:
        await areas.client(LOCAL, name="nas", coa_port=nas.port)
        yield Office(areas, Wire(areas, nursery), nas)
        nursery.cancel_scope.cancel()


@pytest.fixture
async def office(areas: Areas) -> AsyncIterator[Office]:
    """Yield the office."""
    async with running_office(areas) as office:
        yield office
