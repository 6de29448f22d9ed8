"""Tests of EAP conversations: identity, choice of a method, identifiers, repeated responses and rounds."""

import gc
import tracemalloc

import pytest

from sallyport.base.errors import PacketError
from sallyport.radius.eap.conversation import MAX_ROUNDS, Conversation, Conversations
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Chap, Check, Done, Next, Offer, Offers, Password, Send, Step, Verdict, Waiting
from sallyport.radius.eap.packet import IDENTITY, MD5, MSCHAPV2, NAK, PEAP, REQUEST, RESPONSE, Packet, decode, encode
from tests.radius.eap.conftest import PASSWORD, USER, Site
from tests.radius.eap.supplicant import Md5Side, Supplicant, TlsSide, log_in, silent
from tests.radius.eap.users import EVERYTHING, Users

IDENTIFIED = encode(Packet(RESPONSE, 5, IDENTITY, USER))


def begun(*order: int) -> tuple[Conversation, Packet]:
    """Return a conversation whose methods need no tunnel, and its first request."""
    conversation = Conversation(offers(Terms(None, EVERYTHING, order or (MSCHAPV2, MD5))), now=0)
    outcome = conversation.receive(IDENTIFIED)
    assert isinstance(outcome, Send)
    return conversation, decode(outcome.octets)


def test_the_first_method_of_the_order_is_offered() -> None:
    """The first method of the order is offered. Its identifier follows the identifier of the client."""
    _, request = begun()
    assert (request.code, request.identifier, request.kind) == (REQUEST, 6, MSCHAPV2)


def test_the_service_may_begin_a_conversation() -> None:
    """The service may begin the conversation: an empty EAP-Message is answered by EAP-Request/Identity."""
    outcome = Conversation(offers(Terms(None, EVERYTHING)), now=0).begin()
    assert outcome == Send(encode(Packet(REQUEST, 0, IDENTITY, b"")))


def test_a_nak_gets_the_clients_choice() -> None:
    """After a Nak the first Type in it is offered that the service supports and has not tried yet (RFC 3748 section
    5.3.1)."""
    conversation, request = begun()
    outcome = conversation.receive(encode(Packet(RESPONSE, request.identifier, NAK, bytes((PEAP, MSCHAPV2, MD5)))))
    assert isinstance(outcome, Send)
    assert decode(outcome.octets).kind == MD5


@pytest.mark.parametrize("wanted", [b"", b"\0", bytes((MSCHAPV2,)), bytes((43,))])
def test_a_nak_without_a_choice_ends_it(wanted: bytes) -> None:
    """A Nak ends the conversation with a Failure if it has no usable Type: no Type, the refused Type again, or an
    unknown Type."""
    conversation, request = begun()
    outcome = conversation.receive(encode(Packet(RESPONSE, request.identifier, NAK, wanted)))
    assert isinstance(outcome, Done)
    assert (outcome.success, outcome.octets) == (False, bytes((4, request.identifier, 0, 4)))
    assert "not offered" in outcome.reason


def test_a_nak_in_the_middle_is_dropped() -> None:
    """A Nak is accepted only as the response to the first request of a method.

    Therefore it cannot replace a method that is running.
    """
    conversation, request = begun(MSCHAPV2, MD5)
    value = b"\x31" + bytes(49)
    data = bytes((2, 0)) + (4 + len(value)).to_bytes(2) + value
    assert isinstance(conversation.receive(encode(Packet(RESPONSE, request.identifier, MSCHAPV2, data))), Check)
    outcome = conversation.answer(Verdict(False))
    assert isinstance(outcome, Send)
    with pytest.raises(PacketError):
        conversation.receive(encode(Packet(RESPONSE, decode(outcome.octets).identifier, NAK, bytes((MD5,)))))


def test_no_method_is_left() -> None:
    """If no method can be offered, the reason contains each method and why it cannot be offered."""
    outcome = Conversation(offers(Terms(None, frozenset())), now=0).receive(IDENTIFIED)
    assert isinstance(outcome, Done)
    assert "peap (there is no server certificate)" in outcome.reason
    assert "md5 (the domain's first factor cannot check it)" in outcome.reason


def test_a_repeated_response_gets_the_same_request() -> None:
    """A repeated response gets the same request again."""
    conversation, request = begun()
    assert conversation.receive(IDENTIFIED) == Send(encode(request))
    assert conversation.receive(IDENTIFIED) == Send(encode(request))


def test_a_repeated_response_waits_for_the_same_verdict() -> None:
    """A response that is repeated while it is checked waits for the verdict. Another response is dropped."""
    conversation, request = begun(MD5)
    response = Packet(RESPONSE, request.identifier, MD5, b"\x10" + bytes(16))
    outcome = conversation.receive(encode(response))
    assert isinstance(outcome, Check)
    assert isinstance(outcome.question, Chap)
    assert conversation.receive(encode(response)) == Waiting()
    with pytest.raises(PacketError):
        conversation.receive(encode(Packet(RESPONSE, request.identifier, MD5, b"\x10" + bytes(15) + b"x")))
    end = conversation.answer(Verdict(True))
    assert isinstance(end, Done)
    assert conversation.receive(encode(response)) == end


@pytest.mark.parametrize(
    "response",
    [
        Packet(RESPONSE, 7, MD5, b"\x10" + bytes(16)),
        Packet(REQUEST, 6, MD5, b"\x10" + bytes(16)),
        Packet(RESPONSE, 6, MSCHAPV2, b"\x10" + bytes(16)),
    ],
)
def test_an_unfit_response_changes_nothing(response: Packet) -> None:
    """A response with another identifier is dropped, and so are a request and a response of another Type.

    The right response is still accepted after that.
    """
    conversation, request = begun(MD5)
    with pytest.raises(PacketError):
        conversation.receive(encode(response))
    assert isinstance(
        conversation.receive(encode(Packet(RESPONSE, request.identifier, MD5, b"\x10" + bytes(16)))), Check
    )


def test_a_malformed_response_ends_it() -> None:
    """A malformed response ends the login with a reason."""
    conversation, request = begun(MD5)
    outcome = conversation.receive(encode(Packet(RESPONSE, request.identifier, MD5, b"\x10")))
    assert isinstance(outcome, Done)
    assert (outcome.success, outcome.method, outcome.user) == (False, "eap-md5", USER)


class Endless:
    """A method that never ends."""

    kind = 43
    name = "endless"

    def begin(self) -> Step:
        """Return the first request."""
        return Next(b"more")

    def respond(self, packet: Packet) -> Step:
        """Return another request."""
        return Next(b"more")

    def answer(self, verdict: Verdict) -> Step:
        """Raise an error, because the method asks no question."""
        raise NotImplementedError


def test_rounds_are_counted() -> None:
    """The number of rounds is limited."""
    conversation = Conversation(Offers([Offer(Endless.kind, lambda _user, _now: Endless())]), now=0)
    outcome, rounds = conversation.receive(IDENTIFIED), 1
    while isinstance(outcome, Send):
        request = decode(outcome.octets)
        outcome = conversation.receive(encode(Packet(RESPONSE, request.identifier, Endless.kind, b"")))
        rounds += 1
    assert isinstance(outcome, Done)
    assert (outcome.reason, rounds) == (f"more than {MAX_ROUNDS} rounds", MAX_ROUNDS + 1)


def test_secrets_are_not_shown() -> None:
    """The repr of a question contains no password, and the repr of an outcome contains no keys."""
    assert "secret" not in repr(Password(b"ann", b"secret"))
    assert "secret" not in repr(Done(True, b"", b"ann", "eap-tls", b"secret"))


def test_a_login_from_its_identity_on() -> None:
    """A client that wants another method than the first one logs in with that method."""
    supplicant = Supplicant(USER, Md5Side(PASSWORD))
    done = log_in(Conversation(offers(Terms(None, EVERYTHING)), now=0), Users({USER: PASSWORD}), supplicant)
    assert (done.success, done.method, done.user, done.msk) == (True, "eap-md5", USER, b"")
    assert supplicant.offered == [MSCHAPV2]


def blank() -> Conversation:
    """Return a conversation whose methods do not use TLS."""
    return Conversation(offers(Terms(None, EVERYTHING)), now=0)


def test_a_state_finds_its_conversation() -> None:
    """A State finds its conversation for the same RADIUS client, until the conversation ends or reaches its maximum
    age."""
    table, one = Conversations[Conversation](age_s=60), blank()
    state = table.add(1, 1, one, now=0)
    assert len(state) == 16
    assert table.find(1, state, now=59) is one
    assert table.find(2, state, now=0) is None
    assert table.find(1, bytes(16), now=0) is None
    assert table.find(1, state, now=118) is one
    assert table.find(1, state, now=178) is None
    table.end(state)
    table.end(state)
    assert (table.find(1, state, now=0), len(table)) == (None, 0)


def test_the_busiest_client_makes_room() -> None:
    """At the limit the client with the most conversations loses its oldest one, and no other client loses any."""
    table = Conversations[Conversation](most=10)
    quiet = table.add(1, 1, blank(), now=0)
    states = [table.add(1, 2, blank(), now=0) for _ in range(30)]
    assert len(table) == 10
    assert table.find(1, quiet, now=0) is not None
    assert [table.find(2, each, now=0) is not None for each in states] == [False] * 21 + [True] * 9
    assert table.find(3, table.add(1, 3, blank(), now=0), now=0) is not None
    assert table.find(1, quiet, now=0) is not None


def test_the_busiest_tenant_makes_room() -> None:
    """At the limit the tenant with the most conversations loses its oldest one, even if it has many clients with one
    conversation each."""
    table = Conversations[Conversation](most=10)
    busy = [table.add(1, 1, blank(), now=0) for _ in range(4)]
    states = [table.add(2, client, blank(), now=0) for client in range(100, 130)]
    assert all(table.find(1, each, now=0) for each in busy)
    assert [table.find(100 + number, each, now=0) is not None for number, each in enumerate(states)] == (
        [False] * 24 + [True] * 6
    )


def test_old_conversations_are_removed() -> None:
    """Old conversations are removed by a purge, and when the same client begins another one.

    Each of them is reported unless it has ended.
    """
    left: list[Conversation] = []
    table = Conversations[Conversation](age_s=60, left=left.append)
    table.end(table.add(1, 1, blank(), now=0))
    assert left == []
    table.add(1, 1, blank(), now=0)
    table.add(1, 1, blank(), now=60)
    assert len(table) == 1
    table.add(1, 2, blank(), now=61)
    table.purge(now=120)
    assert len(table) == 1
    table.purge(now=121)
    assert (len(table), len(left)) == (0, 3)


@pytest.mark.torture
def test_many_unfinished_conversations(site: Site) -> None:
    """Ten thousand clients that stop after their TLS ClientHello leave at most as many conversations as the limit."""
    table = Conversations[Conversation](most=200)
    hello = TlsSide(PEAP, silent).respond(Packet(1, 1, PEAP, b"\x20"))
    terms = Terms(site.server, EVERYTHING)

    def leave(count: int) -> int:
        for _ in range(count):
            conversation = Conversation(offers(terms), now=0)
            outcome = conversation.receive(encode(Packet(RESPONSE, 0, IDENTITY, b"ann")))
            assert isinstance(outcome, Send)
            start = decode(outcome.octets)
            conversation.receive(encode(Packet(RESPONSE, start.identifier, PEAP, hello)))
            table.add(1, 1, conversation, now=0)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = leave(1000)
        after = leave(9000)
    finally:
        tracemalloc.stop()
    assert len(table) == 200
    assert after < before + 500_000
