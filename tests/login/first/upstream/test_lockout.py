"""Lock-outs where another server has the EAP conversation: who is inside is not known before its Accept says so."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from sallyport.login.login import Reason
from sallyport.radius.attributes import USER_NAME, push_attribute
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, encode_reply
from tests.areas import Areas, SetClock, clock, running_areas
from tests.login.first.upstream.conftest import Upstream, upstream, wire
from tests.login.first.upstream.home_server import SECRET
from tests.packets import access_request, attributes, pap

__all__ = ["clock", "upstream", "wire"]

LOCKED = Reason.LOCKED_OUT
ALICE = push_attribute(USER_NAME, b"alice")
numbers = count(1)


@pytest.fixture
async def areas(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """The areas over a new store; three failures lock."""
    async with running_areas(tmp_path, clock, lockout_failures=3) as areas:
        yield areas


async def log_in(upstream: Upstream, code: int, body: bytes = b"", *, outside: bytes = b"anonymous") -> None:
    """By EAP, which ends in what the home server answers."""
    upstream.first.reply = lambda request: [encode_reply(code, request, SECRET, body)]
    sent = attributes(USER_NAME=outside, EAP_MESSAGE=b"\2\1\0\5\1")
    await upstream.ask(access_request(sent, identifier=next(numbers)))


async def guess(upstream: Upstream, user: str, times: int = 3) -> None:
    """Wrong passwords by PAP."""
    upstream.first.reply = lambda request: [encode_reply(ACCESS_REJECT, request, SECRET)]
    for _ in range(times):
        await upstream.ask(pap(user, f"wrong {(number := next(numbers))}", identifier=number))


@pytest.mark.parametrize("named", [b"", ALICE])
async def test_many_that_are_called_the_same_outside(upstream: Upstream, named: bytes) -> None:
    """The failures of some, by EAP and by PAP, keep none of the others out."""
    for _ in range(3):
        await log_in(upstream, ACCESS_REJECT)
    await guess(upstream, "anonymous")
    await log_in(upstream, ACCESS_ACCEPT, named)
    assert LOCKED not in await upstream.reasons()


async def test_who_is_named_inside_is_locked_out(upstream: Upstream) -> None:
    """By what was tried for that name, whatever the name outside."""
    await guess(upstream, "alice")
    await log_in(upstream, ACCESS_ACCEPT, ALICE)
    assert (await upstream.reasons())[-1] is LOCKED


async def test_a_name_outside_forgives_nobody(upstream: Upstream) -> None:
    """Who gets in as himself and calls himself alice outside sets none of her failures back."""
    await guess(upstream, "alice", 2)
    await log_in(upstream, ACCESS_ACCEPT, outside=b"alice")
    await guess(upstream, "alice", 2)
    assert (await upstream.reasons())[-1] is LOCKED
