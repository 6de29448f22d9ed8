"""Requests to a NAS that answers, refuses, is silent, is late, answers wrongly or repeats its answer. The clock jumps,
so no test waits.
"""

from collections.abc import Sequence
from ipaddress import ip_network

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from sallyport.areas.dynamic.sender import AT_ONCE, Nas, NasAnswer, RequestOutcome, Sender
from sallyport.outgoing.egress import Egress
from sallyport.radius.attributes import EVENT_TIMESTAMP, USER_NAME, push_attribute
from sallyport.radius.dynamic import RequestKind
from sallyport.radius.packet import SharedSecret
from sallyport.settings.values import ANYWHERE
from tests.areas import SECRET, SetClock
from tests.areas.dynamic.nas import LocalNas, ack, answer, nak, running_nas, silent

SESSION = push_attribute(USER_NAME, b"ann")


@pytest.fixture
def sender(clock: SetClock) -> Sender:
    """Return a sender that has no limit on egress and uses the timers of the RFC."""
    return Sender(Egress(ANYWHERE), clock=clock)


async def ask(sender: Sender, nas: LocalNas, kind: RequestKind = RequestKind.DISCONNECT) -> NasAnswer:
    """Send a request to the NAS."""
    return await sender.ask(nas.where, kind, SESSION)


async def test_an_ack_is_returned(sender: Sender, autojump_clock: MockClock) -> None:
    """The request is sent once with the time of the clock, and the answer is returned."""
    async with running_nas(ack) as nas:
        got = await ask(sender, nas)
        assert (got.outcome, got.error_cause, got.problem) == (RequestOutcome.ACK, None, "")
        assert len(nas.requests) == 1
        assert nas.values()[EVENT_TIMESTAMP] == (SetClock().now // 1_000_000).to_bytes(4)


async def test_a_nak_is_returned_with_its_error_cause(sender: Sender, autojump_clock: MockClock) -> None:
    """A Disconnect-NAK and a CoA-NAK are returned with their Error-Cause."""
    async with running_nas(nak(503)) as nas:
        for kind in RequestKind:
            got = await ask(sender, nas, kind)
            assert (got.outcome, got.error_cause) == (RequestOutcome.NAK, 503)
        assert [each[0] for each in nas.requests] == [40, 43]


async def test_an_unanswered_request_is_retransmitted(sender: Sender, autojump_clock: MockClock) -> None:
    """A request without an answer is retransmitted with the same octets and the timers of the RFC. It fails after half
    a minute.
    """
    async with running_nas(silent) as nas:
        begun = trio.current_time()
        got = await ask(sender, nas)
        assert (got.outcome, got.problem) == (RequestOutcome.TIMEOUT, "no answer")
        assert trio.current_time() - begun == pytest.approx(30, abs=0.5)
        assert 4 <= len(nas.requests) <= 5
        assert len(set(nas.requests)) == 1


async def test_an_answer_to_a_retransmission_is_accepted(sender: Sender, autojump_clock: MockClock) -> None:
    """The answer to the second retransmission is accepted. The first follows after 1.8 to 2.2 s, and the second after
    another 1.9 to 2.1 times this time."""
    async with running_nas(lambda request, number: ack(request) if number == 2 else []) as nas:
        got = await ask(sender, nas)
        assert got.outcome is RequestOutcome.ACK
        assert 1.8 * 2.9 <= got.latency_s <= 2.2 * 3.1
        assert len(nas.requests) == 3


async def test_a_late_answer_is_dropped(sender: Sender, clock: SetClock, autojump_clock: MockClock) -> None:
    """A late answer is dropped, and the next request has a socket of its own."""
    async with running_nas(silent) as nas:
        assert (await ask(sender, nas)).outcome is RequestOutcome.TIMEOUT
        late = answer(nas.requests[0], 41)
        clock.pass_by(30)
        nas.script = lambda request, _number: [late, *nak(503)(request, 0)]
        assert (await ask(sender, nas)).error_cause == 503


async def test_a_forged_answer_is_dropped(sender: Sender, autojump_clock: MockClock) -> None:
    """A forged answer is dropped, and a later valid answer is accepted. If none arrives, the result mentions the
    secret.
    """

    def forged(request: bytes, _number: int) -> Sequence[bytes]:
        return [answer(request, 41, secret=b"guessed"), b"", b"\x29", answer(request, 44)]

    async with running_nas(lambda request, number: [*forged(request, number), *nak(504)(request, number)]) as nas:
        assert (await ask(sender, nas)).error_cause == 504
        nas.script = forged
        got = await ask(sender, nas)
        assert got.outcome is RequestOutcome.TIMEOUT
        assert "check the secret" in got.problem


async def test_a_repeated_answer_is_ignored(sender: Sender, autojump_clock: MockClock) -> None:
    """An answer that is repeated is not taken as the answer to the next request."""
    async with running_nas(lambda request, _number: ack(request) * 2) as nas:
        assert (await ask(sender, nas)).outcome is RequestOutcome.ACK
        nas.script = nak(501)
        assert (await ask(sender, nas)).error_cause == 501


async def test_a_closed_port_is_reported_after_all_attempts(sender: Sender, autojump_clock: MockClock) -> None:
    """If the port is closed, the request is still retransmitted until the last attempt, because the NAS may be
    starting. Then the reason is returned.
    """
    async with running_nas(silent) as nas:
        where = nas.where
    begun = trio.current_time()
    got = await sender.ask(where, RequestKind.DISCONNECT, SESSION)
    assert (got.outcome, got.problem) == (RequestOutcome.TIMEOUT, "no program listens on this port")
    assert trio.current_time() - begun == pytest.approx(30, abs=0.5)


async def test_a_forbidden_network_is_not_sent_a_request(sender: Sender, autojump_clock: MockClock) -> None:
    """No request is sent to an address that egress forbids or to which there is no route."""
    inside = Sender(Egress([ip_network("192.0.2.0/24")]), clock=SetClock())
    async with running_nas(ack) as nas:
        got = await ask(inside, nas)
        assert got.outcome is RequestOutcome.UNREACHABLE
        assert "address not allowed" in got.problem
        assert nas.requests == []
    nowhere = Nas("255.255.255.255", 3799, SharedSecret(SECRET))
    assert (await sender.ask(nowhere, RequestKind.DISCONNECT, SESSION)).outcome is RequestOutcome.UNREACHABLE


async def ask_all(sender: Sender, nas: LocalNas, count: int, answers: list[NasAnswer]) -> None:
    """Send many requests at the same time."""

    async def one() -> None:
        answers.append(await ask(sender, nas))

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)


async def test_requests_in_flight_are_limited(sender: Sender, autojump_clock: MockClock) -> None:
    """The number of requests that wait for an answer of a NAS is limited. In the end all are answered."""
    answers: list[NasAnswer] = []
    async with running_nas(silent) as nas, trio.open_nursery() as nursery:
        nursery.start_soon(ask_all, sender, nas, 20, answers)
        await trio.testing.wait_all_tasks_blocked()
        assert len(nas.requests) == AT_ONCE
        nas.script = ack
    assert [each.outcome for each in answers] == [RequestOutcome.ACK] * 20


async def test_waiting_requests_to_a_silent_nas_fail_together(sender: Sender, autojump_clock: MockClock) -> None:
    """A hundred requests to a silent NAS fail after half a minute in total. A later request is sent again."""
    async with running_nas(silent) as nas:
        begun = trio.current_time()
        answers: list[NasAnswer] = []
        await ask_all(sender, nas, 100, answers)
        assert [each.outcome for each in answers] == [RequestOutcome.TIMEOUT] * 100
        assert trio.current_time() - begun < 31
        assert 4 * AT_ONCE <= len(nas.requests) <= 5 * AT_ONCE
        nas.script = ack
        assert (await ask(sender, nas)).outcome is RequestOutcome.ACK
