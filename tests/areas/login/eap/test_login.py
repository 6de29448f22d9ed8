"""Tests of the log events about clients that stop answering."""

from structlog.testing import capture_logs

from sallyport.areas.login.eap.login import EapLogin, EapResult, Unfinished
from sallyport.areas.login.eap.verifiers import Station
from sallyport.areas.login.login import Reason
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.packet import IDENTITY, NAK, RESPONSE, Packet, encode
from tests.radius.eap.users import EVERYTHING


def begun(name: bytes) -> EapLogin:
    """Return a conversation in which the client has to answer a challenge."""
    conversation = Conversation(offers(Terms(None, EVERYTHING)), now=0)
    conversation.receive(encode(Packet(RESPONSE, 0, IDENTITY, name)))
    return EapLogin(conversation, "1/local", Station("aabbccddeeff", None), "nas")


def test_a_line_a_second() -> None:
    """One line per second is logged.

    It has the client, the user, the progress, and how many other conversations stopped since the last line.
    """
    now = 0.0
    unfinished = Unfinished(lambda: now)
    with capture_logs() as logged:
        for name in (b"ann", b"bob", b"carl"):
            unfinished.note(begun(name))
        now = 1.0
        unfinished.note(begun(b"dan"))
    assert [(each["client"], each["user"], each["method"], each["others"]) for each in logged] == [
        ("nas", "ann", "eap-mschapv2", 0), ("nas", "dan", "eap-mschapv2", 2),
    ]  # fmt: skip


def test_a_decided_conversation_is_not_logged() -> None:
    """A conversation that was decided or has ended is not logged."""
    refused, over = begun(b"ann"), begun(b"bob")
    refused.refused = EapResult(Reason.WRONG_PASSWORD)
    over.conversation.receive(encode(Packet(RESPONSE, over.conversation.identifier, NAK, b"\0")))
    with capture_logs() as logged:
        for each in (refused, over):
            Unfinished(lambda: 0).note(each)
    assert logged == []
