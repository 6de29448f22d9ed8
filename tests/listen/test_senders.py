"""The bounded table of those who are not known or not proven."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.wire import Row
from sallyport.listen.senders import Sender, Senders, Verdict, listed, sent_by
from sallyport.radius.attributes import NAS_IDENTIFIER, push_attribute, push_vendor_attribute
from sallyport.radius.packet import ACCESS_REQUEST, SharedSecret, encode_request


def test_a_sender_is_counted() -> None:
    """How often, when first and last, and why its last datagram was of no use."""
    senders = Senders()
    for at, reason in ((10, "unknown_client"), (20, "malformed"), (30, "unverified")):
        senders.note("192.0.2.1", reason, at)
    (sender,) = senders.all()
    assert (sender.host, sender.packets, sender.first_at, sender.last_at, sender.reason) == (
        "192.0.2.1", 3, 10, 30, "unverified",
    )  # fmt: skip


def test_who_sent_last_comes_first() -> None:
    """An address that sends again moves to the front."""
    senders = Senders()
    for host in ("a", "b", "c", "a"):
        senders.note(host, "x", 0)
    assert [sender.host for sender in senders.all()] == ["a", "c", "b"]


def test_what_is_new_is_said_once() -> None:
    """A new address is news, and so is another reason; the same one again is not."""
    senders = Senders()
    assert [senders.note("a", reason, 0) for reason in ("x", "x", "y", "y", "x")] == [True, False, True, False, True]


def test_the_table_is_bounded() -> None:
    """The one that was silent longest makes room; who goes on sending keeps its count."""
    senders = Senders(max_senders=10)
    for number in range(1000):
        senders.note(str(number), "x", number)
        senders.note("loud", "x", number)
    found = senders.all()
    assert len(found) == 10
    assert (found[0].host, found[0].packets) == ("loud", 1000)
    assert [sender.host for sender in found[1:]] == [str(number) for number in range(999, 990, -1)]


def test_each_tenant_has_a_share_of_the_table() -> None:
    """Neither strangers nor another tenant's clients push a tenant's address out."""
    senders = Senders(max_senders=10)
    senders.note("192.0.2.1", "bad_authenticator", 0, client="vpn", tenant_id=1)
    for number in range(100):
        senders.note(f"stranger {number}", "unknown_client", number)
        senders.note(f"other {number}", "malformed", number, client="other", tenant_id=2)
    assert "192.0.2.1" in [sender.host for sender in senders.all()]
    assert len(senders.all()) == 10


async def test_the_command_line_sees_the_table() -> None:
    """listen.senders gives the addresses with times in ISO 8601."""
    senders = Senders()
    senders.note("192.0.2.1", "unknown_client", 1_767_225_600_000_000)
    time = "2026-01-01T00:00:00.000000Z"
    (row,) = known(senders)
    assert row == {
        "address": "192.0.2.1", "packets": 1, "reason": "unknown_client", "verdict": Verdict.NOISE, "client": "",
        "packet": "", "nas_identifier": "", "product": "", "signed": False, "first": time, "last": time,
    }  # fmt: skip


def known(senders: Senders, *clients: str) -> list[Row]:
    """What the command line sees. clients: the addresses that RADIUS clients have by now."""
    return listed(senders, lambda host: host in clients)


SIGNED = push_attribute(NAS_IDENTIFIER, b"lobby") + push_vendor_attribute(14988, 10, b"identity")


async def test_what_a_stranger_sent_is_looked_into() -> None:
    """Its kind of packet, its name for itself, and its product help an admin to recognise it."""
    senders = Senders()
    senders.note(
        "192.0.2.1", "unknown_client", 0, datagram=encode_request(ACCESS_REQUEST, 1, SharedSecret(b"x"), SIGNED)
    )
    (row,) = known(senders)
    assert (row["verdict"], row["packet"], row["nas_identifier"], row["product"], row["signed"]) == (
        Verdict.STRANGER, "Access-Request", "lobby", "MikroTik RouterOS", True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "client", "verdict"),
    [
        ("bad_message_authenticator", "vpn", Verdict.WRONG_SECRET),
        ("bad_authenticator", "vpn", Verdict.WRONG_SECRET),
        ("garbled_password", "vpn", Verdict.WRONG_SECRET),
        ("unverified", "vpn", Verdict.UNPROVEN),
        ("malformed", "vpn", Verdict.NOISE),
        ("malformed", "", Verdict.NOISE),
    ],
)
def test_wrong_secrets_are_told_from_noise(reason: str, client: str, verdict: Verdict) -> None:
    """A known client whose packets do not hold has a wrong secret; what is no RADIUS at all is noise."""
    senders = Senders()
    senders.note("192.0.2.1", reason, 0, client=client, datagram=b"GET / HTTP/1.1")
    assert [each.verdict() for each in senders.all()] == [verdict]


def test_a_known_client_that_is_refused_is_no_stranger() -> None:
    """Unsigned where it must sign: a request, and from a client."""
    senders = Senders()
    senders.note("a", "unsigned", 0, client="vpn", datagram=encode_request(ACCESS_REQUEST, 1, SharedSecret(b"x"), b""))
    assert [each.verdict() for each in senders.all()] == [Verdict.REFUSED]


async def test_who_has_become_a_client_is_no_stranger_any_more() -> None:
    """The list is what is left to do."""
    senders = Senders()
    for host in ("192.0.2.1", "192.0.2.2"):
        senders.note(host, "unknown_client", 0)
    assert [row["address"] for row in known(senders, "192.0.2.1")] == ["192.0.2.2"]


@given(st.binary(max_size=200))
def test_no_datagram_breaks_the_list(datagram: bytes) -> None:
    """What strangers send is octets from the network: it is looked into without raising, and without being believed."""
    sender = Sender("192.0.2.1", 1, 0, 0, "unknown_client", datagram=datagram)
    assert sender.verdict() in {Verdict.NOISE, Verdict.STRANGER}
    assert (sent_by(sender).packet == "") is (sender.verdict() is Verdict.NOISE)
