"""Single steps of the methods: what a message contains, and the limits of what a client may send."""

from typing import cast

import pytest
from OpenSSL import SSL

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import EAP_MESSAGE, USER_NAME, USER_PASSWORD
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.conversation import MAX_NAME, Conversation, failed
from sallyport.radius.eap.methods import UNCHECKED, Terms, offers
from sallyport.radius.eap.model import Check, Done, Failed, Failure, MsChap, Next, Passed, Password, Step, Verdict
from sallyport.radius.eap.packet import EXTENSIONS, NAMED_OUTSIDE, REQUEST, RESPONSE, Framing, Packet
from sallyport.radius.eap.password_methods import MAX_STEPS, Gtc, MsChapV2
from sallyport.radius.eap.peap import PeapPhase
from sallyport.radius.eap.server import _context
from sallyport.radius.eap.ttls import MAX_ATTRIBUTES, TtlsPhase, _values, pull_avps, push_avp
from sallyport.radius.eap.tunnel import Tunnel, _Watch, openssl_reason, watch_certificate
from sallyport.radius.mschap import MICROSOFT, MS_CHAP2_RESPONSE, MS_CHAP_CHALLENGE, NtKey, nt_hash
from sallyport.radius.mschap_reply import ErrorCode
from tests.radius.eap.conftest import PASSWORD, USER, Site
from tests.radius.eap.users import EVERYTHING
from tests.radius.test_mschap import ATTEMPT_2, HASH_HASH_2
from tests.radius.test_mschap_reply import SEND_KEY

WRONG = Verdict(False, reason="wrong password")


def received(data: bytes, kind: int = eap.MSCHAPV2) -> Packet:
    """Return the response of a client."""
    return Packet(RESPONSE, 1, kind, data)


def data_of(step: Step) -> bytes:
    assert isinstance(step, Next)
    return step.data


# --- MSCHAPv2 and GTC -----------------------------------------------------------------------------------------------


def answered(method: MsChapV2, name: bytes = b"") -> MsChap:
    """Return the question of a method about the login of RFC 2759 section 9.2. name: the name behind the response."""
    value = ATTEMPT_2.peer_challenge + bytes(8) + ATTEMPT_2.response + b"\0"
    step = method.respond(received(bytes((2, ATTEMPT_2.identifier, 0, 54 + len(name), 49)) + value + name))
    assert isinstance(step, Check)
    assert isinstance(step.question, MsChap)
    return step.question


def test_a_response_without_a_name_has_the_name_of_the_user() -> None:
    """The client hashes the name that it sends. Some clients send none, and hash the identity."""
    method = MsChapV2(b"User", challenge=ATTEMPT_2.challenge)
    question = answered(method)
    assert (question.user, question.hashed) == (b"User", b"User")
    assert NtKey(nt_hash(b"clientPass")).made(question.attempt, question.hashed)
    named = answered(MsChapV2(b"User", challenge=ATTEMPT_2.challenge), b"CORP\\User")
    assert (named.user, named.hashed) == (b"User", b"CORP\\User")


def test_the_keys_of_mschapv2() -> None:
    """The MSK begins with the key of the received octets. The key of the sent octets follows (RFC 3079, RFC 2759)."""
    method = MsChapV2(b"User", challenge=ATTEMPT_2.challenge)
    answered(method)
    sent = data_of(method.answer(Verdict(True, hash_hash=HASH_HASH_2, hashed=b"User")))
    assert (sent[0], sent[4:46]) == (3, b"S=407A5589115FD0D6209F510FE9C04566932CDA56")
    end = method.respond(received(b"\x03"))
    assert isinstance(end, Passed)
    assert (len(end.msk), end.msk[16:]) == (32, SEND_KEY)
    assert end.msk[:16] != SEND_KEY


def test_a_failure_of_mschapv2() -> None:
    """The message has the code Failure (RFC 2759 section 6), the error, and whether another try is possible."""
    method = MsChapV2(b"User", challenge=ATTEMPT_2.challenge, retries=2)
    tries = []
    for _ in range(3):
        answered(method)
        sent = data_of(method.answer(WRONG))
        assert (sent[0], sent[2:4], sent[4:10]) == (4, len(sent).to_bytes(2), b"E=691 ")
        tries.append(b" R=1 " in sent)
    assert tries == [True, True, False]
    expired = MsChapV2(b"User", challenge=ATTEMPT_2.challenge, retries=2)
    answered(expired)
    assert b"E=648 R=0 " in data_of(expired.answer(Verdict(False, error=ErrorCode.PASSWORD_EXPIRED)))


def test_gtc_has_a_limited_number_of_prompts() -> None:
    """After the last prompt, the verdict counts."""
    method, asks = Gtc(USER), Verdict(False, prompt="Enter your code", reason="wrong code")
    for number in range(MAX_STEPS):
        step = method.respond(received(b"x", eap.GTC))
        assert isinstance(step, Check) and isinstance(step.question, Password)
        assert (step.question.step, step.question.prompts) == (number, True)
        assert data_of(method.answer(asks)) == b"Enter your code"
    step = method.respond(received(b"x", eap.GTC))
    assert isinstance(step, Check) and isinstance(step.question, Password)
    assert not step.question.prompts
    assert method.answer(asks) == Failed("wrong code", Failure.REFUSED)


# --- PEAP -----------------------------------------------------------------------------------------------------------


def in_gtc() -> PeapPhase:
    """Return a phase that waits for the password by GTC."""
    phase = PeapPhase(offers(Terms(None, EVERYTHING, (eap.GTC,))), now=0)
    phase.established(None)
    assert data_of(phase.respond(b"\x01" + USER))[0] == eap.GTC
    return phase


def test_a_failure_inside_peap_is_told() -> None:
    """The server sends its Result TLV, with the next identifier, before the conversation fails."""
    phase = in_gtc()
    assert isinstance(phase.respond(bytes((eap.GTC,)) + b"wrong"), Check)
    told = eap.decode(data_of(phase.answer(WRONG)))
    assert (told.code, told.kind, told.data) == (REQUEST, EXTENSIONS, b"\x80\x03\x00\x02\x00\x02")
    assert told.identifier == phase._eap.identifier + 1 & 0xFF
    assert phase.respond(b"\x21\x80\x03\x00\x02\x00\x02") == Failed("wrong password", Failure.REFUSED)


@pytest.mark.parametrize("size", [1, 253], ids=["short", "of more than 255 octets"])
def test_a_header_inside_peap_is_removed(size: int) -> None:
    """A client may send the whole EAP packet. Its length has two octets."""
    phase, password = in_gtc(), b"x" * size
    step = phase.respond(eap.encode(Packet(RESPONSE, phase._eap.identifier, eap.GTC, password)))
    assert isinstance(step, Check)
    assert isinstance(step.question, Password)
    assert step.question.password == password


def test_a_header_without_a_packet_inside_peap() -> None:
    """Four octets that look like a header are no packet of the method."""
    phase = in_gtc()
    with pytest.raises(PacketError):
        phase.respond(b"\x02\x01\x00\x04")


# --- TTLS -----------------------------------------------------------------------------------------------------------


def test_a_message_inside_ttls_has_a_limited_number_of_avps() -> None:
    """The message with the most AVPs is read, and a longer one is refused."""
    avp = push_avp(USER_NAME, USER)
    assert len(list(pull_avps(avp * MAX_ATTRIBUTES))) == MAX_ATTRIBUTES
    with pytest.raises(PacketError, match=f"more than {MAX_ATTRIBUTES}"):
        list(pull_avps(avp * (MAX_ATTRIBUTES + 1)))


@pytest.mark.parametrize(("name", "is_asked"), [(b"", False), (bytes(253), True), (bytes(254), False)])
def test_the_name_inside_ttls(name: bytes, is_asked: bool) -> None:
    """A User-Name has 1 to 253 octets."""
    phase = TtlsPhase(cast(Tunnel, None), offers(Terms(None, EVERYTHING)), EVERYTHING, now=0)
    phase.established(None)
    step = phase.respond(push_avp(USER_NAME, name) + push_avp(USER_PASSWORD, PASSWORD))
    assert isinstance(step, Check if is_asked else Failed)
    assert is_asked or step == Failed("no user name inside TTLS")


@pytest.mark.parametrize("size", [MAX_NAME, MAX_NAME + 1])
def test_the_longest_identity(size: int) -> None:
    """An identity of 253 octets is accepted, and a longer one is refused."""
    conversation = Conversation(offers(Terms(None, EVERYTHING)), now=0)
    response = eap.encode(Packet(RESPONSE, 0, eap.IDENTITY, b"a" * size))
    if size == 253:
        conversation.receive(response)
        assert conversation.identity == b"a" * 253
    else:
        ended = conversation.receive(response)
        assert isinstance(ended, Done)
        assert (ended.success, ended.reason) == (False, "an identity of 254 octets")


def test_a_response_inside_a_tunnel_without_a_request() -> None:
    """The reason of an inner conversation is kept. Any other end of it has a reason too."""
    refused = Done(False, b"", USER, "gtc", reason="wrong password", failure=Failure.REFUSED)
    assert failed(refused) == Failed("wrong password", Failure.REFUSED)
    assert failed(Done(False, b"", USER, "gtc")) == Failed("a response without a request inside the tunnel")


def test_an_answer_before_any_request() -> None:
    """A Nak in place of the identity ends the conversation without a method."""
    conversation = Conversation(offers(Terms(None, EVERYTHING)), now=0)
    with pytest.raises(PacketError):
        conversation.receive(eap.encode(Packet(RESPONSE, 0, eap.NAK, b"\x04")))
    assert not isinstance(conversation._outcome, Done)


class ATunnel:
    """A tunnel whose implicit challenge is known."""

    def export(self, _label: bytes, size: int) -> bytes:
        return bytes(range(size))


@pytest.mark.parametrize(("size", "is_asked"), [(50, True), (49, False), (51, False)])
def test_a_response_inside_ttls_has_its_length(size: int, is_asked: bool) -> None:
    """An MS-CHAP2-Response has 50 octets, and the identifier of the implicit challenge (RFC 5281 section 11.2.4)."""
    phase = TtlsPhase(cast(Tunnel, ATunnel()), offers(Terms(None, EVERYTHING)), EVERYTHING, now=0)
    phase.established(None)
    challenge = push_avp(MS_CHAP_CHALLENGE, bytes(range(16)), MICROSOFT)
    response = push_avp(MS_CHAP2_RESPONSE, b"\x10" + bytes(size - 1), MICROSOFT)
    step = phase.respond(push_avp(USER_NAME, USER) + challenge + response)
    assert isinstance(step, Check if is_asked else Failed)


def test_a_second_login_inside_ttls() -> None:
    """While the password is checked, no other password is taken."""
    phase = TtlsPhase(cast(Tunnel, ATunnel()), offers(Terms(None, EVERYTHING)), EVERYTHING, now=0)
    phase.established(None)
    login = push_avp(USER_NAME, USER) + push_avp(USER_PASSWORD, PASSWORD)
    assert isinstance(phase.respond(login), Check)
    assert phase.respond(login) == Failed("a second login inside TTLS")


def test_an_eap_packet_in_several_avps() -> None:
    """EAP-Message may occur several times, as in RADIUS. Other attributes may not."""
    found = _values(push_avp(EAP_MESSAGE, b"one ") + push_avp(EAP_MESSAGE, b"two"))
    assert found == {(0, EAP_MESSAGE): b"one two"}
    with pytest.raises(PacketError, match="twice"):
        _values(push_avp(USER_NAME, b"a") + push_avp(USER_NAME, b"b"))


def test_a_first_factor_that_checks_nothing(site: Site) -> None:
    """A tunnel is not offered if no method inside it can be checked. The log says why."""
    offered = offers(Terms(site.server, frozenset(), (eap.PEAP, eap.TTLS)))
    assert list(offered.methods) == []
    assert offered.left_out == dict.fromkeys((eap.PEAP, eap.TTLS), UNCHECKED)


# --- TLS ------------------------------------------------------------------------------------------------------------


def test_fragments_without_an_announced_length() -> None:
    """The length is optional (RFC 5216 section 3.1)."""
    framing = Framing(0, 1000)
    assert framing.receive(b"\x40one ") is None
    assert framing.receive(b"\x00two") == b"one two"
    assert framing.receive(b"\xc0\x00\x00\x00\x06one") is None
    with pytest.raises(PacketError, match="instead of the announced 6"):
        framing.receive(b"\x00tw")


def test_the_options_of_tls(site: Site) -> None:
    """A client cannot renegotiate, and nothing is compressed, because both have been used for attacks. The server
    chooses the cipher."""
    context = _context(site.server.configuration, eap.PEAP, 0, None)
    options = context.set_options(0)
    for each in (SSL.OP_NO_RENEGOTIATION, SSL.OP_NO_COMPRESSION, SSL.OP_CIPHER_SERVER_PREFERENCE):
        assert options & each


def test_a_certificate_of_a_server_is_no_client() -> None:
    """The log names OpenSSL's error 26 in words."""
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    connection = SSL.Connection(context)
    connection.set_app_data(watch := _Watch(""))
    assert not watch_certificate(connection, None, 26, 0, 0)  # type: ignore[arg-type]
    assert (watch.verified, watch.refused) == (True, "it may not be used by clients (extended key usage)")
    assert not watch_certificate(connection, None, 9999, 0, 0)  # type: ignore[arg-type]
    assert watch.refused == "it may not be used by clients (extended key usage)"


def test_the_reason_of_an_error_of_openssl() -> None:
    """The last text of OpenSSL's stack is the reason. Without one, it is the kind of error."""
    assert openssl_reason(SSL.Error([("SSL", "f", "first"), ("SSL", "g", "second"), ("SSL", "h", "")])) == "second"
    assert [openssl_reason(each) for each in (SSL.Error(), SSL.ZeroReturnError("text"))] == ["Error", "ZeroReturnError"]


def test_the_types_that_prove_the_outer_name() -> None:
    """Inside a tunnel, the name may be another one."""
    assert {each: each in NAMED_OUTSIDE for each in (eap.IDENTITY, eap.MD5, eap.GTC, eap.MSCHAPV2)} == dict.fromkeys(
        (eap.IDENTITY, eap.MD5, eap.GTC, eap.MSCHAPV2), True
    )
    assert not NAMED_OUTSIDE & {eap.TLS, eap.TTLS, eap.PEAP}


def test_a_long_eap_packet_takes_several_attributes() -> None:
    """Each attribute has at most 253 octets, in order (RFC 3579 section 3.1)."""
    octets = bytes(range(256)) * 2
    pushed = eap.push_eap_message(octets)
    assert [pushed[at : at + 2] for at in (0, 255, 510)] == [b"\x4f\xff", b"\x4f\xff", b"\x4f\x08"]
    assert pushed[2:255] + pushed[257:510] + pushed[512:] == octets
