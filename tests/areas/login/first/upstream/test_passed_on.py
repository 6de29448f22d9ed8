"""Tests of requests to a home server and of its answers: attributes, methods and verdicts."""

from collections.abc import Iterator

import pytest
import trio

from sallyport.areas.login.login import Reason
from sallyport.base.trace import following, new_trace
from sallyport.radius.attributes import (
    CALLING_STATION_ID,
    CHAP_CHALLENGE,
    CHAP_PASSWORD,
    EAP_MESSAGE,
    MESSAGE_AUTHENTICATOR,
    NAS_IDENTIFIER,
    PROXY_STATE,
    REPLY_MESSAGE,
    STATE,
    USER_NAME,
    USER_PASSWORD,
    VENDOR_SPECIFIC,
    pull_attributes,
    pull_vendor_attributes,
    push_attribute,
    push_vendor_attribute,
)
from sallyport.radius.mschap import MICROSOFT, MS_CHAP2_RESPONSE, MS_CHAP_CHALLENGE, MS_CHAP_ERROR, MS_MPPE_SEND_KEY
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT, Request, SharedSecret, encode_reply
from sallyport.radius.salted import Hiding
from tests import areas as shared
from tests.areas.login.first.upstream.conftest import Upstream
from tests.areas.login.first.upstream.home_server import PASSWORD, SECRET, SORRY, STAFF, HomeServer, typed
from tests.areas.login.listen.second import events
from tests.outgoing.counted import CountedTurns
from tests.packets import access_request, attributes, chap, opened, pap

PASSED = Reason.NO_PROVIDER  # the first factor is right; the domain monitors and has no MFA provider


def answers(server: HomeServer, code: int, body: bytes = b"") -> None:
    """Set the server's answer to every request."""
    server.reply = lambda request: [encode_reply(code, request, SECRET, body)]


def passed(request: Request) -> list[tuple[int, bytes]]:
    """Return the attributes of a request to the home server, without those that belong only to this hop."""
    hop = {MESSAGE_AUTHENTICATOR, PROXY_STATE, USER_PASSWORD}
    return [pair for pair in pull_attributes(request.data, 20) if pair[0] not in hop]


# --- verdicts ---------------------------------------------------------------------------------------------------


async def test_an_accept_is_the_first_factor(upstream: Upstream) -> None:
    """If the home server sends an Accept, the first factor is right.

    The NAS gets the attributes of the Accept. There is one request and one event.
    """
    assert await upstream.ask(pap("ann", PASSWORD)) == (ACCESS_ACCEPT, STAFF)
    assert await upstream.reasons() == [PASSED]
    assert upstream.first.names == [b"ann"]
    assert upstream.counted("requests_total", outcome="accept") == 1
    assert upstream.wire.auth.pending.handed_over == 0


async def test_the_event_has_the_time_of_the_home_server(upstream: Upstream) -> None:
    """The time for which a login waited for the home server is stored, and is part of the time to the decision."""
    await upstream.ask(pap("ann", PASSWORD))
    (event,) = await events(upstream.areas)
    assert event.first_us > 0
    assert event.second_us == 0
    assert event.attributes == "Class = 0x7374616666"


async def test_answers_are_read_in_turns(upstream: Upstream) -> None:
    """If many answers arrive in the same instant, a few of them are read at a time."""
    upstream.areas.http.of(1).egress.turns = turns = CountedTurns(1)
    await upstream.configure()
    await upstream.ask(pap("ann", PASSWORD))
    assert turns.taken


async def test_a_reject_is_a_wrong_first_factor(upstream: Upstream) -> None:
    """If the home server sends a Reject, the login is rejected even in a monitored domain. The NAS gets the text."""
    assert await upstream.ask(pap("ann", "wrong")) == (ACCESS_REJECT, SORRY)
    assert await upstream.reasons() == [Reason.REFUSED_UPSTREAM]


async def test_a_challenge_is_passed_through(upstream: Upstream) -> None:
    """The NAS gets the State and the text of a challenge, and no event is recorded.

    The next request contains the same State and is decided.
    """
    asks = push_attribute(STATE, b"\0talk") + push_attribute(REPLY_MESSAGE, b"PIN?")
    answers(upstream.first, ACCESS_CHALLENGE, asks)
    assert await upstream.ask(pap("ann", PASSWORD)) == (ACCESS_CHALLENGE, asks)
    assert await upstream.reasons() == []
    answers(upstream.first, ACCESS_ACCEPT)
    assert (await upstream.ask(pap("ann", "1234", attributes(STATE=b"\0talk"))))[0] == ACCESS_ACCEPT
    assert upstream.first.received[1].first[STATE] == b"\0talk"
    assert await upstream.reasons() == [PASSED]


# --- requests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "password",
    [b"p", b"x" * 16, b"x" * 17, b"x" * 128, "Zürich 上海".encode(), b"\xfc\xff", b"a\0b", b" \0 "],
)
async def test_a_password_is_encrypted_for_the_home_server(upstream: Upstream, password: bytes) -> None:
    """The password is encrypted for the home server, whatever its octets and its length."""
    await upstream.ask(pap("ann", password))
    assert typed(upstream.first.received[0]) == password


@pytest.mark.parametrize("name", [b"x" * 253, "ü".encode() * 126, b"z\xfc", b"ann\0", b"\0"])
async def test_a_name_is_passed_as_it_is(upstream: Upstream, name: bytes) -> None:
    """User-Name is passed on unchanged. It may contain any octets, and up to 253 of them."""
    await upstream.ask(pap(name, PASSWORD))
    assert upstream.first.names == [name]


async def test_all_attributes_go_along(upstream: Upstream) -> None:
    """All attributes are passed on except those that belong to the hop.

    One Message-Authenticator and the password come first, and the service's Proxy-State follows those of the NAS (RFC
    2865 section 5).
    """
    body = attributes(NAS_IDENTIFIER=b"nas", PROXY_STATE=b"one") + push_vendor_attribute(9, 1, b"pair")
    body += attributes(PROXY_STATE=b"two", CALLING_STATION_ID=b"02-00-00-00-00-01")
    datagram = pap("ann", PASSWORD, body)
    code, answer = await upstream.ask(datagram)
    (request,) = upstream.first.received
    kinds = [kind for kind, _ in pull_attributes(request.data, 20)]
    assert kinds == [
        MESSAGE_AUTHENTICATOR, USER_PASSWORD, USER_NAME, NAS_IDENTIFIER, PROXY_STATE, VENDOR_SPECIFIC, PROXY_STATE,
        CALLING_STATION_ID, PROXY_STATE,
    ]  # fmt: skip
    assert passed(request) == passed(opened(datagram))
    assert request.values(PROXY_STATE)[:2] == [b"one", b"two"]
    assert (code, answer) == (ACCESS_ACCEPT, STAFF + attributes(PROXY_STATE=b"one") + attributes(PROXY_STATE=b"two"))
    assert request.authenticator != opened(datagram).authenticator


@pytest.mark.parametrize("challenge", [None, b"c" * 16, b"c" * 32])
async def test_chap_keeps_its_challenge(upstream: Upstream, challenge: bytes | None) -> None:
    """If the authenticator was used as the CHAP challenge, it is passed on as CHAP-Challenge."""
    datagram = chap("ann", PASSWORD, challenge)
    answers(upstream.first, ACCESS_ACCEPT)
    assert (await upstream.ask(datagram))[0] == ACCESS_ACCEPT
    (request,) = upstream.first.received
    assert request.values(CHAP_CHALLENGE) == [challenge or opened(datagram).authenticator]
    assert request.first[CHAP_PASSWORD] == opened(datagram).first[CHAP_PASSWORD]


async def test_eap_is_passed_on_round_by_round(upstream: Upstream) -> None:
    """All fragments of EAP-Message are passed on in order, in both directions.

    A Reject contains the home server's EAP-Failure.
    """
    first, second = b"\2\1\1\xfb" + b"a" * 249, b"b" * 250
    pieces = push_attribute(EAP_MESSAGE, first) + push_attribute(EAP_MESSAGE, second)
    answers(upstream.first, ACCESS_CHALLENGE, pieces + push_attribute(STATE, b"eap"))
    body = attributes(USER_NAME=b"ann") + pieces
    assert await upstream.ask(access_request(body)) == (ACCESS_CHALLENGE, pieces + push_attribute(STATE, b"eap"))
    assert upstream.first.received[0].values(EAP_MESSAGE) == [first, second]
    failure = push_attribute(EAP_MESSAGE, b"\4\1\0\4")
    answers(upstream.first, ACCESS_REJECT, failure)
    assert await upstream.ask(access_request(body, identifier=1)) == (ACCESS_REJECT, failure)


async def test_mschap_is_passed_on_unchanged(upstream: Upstream) -> None:
    """MS-CHAP attributes are passed on unchanged, and so is the MS-CHAP error."""
    body = push_vendor_attribute(MICROSOFT, MS_CHAP_CHALLENGE, bytes(range(16)))
    body += push_vendor_attribute(MICROSOFT, MS_CHAP2_RESPONSE, bytes(range(50)))
    error = push_vendor_attribute(MICROSOFT, MS_CHAP_ERROR, b"\0E=691 R=1")
    answers(upstream.first, ACCESS_REJECT, error)
    datagram = access_request(attributes(USER_NAME=b"ann") + body)
    assert await upstream.ask(datagram) == (ACCESS_REJECT, error)
    assert passed(upstream.first.received[0]) == passed(opened(datagram))


async def test_an_unsigned_request_is_signed_on_its_way(upstream: Upstream) -> None:
    """The request to the home server has a Message-Authenticator, even if the NAS sent none."""
    assert (await upstream.ask(pap("ann", PASSWORD, signed=False)))[0] == ACCESS_ACCEPT
    assert upstream.first.received[0].signed


@pytest.mark.parametrize(
    ("name", "sent"), [("ann@corp", b"ann"), ("ann@mail@corp", b"ann@mail"), ("CORP\\ann", b"ann"), ("ann", b"ann")]
)
async def test_a_realm_is_taken_off_where_that_is_wanted(upstream: Upstream, name: str, sent: bytes) -> None:
    """If stripRealm is set, the realm is removed from User-Name. Otherwise User-Name is unchanged."""
    await upstream.ask(pap(name, PASSWORD))
    await upstream.configure(stripRealm=True)
    await upstream.ask(pap(name, PASSWORD, identifier=1))
    assert upstream.first.names == [name.encode(), sent]


async def test_a_request_without_room_is_dropped(upstream: Upstream) -> None:
    """A request that would exceed 4096 octets with the added attributes is dropped.

    A request of exactly 4096 octets is passed on.
    """
    room = 4096 - 20 - 18 - 18 - 5 - 10  # header, Message-Authenticator, password, name, our Proxy-State
    full = attributes(REPLY_MESSAGE=bytes(253)) * (room // 255)
    rest = room - len(full)
    assert (await upstream.ask(pap("ann", PASSWORD, full + attributes(REPLY_MESSAGE=bytes(rest - 2)))))[
        0
    ] == ACCESS_ACCEPT
    assert len(upstream.first.received[0].data) == 4096
    upstream.wire.put(pap("ann", PASSWORD, full + attributes(REPLY_MESSAGE=bytes(rest - 1)), identifier=1))
    await upstream.wire.silence()
    assert upstream.wire.dropped("malformed") == 1
    assert len(upstream.first.received) == 1


# --- answers ----------------------------------------------------------------------------------------------------


async def test_keys_are_hidden_for_the_nas(upstream: Upstream) -> None:
    """Keys that the home server encrypted with its secret are encrypted again with the secret of the NAS."""
    key = bytes(range(32))

    def reply(request: Request) -> list[bytes]:
        hidden = Hiding(SECRET, request.authenticator).hide(key)
        body = STAFF + push_vendor_attribute(MICROSOFT, MS_MPPE_SEND_KEY, hidden)
        return [encode_reply(ACCESS_ACCEPT, request, SECRET, body)]

    upstream.first.reply = reply
    datagram = pap("ann", PASSWORD)
    _, answer = await upstream.ask(datagram)
    (_, staff), (_, vendor) = pull_attributes(answer)
    _, ((kind, hidden),) = pull_vendor_attributes(vendor)
    assert (staff, kind) == (b"staff", MS_MPPE_SEND_KEY)
    assert Hiding(SharedSecret(shared.SECRET), opened(datagram).authenticator).reveal(hidden) == key


async def test_keys_that_cannot_be_decrypted(upstream: Upstream) -> None:
    """If an Accept contains a key that cannot be decrypted, the login is rejected at once."""
    answers(upstream.first, ACCESS_ACCEPT, push_vendor_attribute(MICROSOFT, MS_MPPE_SEND_KEY, b"short"))
    assert (await upstream.ask(pap("ann", PASSWORD)))[0] == ACCESS_REJECT
    assert await upstream.reasons() == [Reason.FIRST_FACTOR_UNREACHABLE]


# --- loops ------------------------------------------------------------------------------------------------------


async def test_a_login_that_comes_back_is_refused(upstream: Upstream) -> None:
    """If a home server sends the request back to the service, the login ends, and the first request gets that
    answer."""
    wire = upstream.wire

    def loop(request: Request) -> list[bytes]:
        body = b"".join(push_attribute(*pair) for pair in pull_attributes(request.data, 20) if pair[0] != 80)
        wire.put(access_request(body, identifier=200))
        return [encode_reply(ACCESS_REJECT, request, SECRET)]

    upstream.first.reply = loop
    wire.put(pap("ann", PASSWORD))
    assert sorted([(await wire.take())[0][1], (await wire.take())[0][1]]) == [0, 200]
    assert set(await upstream.reasons()) == {Reason.PROXY_LOOP, Reason.REFUSED_UPSTREAM}
    assert len(upstream.first.received) == 1


# --- tasks ------------------------------------------------------------------------------------------------------


def tasks_below(task: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    """Yield a task, and all tasks below it."""
    yield task
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield from tasks_below(child)


async def test_tasks_that_outlive_a_login_are_in_no_trace(upstream: Upstream) -> None:
    """The tasks that read from a home server, and that watch it, begin with the login that needs them first."""
    with following(trace := new_trace()):
        assert (await upstream.ask(pap("ann", PASSWORD)))[0] == ACCESS_ACCEPT
    root = trio.lowlevel.current_root_task()
    assert root is not None
    begun = {task.name.rpartition(".")[2]: task for task in tasks_below(root)}
    assert {"_read", "_carry"} <= begun.keys()
    assert not [name for name, task in begun.items() if trace in task.context.values()]
