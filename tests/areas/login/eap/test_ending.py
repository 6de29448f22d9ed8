"""Tests of copies of the last response. A NAS sends it again, or an attacker with the shared secret replays it."""

import gc
from dataclasses import dataclass

import pytest
import trio
import trio.testing

from sallyport.areas.domains.domain import Mode
from sallyport.areas.login.eap.login import EapLogin
from sallyport.areas.login.listen.exchange import RadiusService
from sallyport.areas.login.login import Login, Reason
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.radius.eap.packet import FAILURE, IDENTITY, RESPONSE, SUCCESS, Packet, encode
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.login.eap.conftest import Ended, Nas
from tests.areas.login.eap.sides import ANN, NO_PROVIDER, SIDES, ttls
from tests.areas.login.listen.conftest import NAS as SOURCE
from tests.areas.login.listen.conftest import WINDOW_S
from tests.areas.login.listen.limits import limit, sends_interims
from tests.areas.login.listen.second import joined, prompted
from tests.areas.login.second.scripted import Script
from tests.packets import attributes
from tests.radius.eap.supplicant import Md5Side, Side, Supplicant, in_ttls_pap

STATION = b"02-00-00-00-00-01"
OTHER_PORT = (SOURCE[0], 50_000)


def body(station: bytes = STATION, address: bytes = b"\xc6\x33\x64\x01", identifier: bytes = b"ap 1") -> bytes:
    """Return the attributes that name the station and the NAS."""
    return attributes(CALLING_STATION_ID=station, NAS_IP_ADDRESS=address, NAS_IDENTIFIER=identifier)


DEVICE = body()


@dataclass
class Last:
    """The last response of a conversation, and its State."""

    nas: Nas
    name: bytes
    response: bytes
    state: bytes

    def datagram(self, attributes: bytes = DEVICE, name: bytes | None = None) -> bytes:
        """Return a request with the response, a new identifier and a new authenticator."""
        return self.nas.request(self.response, self.name if name is None else name, self.state, attributes)

    async def send(
        self, attributes: bytes = DEVICE, name: bytes | None = None, source: tuple[str, int] = SOURCE
    ) -> Ended:
        """Send the response in a new request, and return its answer."""
        datagram = self.datagram(attributes, name)
        self.nas.wire.put(datagram, source=source)
        return (await self.nas.answer(datagram))[0]


async def before_the_last(nas: Nas, side: Side, rounds: int) -> Last:
    """Log in up to the last response, and return this response unsent. rounds: the number of responses before it."""
    supplicant = Supplicant(ANN, side)
    last = Last(nas, ANN, encode(Packet(RESPONSE, 0, IDENTITY, ANN)), b"")
    for _ in range(rounds):
        nas.wire.put(datagram := last.datagram())
        ended, state = await nas.answer(datagram)
        assert ended.code == ACCESS_CHALLENGE
        last = Last(nas, ANN, supplicant.respond(ended.eap), state)
    return last


async def before_the_last_of_md5(nas: Nas) -> Last:
    """Log in by EAP-MD5 up to the last response: an identity and a Nak come before it."""
    nas.wire.areas.credentials = None
    return await before_the_last(nas, Md5Side(b"hello"), 2)


async def accepted(nas: Nas, side: Side) -> tuple[Last, Ended]:
    """Log in, and return the last response and its answer."""
    supplicant = Supplicant(ANN, side)
    last = Last(nas, ANN, encode(Packet(RESPONSE, 0, IDENTITY, ANN)), b"")
    while True:
        nas.wire.put(datagram := last.datagram())
        ended, state = await nas.answer(datagram)
        if ended.code != ACCESS_CHALLENGE:
            return last, ended
        last = Last(nas, ANN, supplicant.respond(ended.eap), state)


@pytest.mark.parametrize("method", SIDES)
async def test_a_copy_gets_the_same_answer(nas: Nas, method: str) -> None:
    """The same response in a new request, from the same port or another one, gets the same answer.

    The keys are encrypted for the new request. There is one event.
    """
    rule = {"name": "a", "action": "allow", "users": ["ann"], "vlan": "7"}
    await nas.wire.areas.rules.add(nas.wire.areas.domain, RuleFields.model_validate(rule))
    last, ended = await accepted(nas, SIDES[method](b"hello"))
    assert (ended.code, ended.vlan, ended.names) == (ACCESS_ACCEPT, b"7", [ANN])
    assert await last.send() == ended
    assert await last.send(source=OTHER_PORT) == ended
    assert await nas.outcomes() == [("", "ann", method)]


async def test_a_copy_at_another_socket(nas: Nas) -> None:
    """A copy at another socket of the node gets the same answer."""
    last, ended = await accepted(nas, SIDES["eap-peap-mschapv2"](b"hello"))
    other = nas.wire.exchange(RadiusService.AUTHENTICATION, 5)
    nas.wire.put(datagram := last.datagram(), exchange=other)
    assert (await nas.answer(datagram))[0] == ended
    assert len(await nas.outcomes()) == 1


async def test_a_copy_before_the_answer(nas: Nas) -> None:
    """A copy that arrives before the answer is dropped. Only one of two simultaneous requests is decided."""
    last = await before_the_last_of_md5(nas)
    first, second = last.datagram(), last.datagram()
    nas.wire.put(first, second)
    assert (await nas.answer(first))[0].code == ACCESS_ACCEPT
    await nas.wire.silence()
    assert nas.wire.dropped("duplicate") == 1
    assert (await last.send()).code == ACCESS_ACCEPT
    assert await nas.outcomes() == [(NO_PROVIDER, "ann", "eap-md5")]


async def test_no_copy_extends_the_time(nas: Nas, mock_clock: trio.testing.MockClock) -> None:
    """When the duplicate window has passed, the conversation is over, however often the response was repeated."""
    last, _ = await accepted(nas, ttls(in_ttls_pap(ANN, b"hello")))
    codes = []
    for _ in range(4):
        codes.append((await last.send()).code)
        mock_clock.jump(WINDOW_S / 3)
    assert codes == [ACCESS_ACCEPT] * 3 + [ACCESS_REJECT]
    assert [reason for reason, *_ in await nas.outcomes()] == [NO_PROVIDER, Reason.CHALLENGE_OVER]


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        (body(station=b"02-00-00-00-00-02"), None),
        (body(address=b"\xc6\x33\x64\x02"), None),
        (body(identifier=b"ap 2"), None),
        (attributes(NAS_IP_ADDRESS=b"\xc6\x33\x64\x01", NAS_IDENTIFIER=b"ap 1"), None),
        (DEVICE, b"bob"),
    ],
    ids=["station", "NAS address", "NAS name", "no station", "outer identity"],
)
async def test_a_replay_for_another(nas: Nas, sent: bytes, name: bytes | None) -> None:
    """The response gets no Access-Accept for another station, another NAS or another outer identity."""
    last, _ = await accepted(nas, ttls(in_ttls_pap(ANN, b"hello")))
    assert (await last.send(sent, name)).code == ACCESS_REJECT
    assert [reason for reason, *_ in await nas.outcomes()] == [NO_PROVIDER, Reason.CHALLENGE_OVER]


async def test_a_station_in_another_notation(nas: Nas) -> None:
    """A MAC address in another notation is the same station."""
    last, ended = await accepted(nas, ttls(in_ttls_pap(ANN, b"hello")))
    assert await last.send(body(station=b"0200.0000.0001")) == ended


async def test_another_response_after_the_end(nas: Nas, mock_clock: trio.testing.MockClock) -> None:
    """Another response with the State of an ended conversation gets no answer."""
    mock_clock.rate = 1
    last, _ = await accepted(nas, ttls(in_ttls_pap(ANN, b"hello")))
    last.response = last.response[:-1] + bytes((last.response[-1] ^ 1,))
    nas.wire.put(last.datagram())
    await nas.wire.silence()
    assert nas.wire.dropped("malformed") == 1


async def test_a_blocked_login_ends_too(nas: Nas) -> None:
    """A login that a rule blocks is decided once."""
    areas = nas.wire.areas
    rule = {"name": "b", "action": "block", "users": ["ann"]}
    await areas.rules.add(areas.domain, RuleFields.model_validate(rule))
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    last, ended = await accepted(nas, ttls(in_ttls_pap(ANN, b"hello")))
    assert (ended.code, (await last.send()).code) == (ACCESS_REJECT, ACCESS_REJECT)
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.BLOCKED, Reason.CHALLENGE_OVER]


async def test_a_login_over_the_limit_of_sessions_ends_too(nas: Nas) -> None:
    """A login that has passed EAP, but not the limit of parallel sessions, gets EAP-Failure and no keys."""
    wire = nas.wire
    await sends_interims(wire, b"ap 1", b"\xc6\x33\x64\x01")
    await limit(wire.areas, 1)
    first = await nas.log_in(ttls(in_ttls_pap(ANN, b"hello")), ANN, DEVICE)
    assert (first.code, first.eap[0], len(first.keys)) == (ACCESS_ACCEPT, SUCCESS, 64)
    for _ in range(4):  # more than the failures that lock a user
        other = await nas.log_in(ttls(in_ttls_pap(ANN, b"hello")), ANN, body(b"02-00-00-00-00-02"))
        assert (other.code, other.eap[0], other.keys) == (ACCESS_REJECT, FAILURE, b"")
    assert [reason for reason, *_ in await nas.outcomes()] == ["", *[Reason.TOO_MANY_SESSIONS] * 4]


async def test_a_copy_after_a_refusal_for_the_limit(nas: Nas) -> None:
    """A copy of the last response of a login over the limit gets no Access-Accept."""
    await sends_interims(nas.wire, b"ap 1", b"\xc6\x33\x64\x01")
    await limit(nas.wire.areas, 1)
    await nas.log_in(ttls(in_ttls_pap(ANN, b"hello")), ANN, body(b"02-00-00-00-00-02"))
    last, ended = await accepted(nas, ttls(in_ttls_pap(ANN, b"hello")))
    assert (ended.code, (await last.send()).code) == (ACCESS_REJECT, ACCESS_REJECT)
    assert [reason for reason, *_ in await nas.outcomes()] == ["", Reason.TOO_MANY_SESSIONS, Reason.CHALLENGE_OVER]


async def test_copies_while_a_push_waits(nas: Nas, script: Script) -> None:
    """A copy joins the prompt and gets the answer. A copy of another station gets no prompt of its own."""
    last = await before_the_last_of_md5(nas)
    first, second = last.datagram(), last.datagram()
    nas.wire.put(first)
    await prompted(script)
    assert (await last.send(body(station=b"02-00-00-00-00-02"))).code == ACCESS_REJECT
    nas.wire.put(second)
    await joined(nas.wire, 1)
    script.answer(0, Outcome.APPROVED)
    ended, _ = await nas.answer(second)
    assert (ended.code, (await last.send()).code, len(script.started)) == (ACCESS_ACCEPT, ACCESS_ACCEPT, 1)
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.CHALLENGE_OVER, ""]


async def test_a_login_that_cannot_be_written(nas: Nas, mock_clock: trio.testing.MockClock) -> None:
    """If the event cannot be stored, there is no answer, and the next copy is decided again."""
    mock_clock.rate = 1
    store, last = nas.wire.areas.store, await before_the_last_of_md5(nas)
    await store.write(lambda tx: tx.execute("alter table events rename to gone"))
    for number in range(2):
        nas.wire.put(last.datagram())
        await nas.wire.silence()
        assert nas.wire.dropped("internal_error") == number + 1
    await store.write(lambda tx: tx.execute("alter table gone rename to events"))
    assert (await last.send()).code == ACCESS_ACCEPT
    assert len(await nas.outcomes()) == 1


async def test_a_user_that_cannot_be_read(nas: Nas, mock_clock: trio.testing.MockClock) -> None:
    """If the user cannot be read at the end of the conversation, there is no answer, and the next copy is decided
    again."""
    mock_clock.rate = 1
    areas, before = nas.wire.areas, SIDES["eap-peap-mschapv2"]
    rounds = (await nas.log_in(before(b"hello"), ANN)).rounds
    last = await before_the_last(nas, before(b"hello"), rounds)
    await areas.store.write(lambda tx: tx.execute("alter table endpoint_users rename to gone"))
    for number in range(2):
        areas.users.forget()
        nas.wire.put(last.datagram())
        await nas.wire.silence()
        assert nas.wire.dropped("internal_error") == number + 1
    await areas.store.write(lambda tx: tx.execute("alter table gone rename to endpoint_users"))
    assert (await last.send()).code == ACCESS_ACCEPT
    assert len(await nas.outcomes()) == 2


async def test_a_copy_after_a_restart(nas: Nas) -> None:
    """After a restart the same packet gets the same octets. A new request with the response gets no Access-Accept."""
    last = await before_the_last_of_md5(nas)
    nas.wire.put(datagram := last.datagram())
    reply, _ = await nas.wire.take()
    nas.wire.put(copy := last.datagram())
    repeated, _ = await nas.wire.take()
    restarted = nas.wire.exchange(RadiusService.AUTHENTICATION, 0)
    restarted.restore(await nas.wire.areas.journal.recent())
    for sent, answer in ((datagram, reply), (copy, repeated)):
        nas.wire.put(sent, exchange=restarted)
        assert (await nas.wire.take())[0] == answer
    assert len(await nas.outcomes()) == 1


async def test_an_ended_login_is_freed_at_once(nas: Nas) -> None:
    """After the answer, no cycle of references holds the login until the garbage collector runs."""
    gc.collect()
    gc.disable()
    others = _logins()
    try:
        last, _ = await accepted(nas, ttls(in_ttls_pap(ANN, b"hello")))
        await last.send()
        assert [each for each in _logins() if not any(each is other for other in others)] == []
    finally:
        gc.enable()


async def test_copies_of_a_nas_that_names_no_station(nas: Nas, script: Script) -> None:
    """A copy joins the prompt also if the NAS sends neither a station nor a port: the State names the login. Another
    login of the same user at the same time has its own prompt."""
    last, other = [await before_the_last_of_md5(nas) for _ in range(2)]
    bare = attributes(NAS_IDENTIFIER=b"ap 1")
    nas.wire.put(last.datagram(bare))
    await prompted(script)
    nas.wire.put(second := last.datagram(bare))
    await joined(nas.wire, 1)
    nas.wire.put(third := other.datagram(bare))
    await prompted(script, 2)
    script.answer(0, Outcome.APPROVED)
    ended, _ = await nas.answer(second)
    assert (ended.code, len(script.started)) == (ACCESS_ACCEPT, 2)
    script.answer(1, Outcome.DENIED)
    ended, _ = await nas.answer(third)
    assert ended.code == ACCESS_REJECT


def _logins() -> list[object]:
    """Return the logins that the process refers to."""
    return [each for each in gc.get_objects() if type(each) in {EapLogin, Login}]
