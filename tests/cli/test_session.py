"""`sallyport session`: the accounting sessions in every format, and requests to their devices."""

import csv
import io
import json
from collections.abc import Iterator

import pytest

from sallyport.radius.packet import ACCOUNTING_REQUEST, ACCOUNTING_RESPONSE, encode_request
from tests.areas.dynamic.nas import answer, thread_nas
from tests.areas.sessions.records import octets
from tests.cli import SECRET, Service, add_client, add_domain
from tests.radius_client import RadiusClient

HOSTILE = "\x1b]0;owned\x07=cmd|'/c calc'!A1"
START, STOP = 1, 2


@pytest.fixture(scope="module")
def domain(service: Service) -> Iterator[str]:
    """Yield a domain with two live sessions and one that has stopped."""
    made = add_domain(service, "lobby")
    add_client(service, "ap", "127.8.3.1", "lobby")
    records = [(START, "s1", "ann"), (START, "s2", HOSTILE), (START, "s3", "cid"), (STOP, "s3", "cid")]
    with RadiusClient(service.ports.acct, SECRET, source="127.8.3.1") as client:
        for number, (status, session, user) in enumerate(records):
            body = octets(status, session.encode(), USER_NAME=user, NAS_IDENTIFIER="ap-1")
            request = encode_request(ACCOUNTING_REQUEST, number, client.secret, body)
            assert client.exchange(request)[0] == ACCOUNTING_RESPONSE
    yield made


def users(service: Service, *options: str) -> list[object]:
    """Return the users of a list. The newest session comes first."""
    return [each["userName"] for each in json.loads(service.ok("session", "list", "--json", *options))]


def test_sessions_are_listed_and_filtered(service: Service, domain: str) -> None:
    """The list is filtered by domain, user and state. If no domain is given, it has the sessions of all domains."""
    assert users(service, "--domain", "lobby") == ["cid", HOSTILE, "ann"]
    assert users(service, "--domain", domain, "--live") == [HOSTILE, "ann"]
    assert users(service, "--domain", domain, "--user", "CID") == ["cid"]
    assert set(users(service)) >= {"cid", "ann"}
    (row,) = json.loads(service.ok("session", "list", "--json", "--user", "ann", "--domain", "lobby"))
    assert (row["domain"], row["device_name"], row["state"]) == ("lobby", "ap-1", "live")


def test_a_session_list_has_no_control_characters(service: Service, domain: str) -> None:
    """Text from a device is printed without control characters, in the table and in CSV."""
    asked = ("session", "list", "--domain", domain)
    table, text = service.ok(*asked), service.ok(*asked, "--csv")
    assert "\x1b" not in table + text and "\x07" not in table + text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["domain"], row["userName"], row["state"]) for row in (rows[0], rows[2])] == [
        ("lobby", "cid", "stopped"), ("lobby", "ann", "live"),
    ]  # fmt: skip


def test_a_session_is_disconnected_or_changed(service: Service, domain: str) -> None:
    """The device receives a Disconnect-Request or a CoA-Request, and its answer is printed. The exit status is 1 for a
    NAK.
    """
    address = "127.8.3.2"
    with thread_nas(lambda request, _: [answer(request, request[0] + 1, secret=SECRET.encode())], address) as nas:
        add_client(service, "wlc", address, "lobby", coaPort=nas.port)
        with RadiusClient(service.ports.acct, SECRET, source=address) as client:
            body = octets(START, b"t1", USER_NAME="tom", NAS_IDENTIFIER="wlc-1")
            assert client.exchange(encode_request(ACCOUNTING_REQUEST, 1, client.secret, body))[0]
        (row,) = json.loads(service.ok("session", "list", "--json", "--user", "tom", "--domain", "lobby"))
        session = str(row["sessionId"])
        (done,) = json.loads(service.ok("session", "disconnect", session, "--json"))
        assert (done["sessionId"], done["outcome"]) == (row["sessionId"], "ack")
        assert "ack" in service.ok("session", "disconnect", "--user", "TOM", "--domain", "lobby")
        assert "ack" in service.ok("session", "change", session, "--set", "Filter-Id=a=b")
        assert [request[0] for request in nas.requests] == [40, 40, 43]
        assert nas.requests[-1].endswith(b"a=b")
        nas.script = lambda request, _: [answer(request, request[0] + 2, secret=SECRET.encode())]
        refused = service.cli("session", "disconnect", session)
    assert refused.returncode == 1
    assert "nak" in refused.stdout
    assert "the request failed for 1 of 1 session" in refused.stderr


@pytest.mark.parametrize(
    "wrong", [(), ("1", "--user", "ann"), ("--user", "ann"), ("1", "--domain", "lobby"), ("x",), ("0",)]
)
def test_disconnect_needs_an_id_or_user_and_domain(service: Service, wrong: tuple[str, ...]) -> None:
    assert service.cli("session", "disconnect", *wrong).returncode == 2


@pytest.mark.parametrize("words", [("disconnect", "99999"), ("change", "99999", "--set", "Filter-Id=x")])
def test_an_unknown_session_is_reported(service: Service, words: tuple[str, ...]) -> None:
    """An unknown session is reported in one line."""
    done = service.cli("session", *words)
    assert (done.returncode, done.stderr) == (1, 'sallyport: session "99999" not found; see: sallyport session list\n')


def test_an_attribute_needs_a_value(service: Service) -> None:
    """`--set` with an attribute but without a value is wrong usage."""
    assert service.cli("session", "change", "1", "--set", "Filter-Id").returncode == 2


def test_an_unknown_domain_is_reported(service: Service, domain: str) -> None:
    done = service.cli("session", "list", "--domain", "nowhere")
    assert done.returncode == 1
    assert "nowhere" in done.stderr
