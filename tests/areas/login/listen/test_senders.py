"""Tests of the bounded table of unknown and unproven senders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.clients.client import SIGNED as LATCHED
from sallyport.areas.clients.client import Client
from sallyport.areas.login.listen import causes
from sallyport.areas.login.listen.senders import Sender, Senders, cause, listed, sent_by
from sallyport.base.wire import Row
from sallyport.radius.attributes import EAP_MESSAGE, NAS_IDENTIFIER, push_attribute, push_vendor_attribute
from sallyport.radius.packet import ACCESS_REQUEST, SharedSecret, encode_request


def client(name: str = "vpn", *, tenant_id: int = 1, signatures: str = "auto", limit: str = "auto") -> Client:
    """Return a RADIUS client that has not latched any setting."""
    return Client(
        id=tenant_id, tenant_id=tenant_id, name=name, network="192.0.2.1/32", secret=b"s", all_domains=1, domain_ids=(),
        product="", require_message_authenticator=signatures, limit_proxy_state=limit, password_verified=0,
        signed_since=None, proxy_state_limited_since=None,
    )  # fmt: skip


def test_each_cause_of_a_sender_is_counted() -> None:
    """Each reason has the number of its datagrams, and their first and last time. The latest reason comes first."""
    senders = Senders()
    for at, reason in ((10, "bad_authenticator"), (20, "unknown_type"), (30, "bad_authenticator"), (40, "unverified")):
        senders.note("192.0.2.1", reason, at)
    assert [(each.reason, each.packets, each.first_at, each.last_at) for each in senders.all()] == [
        ("unverified", 1, 40, 40), ("bad_authenticator", 2, 10, 30), ("unknown_type", 1, 20, 20),
    ]  # fmt: skip


def test_an_address_that_became_a_client_keeps_its_other_causes() -> None:
    """If an unknown address becomes a RADIUS client, only the cause that it is unknown is forgotten."""
    senders = Senders()
    senders.note("192.0.2.1", "unknown_client", 10)
    senders.note("192.0.2.1", "bad_authenticator", 20, client=client())
    senders.forget("192.0.2.1")
    assert [each.reason for each in senders.all()] == ["bad_authenticator"]
    senders.note("192.0.2.2", "unknown_client", 30)
    senders.forget("192.0.2.2")
    assert [each.host for each in senders.all()] == ["192.0.2.1"]


def test_a_peer_that_connects_is_no_longer_listed() -> None:
    """If a RadSec peer connects, its refused connections are over. Its refused packets over UDP are not."""
    senders = Senders()
    for reason in ("handshake", "unknown_certificate", "bad_authenticator"):
        senders.note("192.0.2.1", reason, 10, datagram=b"\1" if reason == "bad_authenticator" else b"")
    senders.welcomed("192.0.2.1")
    assert [each.reason for each in senders.all()] == ["bad_authenticator"]


def test_who_sent_last_comes_first() -> None:
    """The most recent sender is listed first."""
    senders = Senders()
    for host in ("a", "b", "c", "a"):
        senders.note(host, "x", 0)
    assert [sender.host for sender in senders.all()] == ["a", "c", "b"]


def test_a_new_sender_is_logged_once() -> None:
    """A new address is logged once, and so is a new reason. Failed logins are logged as logins instead."""
    senders, reasons = Senders(), ("x", "x", "y", "y", "unverified", "x")
    logged = [senders.note("a", reason, at * 1_000_000) for at, reason in enumerate(reasons)]
    assert [each is not None for each in logged] == [True, False, True, False, False, True]


def test_the_log_has_a_line_a_second_for_each_tenant() -> None:
    """Each tenant has one log line per second.

    A flood from invented addresses does not hide a tenant's client. A sender that got no line gets one for a later
    datagram.
    """
    senders = Senders()
    lines = [senders.note(f"stranger {number}", "unknown_client", number) for number in range(1000)]
    assert [each is not None for each in lines].count(True) == 1
    assert senders.note("192.0.2.1", "unsigned", 1000, client=client()) is not None
    assert senders.note("192.0.2.2", "unsigned", 1001, client=client()) is None
    assert senders.note("192.0.2.2", "unsigned", 1_001_000, client=client()) is not None


def test_a_cause_that_is_over_is_not_listed() -> None:
    """If a request of the same kind succeeds, the sender is no longer listed.

    The next refusal lists it again with the count of all its packets, and it is logged again.
    """
    senders, login, accounting = Senders(), b"\1", b"\4"
    assert senders.note("192.0.2.1", "bad_message_authenticator", 0, client=client(), datagram=login) is not None
    for host, code in (("192.0.2.1", 4), ("192.0.2.2", 1)):
        senders.answered(host, code)
        assert len(senders.all()) == 1
    senders.answered("192.0.2.1", 1)
    assert senders.all() == []
    again = senders.note("192.0.2.1", "bad_message_authenticator", 2_000_000, client=client(), datagram=login)
    assert again is not None
    assert [each.packets for each in senders.all()] == [2]
    senders.note("192.0.2.1", "bad_authenticator", 3_000_000, client=client(), datagram=accounting)
    senders.answered("192.0.2.1", 1)
    assert [each.reason for each in senders.all()] == ["bad_authenticator"]
    senders.answered("192.0.2.1", 4)
    assert senders.all() == []


def test_the_table_is_bounded() -> None:
    """If the table is full, the sender that was silent longest is removed. An active sender keeps its count."""
    senders = Senders(max_senders=10)
    for number in range(1000):
        senders.note(str(number), "x", number)
        senders.note("loud", "x", number)
    found = senders.all()
    assert len(found) == 10
    assert (found[0].host, found[0].packets) == ("loud", 1000)
    assert [sender.host for sender in found[1:]] == [str(number) for number in range(999, 990, -1)]


def test_each_tenant_has_a_share_of_the_table() -> None:
    """Unknown senders and clients of another tenant do not evict the addresses of a tenant."""
    senders = Senders(max_senders=10)
    senders.note("192.0.2.1", "bad_authenticator", 0, client=client())
    for number in range(100):
        senders.note(f"stranger {number}", "unknown_client", number)
        senders.note(f"other {number}", "malformed", number, client=client("other", tenant_id=2))
    assert "192.0.2.1" in [sender.host for sender in senders.all()]
    assert len(senders.all()) == 10


async def test_the_command_line_sees_the_table() -> None:
    """listen.senders returns the addresses with times in ISO 8601."""
    senders = Senders()
    senders.note("192.0.2.1", "unknown_client", 1_767_225_600_000_000)
    time = "2026-01-01T00:00:00.000000Z"
    (row,) = known(senders)
    assert row == {
        "address": "192.0.2.1", "packets": 1, "reason": "unknown_client", "verdict": causes.NOISE, "remedy": "",
        "client": "",
        "packet": "", "nas_identifier": "", "product": "", "signed": False, "first": time, "last": time,
        "node": "node-1",
    }  # fmt: skip


def known(senders: Senders, *clients: str) -> list[Row]:
    """Return the rows that the command line shows.

    clients: the addresses of RADIUS clients.
    """
    return listed(senders, lambda host: client() if host in clients else None, "node-1")


SIGNED = push_attribute(NAS_IDENTIFIER, b"lobby") + push_vendor_attribute(14988, 10, b"identity")


async def test_the_datagram_of_an_unknown_sender_is_described() -> None:
    """The row of an unknown sender has the kind of its packet, the NAS-Identifier and the product."""
    senders = Senders()
    senders.note(
        "192.0.2.1", "unknown_client", 0, datagram=encode_request(ACCESS_REQUEST, 1, SharedSecret(b"x"), SIGNED)
    )
    (row,) = known(senders)
    assert (row["verdict"], row["packet"], row["nas_identifier"], row["product"], row["signed"]) == (
        causes.UNKNOWN_CLIENT, "Access-Request", "lobby", "MikroTik RouterOS", True,
    )  # fmt: skip


LOGIN, EAP = b"", push_attribute(EAP_MESSAGE, b"\2\1\0\5\1")


@pytest.mark.parametrize(
    ("reason", "settings", "body", "verdict", "remedy"),
    [
        ("bad_message_authenticator", {}, LOGIN, causes.WRONG_SECRET, "enter the secret of RADIUS client 'my vpn' at"),
        ("bad_authenticator", {}, LOGIN, causes.WRONG_SECRET, "enter the secret"),
        ("garbled_password", {}, LOGIN, causes.UNSURE, "enter the secret of RADIUS client 'my vpn' at"),
        ("unsigned", {}, LOGIN, causes.UNSIGNED, "if it cannot sign, sallyport client unlatch 'my vpn'"),
        (
            "unsigned", {"signatures": "yes"}, LOGIN, causes.UNSIGNED,
            "sallyport client set 'my vpn' --require-message-authenticator auto",
        ),
        ("unsigned", {"signatures": "no"}, LOGIN, causes.UNSIGNED, "nothing to do"),
        ("unsigned", {}, EAP, causes.NEVER_UNSIGNED, "always need it"),
        ("proxy_state", {}, LOGIN, causes.PROXY_STATE, "or sallyport client unlatch 'my vpn'"),
        ("proxy_state", {"limit": "yes"}, LOGIN, causes.PROXY_STATE, "set 'my vpn' --limit-proxy-state auto"),
        ("unverified", {}, LOGIN, causes.FAILED, "sallyport event list"),
        ("unknown_type", {}, LOGIN, causes.OTHER_PORT, "1813 for accounting"),
        ("no_domain", {}, LOGIN, causes.NO_DOMAIN, "sallyport domain add"),
        ("overload", {}, LOGIN, causes.OVERLOAD, "max_waiting_requests"),
        ("internal_error", {}, LOGIN, causes.INTERNAL, "store_not_writable in the log"),
    ],
)  # fmt: skip
def test_each_cause_has_its_remedy(
    reason: str, settings: dict[str, str], body: bytes, verdict: str, remedy: str
) -> None:
    """Each cause of refused packets has its own verdict and its own remedy."""
    senders, vpn = Senders(), client("my vpn", **settings)
    if vpn.learns_signature:
        vpn.latch(LATCHED)
    datagram = encode_request(ACCESS_REQUEST, 1, SharedSecret(b"x"), body)
    senders.note("192.0.2.1", reason, 0, client=vpn, datagram=datagram)
    (row,) = listed(senders, lambda _: vpn)
    assert (row["verdict"], row["client"]) == (verdict, "my vpn")
    assert remedy in str(row["remedy"])


@pytest.mark.parametrize("own", [client(), None])
def test_a_datagram_that_is_no_request(own: Client | None) -> None:
    """A datagram that is not a request is reported as noise, without a remedy."""
    senders = Senders()
    senders.note("192.0.2.1", "malformed", 0, client=own, datagram=b"GET / HTTP/1.1")
    assert [cause(each, own) for each in senders.all()] == [causes.Cause(causes.NOISE)]


def test_the_setting_of_a_product_is_named() -> None:
    """The remedy names the signature setting of the registered product."""
    senders, nps = Senders(), client()
    nps.product = "Microsoft NPS"
    nps.latch(LATCHED)
    datagram = encode_request(ACCESS_REQUEST, 1, SharedSecret(b"x"), LOGIN)
    senders.note("192.0.2.1", "unsigned", 0, client=nps, datagram=datagram)
    (row,) = listed(senders, lambda _: nps)
    assert "Remote RADIUS Server Group" in str(row["remedy"])


def test_a_client_over_tls() -> None:
    """A client over TLS is listed by its certificate, not by its address."""
    senders = Senders()
    senders.note(
        "203.0.113.9", "no_domain", 0, client=client(), datagram=encode_request(1, 1, SharedSecret(b"x"), LOGIN)
    )
    assert [(row["client"], row["verdict"]) for row in known(senders)] == [("vpn", causes.NO_DOMAIN)]


async def test_a_sender_that_became_a_client_is_not_listed() -> None:
    """An address that has since been added as a RADIUS client is no longer listed."""
    senders = Senders()
    for host in ("192.0.2.1", "192.0.2.2"):
        senders.note(host, "unknown_client", 0)
    assert [row["address"] for row in known(senders, "192.0.2.1")] == ["192.0.2.2"]


@given(st.binary(max_size=200))
def test_no_datagram_breaks_the_list(datagram: bytes) -> None:
    """Any datagram can be listed without an error."""
    sender = Sender("192.0.2.1", 1, 0, 0, "unknown_client", datagram=datagram)
    verdict = cause(sender, None).verdict
    assert verdict in {causes.NOISE, causes.UNKNOWN_CLIENT}
    assert (sent_by(sender).packet == "") is (verdict == causes.NOISE)
