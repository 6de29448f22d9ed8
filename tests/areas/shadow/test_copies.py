"""Tests of copies of the traffic of another server."""

import pytest
import trio

from sallyport.areas.shadow.comparing import NO_ANSWER, OUTER_ONLY
from sallyport.areas.shadow.logs.record import OldLogin
from sallyport.areas.shadow.repo import NewShadow
from sallyport.areas.shadow.shadow_login import ACCEPT, REJECT, Cause, Kind, OldAnswer
from sallyport.base.clock import SECOND
from sallyport.radius.attributes import (
    ACCT_STATUS_TYPE,
    CALLING_STATION_ID,
    EAP_MESSAGE,
    NAS_IP_ADDRESS,
    REPLY_MESSAGE,
    STATE,
    USER_NAME,
    USER_PASSWORD,
    push_attribute,
    push_vendor_attribute,
)
from sallyport.radius.packet import ACCESS_REQUEST, ACCOUNTING_REQUEST, SharedSecret, encode_request
from sallyport.radius.password import hide_password
from tests.areas import Areas, stored
from tests.areas.login.listen.conftest import Wire
from tests.areas.shadow.conftest import Office

SECRET = b"a secret of the tests"
SOURCE = ("192.0.2.200", 40000)
STATION = b"02-00-00-00-00-01"
NAS = bytes((192, 0, 2, 1))
PASSWORD = b"correct horse battery"


def copy(user: bytes, *more: bytes, code: int = ACCESS_REQUEST, identifier: int = 1) -> bytes:
    """Return a copy of a request."""
    body = push_attribute(USER_NAME, user) + push_attribute(NAS_IP_ADDRESS, NAS)
    body += push_attribute(CALLING_STATION_ID, STATION) + b"".join(more)
    return encode_request(code, identifier, SharedSecret(SECRET), body, authenticator=bytes(16))


@pytest.fixture
async def beside(office: Office) -> Office:
    """The office with a FreeRADIUS that sends copies, and the users ann and bob."""
    await office.areas.client("192.0.2.200/32", name="freeradius", secret=SECRET, shadow=True)
    await office.users("ann", "bob")
    return office


async def receive(office: Office, *datagrams: bytes) -> None:
    """Receive copies, and wait until they are recorded."""
    async with trio.open_nursery() as nursery:
        wire = Wire(office.areas, nursery)
        for number, each in enumerate(datagrams):
            wire.auth.receive([(each, SOURCE, office.areas.clock() + number * SECOND, 0.0)])
        assert wire.auth.in_flight == 0
        await wire.silence()
    await office.areas.app.shadow.copies.flush()


async def rows(areas: Areas) -> list[tuple[object, ...]]:
    """Return what is recorded."""
    sql = "select user_name, kind, answer, method from shadow_logins order by id"
    return [tuple(each) for each in await areas.store.read(lambda tx: tx.rows(sql))]


async def test_a_copy_is_recorded_and_nothing_else(beside: Office) -> None:
    """It gets no answer, no event and no device, and its password is not stored. It is not a sender without an
    answer."""
    hidden = push_attribute(USER_PASSWORD, hide_password(PASSWORD, SharedSecret(SECRET), bytes(16)))
    secret = push_vendor_attribute(311, 25, bytes(50)) + push_vendor_attribute(9, 1, b"psk=hunter2")
    await receive(beside, copy(b"ann", hidden, secret))
    assert await rows(beside.areas) == [("ann", "copy", "", "pap")]
    assert beside.areas.login.own_senders() == []
    for table in ("events", "devices", "stations", "lockouts", "answers"):
        found = await beside.areas.store.read(lambda tx, table=table: tx.value(int, f"select count(*) from {table}"))  # type: ignore[misc] # noqa: S608
        assert found == 0, table
    octets = stored(beside.areas.store)
    assert PASSWORD not in octets and b"hunter2" not in octets and hidden[2:] not in octets


async def test_a_copy_without_an_answer_is_unknown(beside: Office) -> None:
    """The first factor is never tried, so the answer of the other server is needed."""
    await receive(beside, copy(b"ann"))
    (case,) = (await beside.report()).cases
    assert (case.result.value, case.reason, case.place) == ("unknown", NO_ANSWER, "copy from freeradius")


@pytest.mark.parametrize(("text", "answer"), [(b"Access-Accept", "accept"), (b"Access-Reject", "reject")])
async def test_a_copy_after_authentication_has_the_answer(beside: Office, text: bytes, answer: str) -> None:
    """Its Reply-Message is the answer. It is paired with the copy that was made before."""
    reply = push_attribute(REPLY_MESSAGE, text)
    await receive(beside, copy(b"ann"), copy(b"ann", reply, identifier=2))
    assert await rows(beside.areas) == [("ann", "answered", answer, "none")]


async def test_the_start_of_a_session_is_an_acceptance(beside: Office) -> None:
    """Accounting of the same user, station and NAS pairs a copy. Other records of accounting are ignored."""
    await beside.rule("all", "allow", everyone=True)
    start, stop = (push_attribute(ACCT_STATUS_TYPE, number.to_bytes(4)) for number in (1, 2))
    records = [
        copy(b"ann", each, code=ACCOUNTING_REQUEST, identifier=number) for number, each in enumerate((start, stop))
    ]
    await receive(beside, copy(b"ann"), *records)
    assert await rows(beside.areas) == [("ann", "copy", "accept", "none")]
    assert [each.rule for each in (await beside.report(result="same")).cases] == ["all"]


async def test_a_log_answers_a_copy(beside: Office) -> None:
    """A record of the log of the same login is not a login of its own."""
    await receive(beside, copy(b"bob"))
    at = beside.areas.clock() + 2 * SECOND
    attributes = (f"Calling-Station-Id={STATION.decode()}", "NAS-IP-Address=192.0.2.1")
    log = OldLogin(
        at, "bob", REJECT, "192.0.2.1", attributes, "mschapv2", Cause.FIRST_FACTOR, "16: wrong", "VPN", "a:1"
    )
    assert await beside.record([log]) == 0
    assert await rows(beside.areas) == [("bob", "log", "reject", "mschapv2")]
    assert (await beside.report()).differing == 0


async def test_a_log_repeats_what_a_session_has_shown(beside: Office) -> None:
    """A login that was accepted by the start of its session is not counted again by the log. A refusal is another
    login."""
    start = push_attribute(ACCT_STATUS_TYPE, (1).to_bytes(4))
    await receive(beside, copy(b"bob"), copy(b"bob", start, code=ACCOUNTING_REQUEST))
    attributes = (f"Calling-Station-Id={STATION.decode()}", "NAS-IP-Address=192.0.2.1")
    logs = [
        OldLogin(beside.areas.clock() + second * SECOND, "bob", answer, "192.0.2.1", attributes)
        for second, answer in ((2, ACCEPT), (4, REJECT))
    ]
    assert await beside.record(logs) == 1
    assert [each[1:3] for each in await rows(beside.areas)] == [("log", "accept"), ("log", "reject")]


async def test_rounds_of_eap(beside: Office) -> None:
    """Only the first request of a login by EAP is recorded, and it shows only the outer identity."""
    await beside.rule("ann", "allow", users=["ann"])
    eap, state = push_attribute(EAP_MESSAGE, b"\x02\x01\x00\x08\x01ann"), push_attribute(STATE, b"1")
    await receive(beside, copy(b"ann", eap), copy(b"ann", eap, state, identifier=2))
    assert await rows(beside.areas) == [("ann", "copy", "", "eap")]
    start = push_attribute(ACCT_STATUS_TYPE, (1).to_bytes(4))
    await receive(beside, copy(b"ann", start, code=ACCOUNTING_REQUEST))
    (case,) = (await beside.report()).cases
    assert (case.result.value, case.reason) == ("unknown", OUTER_ONLY)


async def test_a_retransmission_adds_nothing(beside: Office) -> None:
    """The same packet is the same copy."""
    await receive(beside, copy(b"ann"), copy(b"ann"))
    assert len(await rows(beside.areas)) == 1


@pytest.mark.parametrize(
    "datagram", [b"", b"\x01" * 19, copy(b"ann")[:-1], b"\x01\x01\x00\x14" + bytes(16), bytes(4096)]
)
async def test_a_malformed_copy_is_dropped(beside: Office, datagram: bytes) -> None:
    """It gets no answer, and the next one is recorded."""
    await receive(beside, datagram, copy(b"bob"))
    assert [each[0] for each in await rows(beside.areas)] == ["bob"]


async def test_two_logins_of_a_user_have_two_answers(office: Office) -> None:
    """Each copy is paired with the nearest answer, and each answer is used once."""
    service, domain, at = office.areas.app.shadow.service, office.areas.domain, office.areas.clock()

    def login(second: int, answer: OldAnswer = OldAnswer.NONE) -> NewShadow:
        kind = Kind.LOG if answer else Kind.COPY
        mark = b"" if answer else b"%d" % second
        return NewShadow(at + second * SECOND, kind, "vpn", "ann", "", "", "pap", b"", answer, mark=mark)

    await service.record(domain, [login(0), login(20)])
    assert await service.record(domain, [login(1, REJECT), login(21, ACCEPT), login(30, ACCEPT)]) == 1
    assert [each[2] for each in await rows(office.areas)] == ["reject", "accept", "accept"]
