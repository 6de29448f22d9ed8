"""Tests of the readers of logs: NPS, FreeRADIUS and Cisco ISE."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.shadow.logs.reading import MAX_LINE, READERS, format_of, read_logs
from sallyport.areas.shadow.logs.record import MAX_PENDING, Frame, OldLogin, Tally
from sallyport.areas.shadow.shadow_login import ACCEPT, REJECT, Cause
from sallyport.base.clock import iso
from sallyport.base.errors import StartError
from tests.areas.shadow.files import STATION, Packet, database, dts, ias, several, write

DETAIL = """\
Thu Jan  1 08:00:00 2026
	Packet-Type = Access-Request
	User-Name = "bob"
	User-Password = "hunter2"
	NAS-IP-Address = 192.0.2.1
	NAS-Port-Type = Ethernet
	Calling-Station-Id = "02-00-00-00-00-01"
	Cisco-AVPair = "audit-session-id=1"
	Cisco-AVPair = "service-type=Framed"
	Packet-Src-IP-Address = 192.0.2.1
	Packet-Src-Port = 40000
	Timestamp = 1767254400

Thu Jan  1 08:00:01 2026
	Packet-Type = Access-Accept
	Tunnel-Private-Group-Id:0 = "20"
	Packet-Dst-IP-Address = 192.0.2.1
	Packet-Dst-Port = 40000
	Timestamp = 1767254401

Thu Jan  1 08:00:05 2026
	Packet-Type = Accounting-Request
	Acct-Status-Type = Start
	User-Name = "eve"
	NAS-IP-Address = 192.0.2.1
	Timestamp = 1767254405
"""
RADIUS_LOG = (
    "Thu Jan  1 08:00:00 2026 : Auth: (3) Login OK: [bob] (from client vpn port 5 cli 02-00-00-00-00-01)\n"
    "Thu Jan  1 08:00:01 2026 : Auth: (4) Login incorrect (mschap: MS-CHAP2-Response is incorrect): [eve/hunter2] "
    "(from client vpn port 0)\n"
    "Thu Jan  1 08:00:02 2026 : Info: Ready to process requests\n"
    "Thu Jan  1 08:00:03 2026 : Auth: (5) Login incorrect (No Auth-Type found: rejecting the user): "
    "[host/pc1.corp/<via Auth-Type = eap>] (from client vpn port 0)\n"
)
LINELOG = (
    "2026-01-01 08:00:00\tPacket-Type=Access-Accept\tUser-Name=bob\tPacket-Src-IP-Address=192.0.2.1\t"
    "Calling-Station-Id=02-00-00-00-00-01\tNAS-Port-Type=Virtual\n"
    "2026-01-01 08:00:01\tPacket-Type=Access-Challenge\tUser-Name=bob\n"
    "2026-01-01 08:00:02\tPacket-Type=Access-Reject\tUser-Name=eve\tPacket-Src-IP-Address=192.0.2.1\t"
    "Reason=wrong password\n"
)
ISE = (
    "<181>Jan  1 08:00:00 ise1 CISE_Passed_Authentications 0000000487 2 0 2026-01-01 09:00:00.299 +01:00 0011267964 "
    "5200 NOTICE Passed-Authentication: Authentication succeeded, ConfigVersionId=240, Device IP Address=192.0.2.1, "
    "DestinationPort=1812, UserName=bob, Protocol=Radius, NetworkDeviceName=wlc, User-Name=bob, "
    "NAS-IP-Address=192.0.2.1, Service-Type=Framed, Called-Station-ID=02-aa-00-00-00-01:corp, "
    "cisco-av-pair=mdm-tlv=device-type=VMware\\, Inc. Platform,\n"
    "<181>Jan  1 08:00:00 ise1 CISE_Passed_Authentications 0000000487 2 1 Calling-Station-ID=02-00-00-00-00-01, "
    "NAS-Port-Type=Wireless - IEEE 802.11, EapTunnel=PEAP, EapAuthentication=EAP-MSCHAPv2, "
    "AuthorizationPolicyMatchedRule=Staff,\n"
    "<181>Jan  1 08:00:01 ise1 CISE_Failed_Attempts 0000000488 1 0 2026-01-01 08:00:01.000 +00:00 0011267965 5400 "
    "NOTICE Failed-Attempt: Authentication failed, Device IP Address=192.0.2.1, UserName=eve, Protocol=Radius, "
    "User-Name=eve, AuthenticationMethod=PAP_ASCII, FailureReason=22040 Wrong password or invalid shared secret,\n"
    "<181>Jan  1 08:00:02 ise1 CISE_Failed_Attempts 0000000489 1 0 2026-01-01 08:00:02.000 +00:00 0011267966 5434 "
    "NOTICE Failed-Attempt: Rejected, Device IP Address=192.0.2.1, UserName=CORP\\\\dan, Protocol=Radius, "
    "FailureReason=15039 Rejected per authorization profile, AuthorizationPolicyMatchedRule=Guests,\n"
    "<181>Jan  1 08:00:03 ise1 CISE_RADIUS_Accounting 0000000490 1 0 2026-01-01 08:00:03.000 +00:00 1 3002 NOTICE ...\n"
)


def read(path: Path, **options: str) -> tuple[list[OldLogin], Tally]:
    """Return the logins of a file."""
    tally = Tally()
    return list(read_logs([path], UTC, tally, **options)), tally


def text_of(tmp_path: Path, text: str) -> Path:
    """Return a file with a text."""
    path = tmp_path / "some.log"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("form", [dts, ias, database])
def test_all_formats_of_nps(tmp_path: Path, form) -> None:  # type: ignore[no-untyped-def]
    """An answer finds its request by its Class, also if the packets of several logins are mixed."""
    first, second = several([Packet("bob"), Packet("CORP\\eve", reason=16, station="02-00-00-00-00-02")])
    one, two = form(first).splitlines(keepends=True), form(second).splitlines(keepends=True)
    found, tally = read(text_of(tmp_path, "".join([one[0], two[0], two[1], one[1]])))
    eve, bob = found
    assert (bob.user, bob.answer, bob.client, bob.method) == ("bob", ACCEPT, "192.0.2.1", "mschapv2")
    assert (bob.policy, bob.place, iso(bob.at)[:19]) == ("Staff VPN", "some.log:1", "2026-01-01T08:00:00")
    assert f"Calling-Station-Id={STATION}" in bob.attributes
    assert "NAS-Port-Type=19" in bob.attributes
    assert (eve.user, eve.answer, eve.cause) == ("CORP\\eve", REJECT, Cause.FIRST_FACTOR)
    assert eve.reason == "16: wrong user name or password"
    assert (tally.unread, tally.unanswered, tally.lines) == (0, 0, 4)


def test_challenges_of_eap_are_rounds(tmp_path: Path) -> None:
    """Only the last answer of a login by EAP makes a login."""
    first, last = several([Packet("bob", method=11), Packet("bob", method=11)])
    challenge = dts(first).replace('<Packet-Type data_type="0">2<', '<Packet-Type data_type="0">11<')
    found, tally = read(text_of(tmp_path, challenge + dts(last)))
    assert [(each.user, each.method) for each in found] == [("bob", "eap-peap")]
    assert tally.unanswered == 0


@pytest.mark.parametrize(
    ("code", "cause"),
    [(16, Cause.FIRST_FACTOR), (34, Cause.FIRST_FACTOR), (265, Cause.FIRST_FACTOR), (48, Cause.POLICY),
     (65, Cause.POLICY), (66, Cause.POLICY), (6, Cause.UNKNOWN)],
)  # fmt: skip
def test_the_reason_codes_of_nps(tmp_path: Path, code: int, cause: Cause) -> None:
    """A code tells whether the identity or a policy was the cause."""
    (found,), _ = read(write(tmp_path / "a.log", [Packet("bob", reason=code)]))
    assert found.cause is cause


def test_times_are_local_times_of_the_other_server(tmp_path: Path) -> None:
    """NPS writes no time zone, so the caller gives it."""
    path, tally = write(tmp_path / "a.log", [Packet("bob", at=datetime(2026, 7, 1, 8))]), Tally()
    (found,) = read_logs([path], ZoneInfo("Europe/Berlin"), tally)
    assert iso(found.at) == "2026-07-01T06:00:00.000000Z"


def test_an_event_may_have_several_lines(tmp_path: Path) -> None:
    """Some collectors indent the XML."""
    text = dts(Packet("bob & co")).replace("><", ">\n   <")
    (found,), tally = read(text_of(tmp_path, f"<Events>\n{text}</Events>\n"))
    assert (found.user, tally.unread) == ("bob & co", 0)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    """A file is UTF-8 or UTF-16, or its lines are in the given encoding."""
    path = tmp_path / "a.log"
    path.write_bytes(dts(Packet("müller", policy="Büro")).encode(encoding))
    (found,), tally = read(path)
    assert (found.user, found.policy, tally.unread) == ("müller", "Büro", 0)


def test_truncated_records_are_counted(tmp_path: Path) -> None:
    """A record that is cut off spoils no other one, and the report tells where it is."""
    whole = [dts(each) for each in several([Packet("ann"), Packet("bob"), Packet("eve")])]
    cut = whole[1].splitlines(keepends=True)
    found, tally = read(text_of(tmp_path, f"{whole[0]}{cut[0][:200]}\r\n{whole[2]}{cut[1][:90]}"))
    assert [each.user for each in found] == ["ann", "eve"]
    assert (tally.unread, tally.first_unread) == (2, ["some.log:4", "the end of the file"])


@pytest.mark.parametrize("head", ["<Event>", '"NPS01","IAS",', "192.0.2.1,"])
def test_a_line_of_any_length_is_skipped(tmp_path: Path, head: str) -> None:
    """A line above the limit is not read into memory as a whole, and the next one is read."""
    found, tally = read(text_of(tmp_path, head + "A" * (3 * MAX_LINE) + "\n" + dts(Packet("bob"))), form="nps")
    assert [each.user for each in found] == ["bob"]
    assert tally.unread == 1


def test_requests_without_an_answer_are_bounded(tmp_path: Path) -> None:
    """A log of requests alone takes no more memory than MAX_PENDING requests."""
    line = dts(Packet("bob")).splitlines(keepends=True)[0]
    numbers = range(MAX_PENDING + 10)
    text = "".join(line.replace("00:00:00 1<", f"00:00:00 {number}<") for number in numbers)
    found, tally = read(text_of(tmp_path, text))
    assert (found, tally.unanswered) == ([], MAX_PENDING + 10)


def test_an_entity_bomb_stays_text(tmp_path: Path) -> None:
    """Entities of a document type are never expanded."""
    bomb = '<?xml version="1.0"?><!DOCTYPE e [<!ENTITY a "aaaaaaaa">]>\n'
    (found,), _ = read(text_of(tmp_path, bomb + dts(Packet("bob")).replace(">bob<", ">bob&a;<")))
    assert found.user == "bob&a;"


def test_detail_files(tmp_path: Path) -> None:
    """A reply finds its request by address and port. The start of a session shows that its login was accepted. The
    password of a request is not read."""
    (bob, eve), tally = read(text_of(tmp_path, DETAIL))
    assert (bob.user, bob.answer, bob.client, iso(bob.at)[:19]) == ("bob", ACCEPT, "192.0.2.1", "2026-01-01T08:00:01")
    assert list(bob.attributes) == [
        "NAS-IP-Address=192.0.2.1", "NAS-Port-Type=Ethernet", f"Calling-Station-Id={STATION}",
        "Cisco-AVPair=audit-session-id=1", "Cisco-AVPair=service-type=Framed",
    ]  # fmt: skip
    assert (bob.replies, eve.replies) == (["Tunnel-Private-Group-Id=20"], None)
    assert (eve.user, eve.answer, tally.unread) == ("eve", ACCEPT, 0)
    assert "hunter2" not in repr((bob, eve))


def test_radius_log(tmp_path: Path) -> None:
    """A password that FreeRADIUS has logged is not read."""
    (bob, eve, machine), tally = read(text_of(tmp_path, RADIUS_LOG))
    assert (bob.user, bob.answer, bob.client) == ("bob", ACCEPT, "vpn")
    assert (eve.user, eve.answer, eve.cause) == ("eve", REJECT, Cause.FIRST_FACTOR)
    assert (machine.user, machine.cause, tally.unread) == ("host/pc1.corp", Cause.UNKNOWN, 0)
    assert "hunter2" not in repr((bob, eve, machine))


def test_linelog(tmp_path: Path) -> None:
    """Lines of NAME=VALUE, separated by tabs."""
    (bob, eve), _ = read(text_of(tmp_path, LINELOG))
    assert (bob.user, bob.answer, bob.client) == ("bob", ACCEPT, "192.0.2.1")
    assert (eve.user, eve.answer, eve.reason) == ("eve", REJECT, "wrong password")


def test_tabs_that_freeradius_writes_as_two_characters(tmp_path: Path) -> None:
    """They separate only before a name, and the first value of a name counts: a user cannot write the answer."""
    line = LINELOG.splitlines()[0].replace("=bob", "=CORP\\tom\tPacket-Type=Access-Reject").replace("\t", "\\t")
    ((bob,), _) = read(text_of(tmp_path, f"{line}\n"))
    assert (bob.user, bob.answer, bob.client) == ("CORP\\tom", ACCEPT, "192.0.2.1")


def test_ise(tmp_path: Path) -> None:
    """A message may have several segments. The digits of a reason tell its cause."""
    (bob, eve, dan), tally = read(text_of(tmp_path, ISE))
    assert (bob.user, bob.answer, bob.method, bob.policy) == ("bob", ACCEPT, "eap-peap-mschapv2", "Staff")
    assert iso(bob.at) == "2026-01-01T08:00:00.299000Z"
    assert {"NAS-Port-Type=19", "Service-Type=2", f"Calling-Station-Id={STATION}"} <= set(bob.attributes)
    assert "Cisco-AVPair=mdm-tlv=device-type=VMware, Inc. Platform" in bob.attributes
    assert (eve.cause, eve.method, eve.reason[:5]) == (Cause.FIRST_FACTOR, "pap", "22040")
    assert (dan.user, dan.cause, dan.policy, tally.unread) == ("CORP\\dan", Cause.POLICY, "Guests", 0)


@pytest.mark.parametrize("day", ["2026-02-30 09:00:00", "2026-01-01 25:00:00", "0001-01-01 00:00:00"])
def test_an_impossible_time_of_ise_is_counted(tmp_path: Path, day: str) -> None:
    """A message whose time does not exist is counted, and the others are read."""
    logins, tally = read(text_of(tmp_path, ISE.replace("2026-01-01 09:00:00", day)))
    assert ([each.user for each in logins], tally.unread) == (["eve", "CORP\\dan"], 1)


@pytest.mark.parametrize(
    "text",
    [
        dts(Packet("a")).replace("01/01/2026 08", "01/01/0001 00"),
        ias(Packet("a")).replace("01/01/2026,08", "01/01/0001,00"),
        RADIUS_LOG.splitlines()[0].replace("Thu Jan  1 08:00:00 2026", "Mon Jan  1 00:00:00 0001"),
    ],
    ids=["dts", "ias", "linelog"],
)
def test_an_impossible_time_of_this_host_is_no_error(tmp_path: Path, text: str) -> None:
    """Without a time zone, the first hour of year 1 has no number of seconds."""
    assert list(read_logs([text_of(tmp_path, text)], None, Tally())) == []


@pytest.mark.parametrize(
    ("text", "form"),
    [(dts(Packet("a")), "nps"), (ias(Packet("a")), "nps"), (database(Packet("a")), "nps"), (DETAIL, "detail"),
     (RADIUS_LOG, "linelog"), (LINELOG, "linelog"), (ISE, "ise")],
)  # fmt: skip
def test_the_format_is_found(tmp_path: Path, text: str, form: str) -> None:
    """The first lines tell the format."""
    assert format_of(text_of(tmp_path, text)) == form


def test_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    """The message names the option and its values."""
    with pytest.raises(StartError, match="give --format: nps, detail, linelog, ise"):
        read(text_of(tmp_path, "hello\n"))


@pytest.mark.parametrize("form", READERS)
@given(lines=st.lists(st.text(st.characters(codec="utf-8"), max_size=200) | st.sampled_from(
    (DETAIL + RADIUS_LOG + LINELOG + ISE + dts(Packet("a")) + ias(Packet("b")) + database(Packet("c"))).splitlines()
), max_size=20), cut=st.integers(0, 200))  # fmt: skip
def test_any_text_is_read_or_counted(form: str, lines: list[str], cut: int) -> None:
    """No text raises an error."""
    reader = READERS[form](Frame(UTC, Tally()))
    for line in lines:
        assert all(each.user for each in reader.read(line, "x"))
        list(reader.read(line[cut:], "x"))
    list(reader.end())
