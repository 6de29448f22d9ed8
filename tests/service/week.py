"""Days of the whole service in simulated time.

    python -m tests.service.week --days 7 --seed 1

Each hour, users log in by PAP, CHAP, MS-CHAPv2 and with a one-time code, a session is accounted, and what expires is
used: tokens, keys of agents, enrolment links, and sessions of the console. An agent renews its own key after 30 days.
Each day, some of it expires, a user is locked out, a directory is read, a switch to enforce mode is reverted, and the
clock repeats a second at midnight UTC (a leap second). At random hours, the clock is wrong for an hour.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pyotp
import structlog
import trio
from trio.testing import MockClock

from sallyport.areas.directory.schedules.schedule import Timing
from sallyport.areas.domains.domain import Mode
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.signin.sessions import Browser
from sallyport.areas.tenancy.keys.key import Agent, KeyRecord, NewKey
from sallyport.areas.tenancy.keys.service import renew_at
from sallyport.base.clock import SECOND, from_us, iso_seconds
from sallyport.base.errors import Unauthenticated
from sallyport.base.secret import new_key, token_hash
from sallyport.radius.packet import ACCESS_ACCEPT
from sallyport.web.scope import Authenticator, Role
from tests.packets import accounting, attributes, chap, mschap2
from tests.service.simulated import Simulated, simulated

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
BERLIN = ZoneInfo("Europe/Berlin")
BEGIN = datetime(2026, 10, 23, 22, tzinfo=UTC)
"""Midnight in Berlin, a day before the end of daylight saving time."""
STEPS = (HOUR, -HOUR, -7 * DAY, 90 * DAY)
"""By how many seconds the clock of the day is wrong for an hour."""
SETTINGS = {"console_idle_minutes": 90, "console_hours": 8, "enrolment_link_hours": 6}
READ_AT = 150
"""The minute of the day at which the directory is read."""


@dataclass
class Expiring:
    """What ends at a time of the clock of the day. kind: for the report. works: whether it is accepted now. until: its
    end in microseconds. idle_us: the time without use after which it ends; 0: any. used: the time of the last use.
    pause: how many hours pass from one use to the next."""

    kind: str
    works: Callable[[], Awaitable[bool]]
    until: int
    idle_us: int = 0
    used: int = 0
    pause: int = 1

    def is_due(self, now: int) -> bool:
        """Return whether it must be accepted."""
        return now < self.until and (not self.idle_us or now < self.used + self.idle_us)


@dataclass
class AgentKey:
    """The own key of a directory agent: the key, and what the service has answered."""

    text: str
    record: KeyRecord


@dataclass
class Week:
    """A run. counts: how often each action was taken. expiring: tokens, keys, links and sessions of the days. agent:
    the present key of an agent."""

    service: Simulated
    random: Random
    counts: Counter[str] = field(default_factory=Counter)
    expiring: list[Expiring] = field(default_factory=list)
    lab: int = 0
    agent: AgentKey = field(init=False)

    async def prepare(self) -> None:
        """Add what the days need: a domain that demands one-time codes, and the schedule of a directory."""
        areas = self.service.areas
        await self.service.schedule(Timing(times=(READ_AT,), zone=BERLIN.key))
        self.lab = await areas.domains.add(areas.tenant, "lab")
        await areas.add_user(self.lab, "cyd", b"hello")
        made, _ = await areas.seeds.enrol(self.lab, "cyd")
        self._app = pyotp.TOTP(made.seed)
        await areas.seeds.confirm(self.lab, "cyd", self._code())
        await areas.providers.set(self.lab, "totp", {}, 60)
        await areas.domains.set_mode([self.lab], Mode.ENFORCE)
        _, enrolment = await areas.keys.create(NewKey(areas.domain, agent=Agent.DIRECTORY, name="agent"))
        own = new_key()
        caller = await areas.keys.authenticate(enrolment)
        self.agent = AgentKey(own, await areas.keys.exchange(caller, token_hash(own)))
        await self.service.pass_by(2 * MINUTE)

    def _code(self) -> str:
        """Return the code that the user's phone shows. Its clock is right."""
        return self._app.at(self.service.clock.right() // SECOND)

    async def day(self, *, with_steps: bool) -> None:
        """Let a day pass."""
        locked, reverted = self.random.sample(range(24), 2)
        wrong = set(self.random.sample(range(24), 2)) if with_steps else set[int]()
        for hour in range(24):
            step = self.random.choice(STEPS) if hour in wrong else 0.0
            if step:
                self.counts["wrong clocks"] += 1
                self.service.clock.pass_by(step)
            left_s = HOUR
            await self._log_in()
            await self._use_expiring(hour)
            await self._use_agent_key()
            if hour == 3:
                await self._make_expiring()
            if hour == locked:
                await self._lock_out()
                left_s -= 16 * MINUTE
            if hour == reverted:
                await self._revert()
                left_s -= 31 * MINUTE
            await self._pass_by(left_s)
            self.service.clock.pass_by(-step)

    async def _pass_by(self, seconds: float) -> None:
        """Let a time pass. At midnight UTC, the clock repeats a second."""
        clock = self.service.clock
        to_midnight_s = DAY - clock.right() / SECOND % DAY
        if to_midnight_s < seconds:
            await self.service.pass_by(to_midnight_s, step_s=20 * MINUTE)
            clock.pass_by(-1)
            self.counts["leap seconds"] += 1
            await self._log_in()
            clock.pass_by(1)  # else the seconds of all days add up
            seconds -= to_midnight_s
        await self.service.pass_by(seconds, step_s=20 * MINUTE)

    async def _log_in(self) -> None:
        service = self.service
        before = await service.count("events")
        code = self._code()
        for way, datagram in {
            "PAP": service.request("ann", "hello"),
            "CHAP": chap("ann", "hello"),
            "MS-CHAPv2": mschap2("ann", "hello"),
        }.items():
            answer = await service.send(datagram)
            assert answer[0] == ACCESS_ACCEPT, way
            assert await service.send(datagram) == answer, "a retransmission gets the same answer"
            self.counts[way] += 1
        assert not await service.logs_in("ann", "wrong")
        is_right = abs(service.clock() - service.clock.right()) < 2 * SECOND
        assert await service.logs_in("cyd@lab", f"hello{code}") is is_right, "one-time code"
        session = attributes(ACCT_STATUS_TYPE=(1).to_bytes(4), ACCT_SESSION_ID=b"%d" % self.counts["PAP"])
        await service.send(accounting(session), is_accounting=True)
        self.counts["one-time code"] += 1
        self.counts["accounting"] += 1
        assert await service.count("events") == before + 5, "each login is stored, and none is deleted"

    async def _lock_out(self) -> None:
        for guess in range(10):
            assert not await self.service.logs_in("bob", f"wrong {guess}")
        assert not await self.service.logs_in("bob"), "locked out"
        await self.service.pass_by(16 * MINUTE, step_s=4 * MINUTE)
        assert await self.service.logs_in("bob"), "the lock-out has ended"
        self.counts["lock-outs"] += 1

    async def _revert(self) -> None:
        """Switch to enforce mode for half an hour. The revert does not depend on the clock of the day."""
        areas = self.service.areas
        await areas.domains.set_mode([areas.domain], Mode.ENFORCE, revert_after_minutes=30)
        await self.service.pass_by(29 * MINUTE, step_s=MINUTE)
        assert areas.domains.table.present(areas.domain).mode is Mode.ENFORCE
        await self.service.pass_by(2 * MINUTE, step_s=MINUTE)
        assert areas.domains.table.present(areas.domain).mode is Mode.MONITOR
        self.counts["reverts"] += 1

    async def _use_expiring(self, hour: int) -> None:
        """Use all that expires. It is accepted before its end, and refused after it."""
        now = self.service.clock()
        for each in self.expiring:
            if hour % each.pause:
                continue
            is_due = each.is_due(now)
            assert await each.works() is is_due, (
                f"{each.kind}: {'refused too early' if is_due else 'accepted too late'}"
            )
            each.used = max(each.used, now) if is_due else each.used
            self.counts[f"{each.kind}s {'accepted' if is_due else 'refused'}"] += 1

    async def _use_agent_key(self) -> None:
        """Use the key of the agent, and renew it if the renewal is due. Only a clock that is wrong refuses it."""
        keys, now = self.service.areas.keys, self.service.clock()
        is_right = now < self.agent.record.expires_at
        assert await _is_accepted(keys, self.agent.text) is is_right, "the agent's own key"
        self.counts[f"agent's key {'accepted' if is_right else 'refused'}"] += 1
        if is_right and now >= renew_at(self.agent.record):
            former, own = self.agent.text, new_key()
            caller = await keys.authenticate(former)
            self.agent = AgentKey(own, await keys.renew(caller, token_hash(own)))
            assert await _is_accepted(keys, own), "the new key"
            assert not await _is_accepted(keys, former), "the new key has replaced the former one"
            self.counts["agent's key renewed"] += 1

    async def _make_expiring(self) -> None:
        """Make an access token, an enrolment key of an agent, an enrolment link, and a session of the console."""
        areas, now = self.service.areas, self.service.clock()
        until = now + int(5 * HOUR * SECOND)
        _, token = await areas.tenancy.create_token(1, 1, Role.AUDITOR, f"day {len(self.expiring)}", until)
        _, key = await areas.keys.create(NewKey(areas.domain, name=f"day {len(self.expiring)}", expires_at=until))
        links, browser = areas.app.me.links, Browser("127.0.0.1")
        secret, link_until = await links.make(Person(areas.domain, "ann"))
        # The new link replaces the former one, and each sign-in deletes sessions whose end has passed.
        self.expiring = [
            each
            for each in self.expiring
            if not (each.kind == "link" or ("session" in each.kind and each.until <= now))
        ]
        self.expiring += [
            Expiring("token", partial(_is_accepted, areas.tenancy, token), until),
            Expiring("key", partial(_is_accepted, areas.keys, key), until),
            Expiring("link", partial(_is_there, partial(links.open, secret, "browser")), link_until),
        ]
        _, long = await areas.tenancy.create_token(1, 1, Role.AUDITOR, f"console {len(self.expiring)}", None)
        for kind, pause in (("session", 1), ("idle session", 3)):
            session = await areas.sign_ins.by_token(long, browser)
            works = partial(_is_there, partial(areas.console_sessions.person, session, browser.source))
            ends, idle_us = now + areas.sign_ins.longest_us, areas.console_sessions.idle_us
            self.expiring.append(Expiring(kind, works, ends, idle_us, now, pause))

    async def check_end(self, days: int) -> None:
        """Check what holds after all days."""
        service = self.service
        nights = {from_us(at).astimezone(BERLIN).date() for at in await service.readings()}
        right = {(BEGIN.astimezone(BERLIN).date().toordinal()) + day for day in range(days)}
        assert right <= {each.toordinal() for each in nights}, "the directory is read each night"
        self.counts["readings of the directory"] = len(await service.readings())
        await service.pass_by(2 * MINUTE)
        assert await service.count("answers") == 0, "answers are deleted"


async def _is_accepted(authenticator: Authenticator, token: str) -> bool:
    try:
        await authenticator.authenticate(token)
    except Unauthenticated:
        return False
    return True


async def _is_there(find: Callable[[], Awaitable[object]]) -> bool:
    return await find() is not None


async def pass_days(directory: Path, mock: MockClock, days: int, seed: int, *, with_steps: bool = True) -> Counter[str]:
    """Run a service for some days. Return the numbers of what it did. Raises AssertionError if a promise is broken."""
    async with simulated(directory, BEGIN, mock, **SETTINGS) as service:
        week = Week(service, Random(seed))
        await week.prepare()
        for _ in range(days):
            await week.day(with_steps=with_steps)
        await week.check_end(days)
        week.counts["events"] = await service.count("events")
        return week.counts


def main() -> int:
    """Run the days of the command line, and print a report. Return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.service.week")
    parser.add_argument("--days", type=int, default=7, help="the number of days; default: 7")
    parser.add_argument("--seed", type=int, default=1, help="selects the hours of what happens; default: 1")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        mock = MockClock(rate=1)
        counts = trio.run(pass_days, Path(directory), mock, given.days, given.seed, clock=mock)
    print(
        f"{given.days} days from {iso_seconds(int(BEGIN.timestamp()) * SECOND)}, seed {given.seed}, "
        f"{time.monotonic() - began:.0f} s: every promise holds"
    )
    for what, number in counts.items():
        print(f"{number:8} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
