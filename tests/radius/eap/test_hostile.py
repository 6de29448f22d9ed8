"""Tests of clients that break the protocol. They are refused and cause no other error."""

import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from OpenSSL import SSL

from sallyport.base.errors import PacketError
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Done, Outcome, Send
from sallyport.radius.eap.packet import IDENTITY, MORE, NAK, PEAP, RESPONSE, TLS, TTLS, Packet, decode, encode
from sallyport.radius.eap.ttls import pull_avps, push_avp
from tests.radius.eap.conftest import USER, Site
from tests.radius.eap.supplicant import Inside, MsChapSide, Supplicant, TlsSide, in_peap, in_ttls_pap, silent
from tests.radius.eap.users import EVERYTHING

pytestmark = pytest.mark.torture


@given(st.lists(st.binary(max_size=300), max_size=10))
def test_any_octets(pieces: list[bytes]) -> None:
    """Octets that are not EAP raise only PacketError."""
    conversation = Conversation(offers(Terms(None, EVERYTHING)), now=0)
    for piece in pieces:
        with suppress(PacketError):
            conversation.receive(piece)


@given(st.sampled_from([4, 26]), st.lists(st.binary(max_size=80), min_size=1, max_size=6))
def test_any_data_of_a_method(kind: int, pieces: list[bytes]) -> None:
    """Invalid Type-Data ends a conversation or raises PacketError. It raises no other error."""
    conversation = Conversation(offers(Terms(None, EVERYTHING, (kind,))), now=0)
    conversation.receive(encode(Packet(RESPONSE, 0, IDENTITY, b"ann")))
    for piece in pieces:
        with suppress(PacketError):
            conversation.receive(encode(Packet(RESPONSE, conversation.identifier, kind, piece)))


@given(st.binary(max_size=200))
def test_any_attributes(octets: bytes) -> None:
    """Attributes of TTLS are either read or refused."""
    with suppress(PacketError):
        list(pull_avps(octets))


@given(st.integers(1, 2**32 - 1), st.binary(max_size=40), st.sampled_from([0, 311]))
def test_attributes_go_round(code: int, value: bytes, vendor: int) -> None:
    """Encoded attributes are decoded to the same values, even if there are several."""
    first, second = pull_avps(push_avp(code, value, vendor) * 2)
    assert first == second
    assert (first.code, first.value, first.vendor, first.mandatory) == (code, value, vendor, True)


def begun(site: Site, kind: int) -> tuple[Conversation, Outcome]:
    """Return a conversation in which a method over TLS has started."""
    conversation = Conversation(offers(Terms(site.server, EVERYTHING)), now=0)
    outcome = conversation.receive(encode(Packet(RESPONSE, 0, IDENTITY, USER)))
    if kind != PEAP:
        outcome = conversation.receive(encode(Packet(RESPONSE, conversation.identifier, NAK, bytes((kind,)))))
    return conversation, outcome


def test_fragments_that_never_end(site: Site) -> None:
    """A client that always announces more fragments is refused at a size limit."""
    conversation, outcome = begun(site, PEAP)
    pieces = 0
    while isinstance(outcome, Send):
        pieces += 1
        data = bytes((MORE,)) + bytes(1000)
        outcome = conversation.receive(encode(Packet(RESPONSE, conversation.identifier, PEAP, data)))
    assert isinstance(outcome, Done)
    assert pieces < 70


def test_acknowledgements_that_never_end(site: Site) -> None:
    """A client that never stops sending acknowledgements is refused."""
    conversation, outcome = begun(site, TTLS)
    while isinstance(outcome, Send):
        outcome = conversation.receive(encode(Packet(RESPONSE, conversation.identifier, TTLS, b"\0")))
    assert isinstance(outcome, Done)
    assert not outcome.success


@pytest.mark.parametrize("kind", [TLS, TTLS, PEAP])
def test_mutated_conversations(site: Site, kind: int) -> None:
    """If a client's octets are changed at random, they are refused or dropped.

    They never make a wrong password right, and raise no other error.
    """
    chance = random.Random(kind)
    for _ in range(150):
        inside: Inside = silent
        if kind != TLS:
            inside = in_ttls_pap(USER, b"wrong") if kind == TTLS else in_peap(USER, MsChapSide(USER, b"wrong"))
        side = TlsSide(
            kind, inside, begins=kind == TTLS, version=chance.choice([SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
        )
        conversation, outcome = begun(site, kind)
        supplicant, at, rounds = Supplicant(USER, side), chance.randrange(6), 0
        while isinstance(outcome, Send) and rounds < 40:
            try:
                response = supplicant.respond(outcome.octets)
            except (PacketError, SSL.Error):  # the client's own fault
                break
            if rounds == at:
                response = changed(response, chance)
            with suppress(PacketError):
                outcome = site.users.settle(conversation, conversation.receive(response))
            rounds += 1
        assert not (isinstance(outcome, Done) and outcome.success)


def changed(response: bytes, chance: random.Random) -> bytes:
    """Return a response with the same header and with data that are cut, extended or changed."""
    packet = decode(response)
    data = bytearray(packet.data)
    for _ in range(chance.randrange(1, 4)):
        what = chance.randrange(3)
        if what == 0 and data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        elif what == 1:
            del data[chance.randrange(len(data) + 1) :]
        else:
            data += chance.randbytes(chance.randrange(1, 50))
    return encode(Packet(packet.code, packet.identifier, packet.kind, bytes(data)))


@pytest.fixture(scope="module")
def one_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Return a site for all examples of a property."""
    return Site(tmp_path_factory.mktemp("site"))


@settings(max_examples=60, deadline=None)
@given(clear=st.binary(max_size=60), kind=st.sampled_from([TTLS, PEAP]))
def test_anything_inside_a_tunnel(one_site: Site, clear: bytes, kind: int) -> None:
    """Any inner data of a client are accepted or refused."""
    said = iter([clear, clear, clear])
    supplicant = Supplicant(USER, TlsSide(kind, lambda _side, _heard: next(said, b""), begins=True))
    conversation, outcome = begun(one_site, kind)
    while isinstance(outcome, Send):
        response = supplicant.respond(outcome.octets)
        outcome = one_site.users.settle(conversation, conversation.receive(response))
    assert isinstance(outcome, Done)
    assert not outcome.success
