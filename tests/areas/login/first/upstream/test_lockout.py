"""Tests of lock-outs with EAP at a home server, where the inner user is unknown until the Accept contains its name."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from sallyport.areas.login.login import Reason
from sallyport.radius.attributes import USER_NAME, push_attribute
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, encode_reply
from tests.areas import Areas, SetClock, clock, running_areas
from tests.areas.login.first.upstream.conftest import Upstream, upstream, wire
from tests.areas.login.first.upstream.home_server import SECRET
from tests.packets import access_request, attributes, pap

__all__ = ["clock", "upstream", "wire"]

LOCKED = Reason.LOCKED_OUT
ALICE = push_attribute(USER_NAME, b"alice")
numbers = count(1)


@pytest.fixture
async def areas(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """The areas with a new store. Three failures lock a user."""
    async with running_areas(tmp_path, clock, lockout_failures=3) as areas:
        yield areas


async def log_in(upstream: Upstream, code: int, body: bytes = b"", *, outside: bytes = b"anonymous") -> None:
    """Log in by EAP. The home server sends this answer."""
    upstream.first.reply = lambda request: [encode_reply(code, request, SECRET, body)]
    sent = attributes(USER_NAME=outside, EAP_MESSAGE=b"\2\1\0\5\1")
    await upstream.ask(access_request(sent, identifier=next(numbers)))


async def guess(upstream: Upstream, user: str, times: int = 3) -> None:
    """Send wrong passwords by PAP."""
    upstream.first.reply = lambda request: [encode_reply(ACCESS_REJECT, request, SECRET)]
    for _ in range(times):
        await upstream.ask(pap(user, f"wrong {(number := next(numbers))}", identifier=number))


@pytest.mark.parametrize("named", [b"", ALICE])
async def test_a_shared_outer_name(upstream: Upstream, named: bytes) -> None:
    """Failures with a shared outer name, by EAP and by PAP, do not lock the inner users."""
    for _ in range(3):
        await log_in(upstream, ACCESS_REJECT)
    await guess(upstream, "anonymous")
    await log_in(upstream, ACCESS_ACCEPT, named)
    assert LOCKED not in await upstream.reasons()


async def test_the_inner_user_is_locked_out(upstream: Upstream) -> None:
    """If there were too many failures for the name in the Accept, the user is locked, whatever the outer name is."""
    await guess(upstream, "alice")
    await log_in(upstream, ACCESS_ACCEPT, ALICE)
    assert (await upstream.reasons())[-1] is LOCKED


async def test_an_outer_name_resets_no_failures(upstream: Upstream) -> None:
    """A login with the name of another user as the outer name does not reset the failures of that user."""
    await guess(upstream, "alice", 2)
    await log_in(upstream, ACCESS_ACCEPT, outside=b"alice")
    await guess(upstream, "alice", 2)
    assert (await upstream.reasons())[-1] is LOCKED
