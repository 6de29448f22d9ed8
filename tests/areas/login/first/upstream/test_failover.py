"""Tests of home servers that answer late, wrongly or never. The clock advances only when a test advances it."""

from collections import Counter

import pytest
import trio
from trio.testing import MockClock

from sallyport.areas.login.first.upstream.checker import Upstream as Checker
from sallyport.areas.login.first.upstream.health import ANSWERS_TO_ALIVE, CHECK_INTERVAL_S, ZOMBIE_S
from sallyport.areas.login.first.upstream.home import HomeServer
from sallyport.areas.login.first.upstream.pool import LIMIT_S, TICK_S
from sallyport.areas.login.login import FirstFactorResult, Reason
from sallyport.radius.attributes import REPLY_MESSAGE, STATE, push_attribute
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT, Request, SharedSecret, encode_reply
from tests.areas.login.first.upstream.conftest import Upstream, until
from tests.areas.login.first.upstream.home_server import PASSWORD, SECRET, STAFF, check, nothing, unsigned
from tests.packets import attributes, pap

WINDOW_S = 20.0


async def begin(upstream: Upstream, datagram: bytes) -> None:
    """Send a request to the first server, which does not answer."""
    before = len(upstream.first.received)
    upstream.first.reply = nothing
    upstream.wire.put(datagram)
    await until(lambda: len(upstream.first.received) > before)


async def pass_by(clock: MockClock, seconds: float) -> None:
    """Advance the clock, and run everything that is then due."""
    clock.jump(seconds)
    for _ in range(20):
        await trio.lowlevel.checkpoint()
    clock.jump(TICK_S)
    for _ in range(20):
        await trio.lowlevel.checkpoint()


def state(upstream: Upstream, name: str) -> float:
    """Return the number of servers in this state."""
    return upstream.counted("servers", state=name)


# --- invalid answers --------------------------------------------------------------------------------------------


async def test_a_wrong_answer_is_dropped_and_the_right_one_counts(upstream: Upstream, mock_clock: MockClock) -> None:
    """An answer is dropped if it has another secret or another identifier, is not RADIUS, or has an unsuitable code.

    A right answer that arrives after all of these is used.
    """
    discards = {"unexpected": 3, "bad_authenticator": 1, "malformed": 1, "unknown_type": 1}

    def right(request: Request) -> bytes:
        return encode_reply(ACCESS_ACCEPT, request, SECRET, STAFF)

    def reply(request: Request) -> list[bytes]:
        other = right(request)[1] ^ 255
        return [
            encode_reply(ACCESS_ACCEPT, request, SharedSecret(b"guessed")),
            right(request)[:1] + bytes((other,)) + right(request)[2:],
            b"n" + bytes((other,)) + b" RADIUS at all, but long enough",
            b"short",
            encode_reply(5, request, SECRET),
            right(request)[:-1],
        ]

    def discarded() -> dict[str, float]:
        return {reason: upstream.counted("discards_total", reason=reason) for reason in discards}

    upstream.first.reply = reply
    request = pap("ann", PASSWORD)
    upstream.wire.put(request)
    await until(lambda: discarded() == discards)
    (asked,) = upstream.first.received
    await upstream.first.send(0, right(asked))
    assert await upstream.answer(request) == (ACCESS_ACCEPT, STAFF)
    await upstream.first.send(0, right(asked))
    await until(lambda: discarded() == discards | {"unexpected": 4})
    assert upstream.counted("requests_total", outcome="accept") == 1


@pytest.mark.parametrize("required", [True, False])
async def test_an_unsigned_answer(upstream: Upstream, required: bool) -> None:
    """An unsigned answer is dropped unless the admin allows it, because an attacker can turn a Reject into an
    Accept."""
    await upstream.configure(requireMessageAuthenticator=required)
    upstream.first.reply = lambda request: [unsigned(ACCESS_ACCEPT, request), *check(request)]
    code, _ = await upstream.ask(pap("ann", "wrong"))
    assert code == (ACCESS_REJECT if required else ACCESS_ACCEPT)
    assert upstream.counted("discards_total", reason="unsigned") == required


async def test_an_unsigned_answer_with_a_wrong_authenticator(upstream: Upstream) -> None:
    """An answer with a wrong authenticator is refused, even if unsigned answers are allowed."""
    await upstream.configure(requireMessageAuthenticator=False)
    other = SharedSecret(b"guessed")
    upstream.first.reply = lambda request: [unsigned(ACCESS_ACCEPT, request, secret=other), *check(request)]
    assert (await upstream.ask(pap("ann", "wrong")))[0] == ACCESS_REJECT


# --- retransmits ------------------------------------------------------------------------------------------------


async def test_a_retransmission_is_passed_on(upstream: Upstream, mock_clock: MockClock) -> None:
    """If the NAS retransmits, the same packet is sent to the same server once.

    The service itself does not retransmit.
    """
    datagram = pap("ann", PASSWORD)
    await begin(upstream, datagram)
    await pass_by(mock_clock, 10)
    assert len(upstream.first.received) == 1
    for _ in range(3):
        await begin(upstream, datagram)
    upstream.first.reply = check
    upstream.wire.put(datagram)
    assert await upstream.answer(datagram) == (ACCESS_ACCEPT, STAFF)
    assert len({request.data for request in upstream.first.received}) == 1
    assert len(upstream.first.received) == 5
    assert upstream.counted("repeats_total", kind="again") == 4
    upstream.wire.put(datagram)
    await upstream.answer(datagram)
    assert len(upstream.first.received) == 5
    assert upstream.second.received == []


async def test_a_late_answer_counts(upstream: Upstream, mock_clock: MockClock) -> None:
    """A late answer is used if the response window has not ended."""
    datagram = pap("ann", PASSWORD)
    await begin(upstream, datagram)
    await pass_by(mock_clock, WINDOW_S - 1)
    await upstream.first.send(0, check(upstream.first.received[0])[0])
    assert await upstream.answer(datagram) == (ACCESS_ACCEPT, STAFF)


# --- fail-over --------------------------------------------------------------------------------------------------


async def test_the_other_server_is_asked_when_the_window_is_over(upstream: Upstream, mock_clock: MockClock) -> None:
    """After the response window the other server gets its own request.

    The first server becomes a zombie, later logins go to the other server at once, and late answers of the first server
    are dropped.
    """
    await upstream.configure(statusCheck=False)
    datagram = pap("ann", PASSWORD)
    await begin(upstream, datagram)
    await pass_by(mock_clock, WINDOW_S)
    assert await upstream.answer(datagram) == (ACCESS_ACCEPT, STAFF)
    assert upstream.first.received[0].authenticator != upstream.second.received[0].authenticator
    assert (state(upstream, "alive"), state(upstream, "zombie")) == (1, 1)
    await upstream.first.send(0, check(upstream.first.received[0])[0])
    await until(lambda: upstream.counted("discards_total", reason="unexpected") == 1)
    await upstream.ask(pap("bob", PASSWORD, identifier=1))
    assert (upstream.first.names, upstream.second.names) == ([b"ann"], [b"ann", b"bob"])
    assert upstream.counted("repeats_total", kind="moved") == 1


async def test_a_retransmit_moves_to_a_server_that_is_alive(upstream: Upstream, mock_clock: MockClock) -> None:
    """A login that waits for a zombie is sent to another server at the next retransmission."""
    old, new = pap("ann", PASSWORD), pap("bob", PASSWORD, identifier=1)
    await begin(upstream, old)
    await pass_by(mock_clock, WINDOW_S / 2)
    await begin(upstream, new)
    await pass_by(mock_clock, WINDOW_S / 2)
    await upstream.answer(old)
    assert upstream.second.names == [b"ann"]
    upstream.wire.put(new)
    assert await upstream.answer(new) == (ACCESS_ACCEPT, STAFF)
    assert (upstream.first.names, upstream.second.names) == ([b"ann", b"bob"], [b"ann", b"bob"])


async def test_no_server_answers(upstream: Upstream, mock_clock: MockClock) -> None:
    """If no server answers, the login is rejected with a reason within the time limit, and nothing stays pending."""
    datagram = pap("ann", PASSWORD)
    upstream.second.reply = nothing
    await begin(upstream, datagram)
    await pass_by(mock_clock, WINDOW_S)
    await until(lambda: upstream.second.names == [b"ann"])
    await pass_by(mock_clock, LIMIT_S - WINDOW_S)
    assert (await upstream.answer(datagram))[0] == ACCESS_REJECT
    assert await upstream.reasons() == [Reason.FIRST_FACTOR_UNREACHABLE]
    assert upstream.counted("requests_total", outcome="none") == 1
    assert (upstream.wire.auth.in_flight, upstream.wire.auth.pending.handed_over) == (0, 0)


async def test_the_steps_name_each_server(upstream: Upstream, mock_clock: MockClock) -> None:
    """The steps of a domain check contain each server and its result."""
    upstream.first.reply = nothing
    domain = upstream.areas.domains.table.by_id[upstream.areas.domain]
    login = upstream.login(pap("ann", PASSWORD))
    steps: list[str] = []
    results: list[FirstFactorResult] = []

    async def check() -> None:
        results.append(await upstream.areas.first.check(login, domain, lambda: False, steps.append))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(check)
        await until(lambda: upstream.first.names == [b"ann"])
        await pass_by(mock_clock, WINDOW_S)
    one, two = (f"127.0.0.1:{server.port}" for server in upstream.servers)
    assert steps == [f"asks {one}", f"no answer in time; the next server is {two}", f"{two} answers Access-Accept"]
    assert results[0].found.accept == STAFF


async def test_zombies_are_asked_if_no_server_is_alive(upstream: Upstream, mock_clock: MockClock) -> None:
    """If no server is alive, zombies are asked first and then dead servers. A server that answers is alive."""
    upstream.second.reply = nothing
    datagram = pap("ann", PASSWORD)
    await begin(upstream, datagram)
    await pass_by(mock_clock, WINDOW_S)
    await until(lambda: upstream.second.names == [b"ann"])
    await pass_by(mock_clock, WINDOW_S)
    await upstream.answer(datagram)
    upstream.first.status = upstream.second.status = False
    for dead in (False, True):
        if dead:
            await begin(upstream, pap("cy", PASSWORD, identifier=10))
            for _ in range(4):
                await pass_by(mock_clock, WINDOW_S)
            await upstream.wire.take()
            assert state(upstream, "dead") >= 1
        upstream.first.reply = check
        assert (await upstream.ask(pap("bob", PASSWORD, identifier=1 + dead)))[0] == ACCESS_ACCEPT
        assert state(upstream, "alive") == 1


async def test_a_conversation_stays_with_its_server(upstream: Upstream, mock_clock: MockClock) -> None:
    """A request with State is sent to the server that sent the challenge.

    Other requests go to the first server again when it is alive.
    """
    talk = push_attribute(STATE, b"talk") + push_attribute(REPLY_MESSAGE, b"PIN?")
    upstream.second.reply = lambda request: [encode_reply(ACCESS_CHALLENGE, request, SECRET, talk)]
    datagram = pap("ann", PASSWORD)
    await begin(upstream, datagram)
    await pass_by(mock_clock, WINDOW_S)
    assert await upstream.answer(datagram) == (ACCESS_CHALLENGE, talk)
    upstream.first.reply = check
    while state(upstream, "alive") < 2:  # until it has answered enough Status-Server packets
        await pass_by(mock_clock, CHECK_INTERVAL_S)
    upstream.second.reply = check
    await upstream.ask(pap("ann", PASSWORD, attributes(STATE=b"talk"), identifier=1))
    await upstream.ask(pap("bob", PASSWORD, identifier=2))
    assert (upstream.first.names, upstream.second.names) == ([b"ann", b"bob"], [b"ann", b"ann"])


async def test_a_dead_server_is_revived_by_its_answers_to_status_server(
    upstream: Upstream, mock_clock: MockClock
) -> None:
    """A server is dead after the zombie period.

    After it has answered three Status-Server packets in a row, it gets logins again.
    """
    upstream.first.status = False
    datagram = pap("ann", PASSWORD)
    await begin(upstream, datagram)
    await pass_by(mock_clock, WINDOW_S)
    await upstream.answer(datagram)
    await pass_by(mock_clock, ZOMBIE_S)
    assert (state(upstream, "alive"), state(upstream, "dead")) == (1, 1)
    upstream.first.status, upstream.first.reply = True, check
    while state(upstream, "alive") < 2:
        await pass_by(mock_clock, CHECK_INTERVAL_S)
    assert upstream.first.checks >= ANSWERS_TO_ALIVE
    await upstream.ask(pap("bob", PASSWORD, identifier=1))
    assert upstream.first.names == [b"ann", b"bob"]


# --- the network ------------------------------------------------------------------------------------------------


async def test_a_closed_port(upstream: Upstream) -> None:
    """If the port of a server is closed, the login is sent to the other server without waiting for the window."""
    closed = dict(upstream.first.fields)
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as udp:
        await udp.bind(("127.0.0.1", 0))
        closed["port"] = udp.getsockname()[1]
    domain = upstream.areas.domains.table.by_id[upstream.areas.domain]
    servers = {"servers": [closed, upstream.second.fields]}
    await upstream.areas.first_settings.set(domain, domain.first_factor, {"radius": servers})
    assert await upstream.ask(pap("ann", PASSWORD)) == (ACCESS_ACCEPT, STAFF)


class CloseFirst(trio.abc.Instrument):
    """An instrument that closes the sockets of a home server after an answer has arrived and before the reader runs."""

    def __init__(self, server: HomeServer) -> None:
        self._server = server
        self.closed = False

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Close the sockets if the next turn is the reader's."""
        if task.name.endswith("Pool._read"):
            self._server.close_idle()
            self.closed = True


async def test_a_socket_closed_in_the_turn_in_which_something_came(upstream: Upstream) -> None:
    """If its socket is closed, the reader ends without an error: the server stays alive, and the next login gets
    another socket."""
    assert await upstream.ask(pap("ann", PASSWORD)) == (ACCESS_ACCEPT, STAFF)
    checker = upstream.areas.first.checker(upstream.areas.domains.table.by_id[upstream.areas.domain])
    assert isinstance(checker, Checker)
    instrument = CloseFirst(checker._pool.servers[0])
    trio.lowlevel.add_instrument(instrument)
    await upstream.first.send(0, b"late")
    await until(lambda: instrument.closed)
    trio.lowlevel.remove_instrument(instrument)
    assert await upstream.ask(pap("bob", PASSWORD, identifier=1)) == (ACCESS_ACCEPT, STAFF)
    assert (upstream.first.names, state(upstream, "alive")) == ([b"ann", b"bob"], 2)


async def test_a_name_without_an_address(upstream: Upstream) -> None:
    """A server whose name cannot be resolved is skipped. If it is the only server, the login is rejected at once."""
    domain = upstream.areas.domains.table.by_id[upstream.areas.domain]
    nowhere = {"host": "nowhere.invalid", "secret": "x"}
    for servers, code in (([nowhere, upstream.second.fields], ACCESS_ACCEPT), ([nowhere], ACCESS_REJECT)):
        await upstream.areas.first_settings.set(domain, domain.first_factor, {"radius": {"servers": servers}})
        assert (await upstream.ask(pap("ann", PASSWORD, identifier=code)))[0] == code
    assert (await upstream.reasons())[-1] is Reason.FIRST_FACTOR_UNREACHABLE


# --- many logins ------------------------------------------------------------------------------------------------


async def test_a_thousand_wait_at_once(upstream: Upstream, mock_clock: MockClock) -> None:
    """A thousand logins are pending at the same time.

    They use several sockets, and on each socket an identifier belongs to one pending login. Each login gets its own
    answer.
    """
    room = upstream.wire.waiting.proven
    room.limit = room.free = 4000
    upstream.first.reply = nothing
    datagrams = [pap(f"user{number}", PASSWORD, identifier=number & 255) for number in range(1000)]
    for number, datagram in enumerate(datagrams):
        upstream.wire.put(datagram, source=("192.0.2.1", 40000 + number // 256))
        if number % 50 == 49:
            await until(lambda number=number: len(upstream.first.received) == number + 1)
    sent = Counter(
        (source, request.identifier)
        for source, request in zip(upstream.first.sources, upstream.first.received, strict=True)
    )
    assert len(sent) == 1000
    assert len(set(upstream.first.sources)) == 4
    for index in reversed(range(1000)):
        body = attributes(REPLY_MESSAGE=upstream.first.names[index])
        await upstream.first.send(index, encode_reply(ACCESS_ACCEPT, upstream.first.received[index], SECRET, body))
    replies = set()
    for _ in datagrams:
        reply, to = await upstream.wire.take()
        replies.add((to[1], reply[1], reply[40:]))
    assert replies == {(40000 + number // 256, number & 255, f"user{number}".encode()) for number in range(1000)}
    assert upstream.wire.auth.pending.handed_over == 0


async def test_servers_share_the_logins(upstream: Upstream, mock_clock: MockClock) -> None:
    """If loadBalance is set, the server with the fewest pending logins gets the next one."""
    await upstream.configure(loadBalance=True)
    upstream.first.reply = upstream.second.reply = nothing
    upstream.wire.put(*(pap(f"user{number}", PASSWORD, identifier=number) for number in range(20)))
    await until(lambda: len(upstream.first.received) + len(upstream.second.received) == 20)
    assert len(upstream.first.received) == 10


async def test_an_identifier_rests_after_a_login_that_was_not_answered(
    upstream: Upstream, mock_clock: MockClock
) -> None:
    """The identifier of an unanswered login is not used again for a while, because a late answer would be taken as the
    answer to the next request."""
    await upstream.configure(upstream.first, statusCheck=False)
    datagram = pap("ann", PASSWORD)
    await begin(upstream, datagram)
    await pass_by(mock_clock, WINDOW_S)
    await upstream.answer(datagram)
    upstream.first.reply = check
    taken = (upstream.first.sources[0], upstream.first.received[0].identifier)
    for number in range(300):
        await upstream.ask(pap("bob", PASSWORD, identifier=number & 255, authenticator=number.to_bytes(16)))
    later = [
        (source, request.identifier)
        for source, request in zip(upstream.first.sources[1:], upstream.first.received[1:], strict=True)
    ]
    assert len(later) == 300
    assert taken not in later
