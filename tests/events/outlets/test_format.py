"""Events as JSON lines and as syslog: whole, readable by others, and safe from what users type."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.audit.repo import NumberedRow
from sallyport.base.log import Pseudonyms
from sallyport.events.outlets.format import as_json, as_syslog, audit_fields, counted, login_fields
from sallyport.events.outlets.repo import DomainEvent
from sallyport.events.outlets.transport import parse_target

EVENT = DomainEvent(
    7, 1_767_225_600_000_000, "ann", "192.0.2.1", "192.0.2.9", 3, "lobby", "aa-bb", "pap", "local", "reject", "accept",
    "reject", "not enrolled", 1500, 1,
)  # fmt: skip
RFC_5424 = re.compile(
    rb"<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) ([\x21-\x7e]{1,255}) sallyport \d+ (?:login|audit) "
    rb'\[(?:login|audit)@32473( [A-Za-z_]{1,32}="([^"\\\]]|\\["\\\]])*")+\] \xef\xbb\xbf([^\x00-\x1f\x7f]*)',
    re.DOTALL,
)


CHANGE = NumberedRow(
    9, 1_767_225_600_000_000, 3, 1, "token", "ci", 4, "client.update", "client 5 vpn",
    '{"name": ["vpn", "vpn-1"], "secret": ["********", "********"]}', 100, 7,
)  # fmt: skip


def test_a_line_of_json_has_every_field() -> None:
    """The names are those of GetAuthLog, the numbers are numbers."""
    told = json.loads(as_json(login_fields(EVENT, "corp", None)))
    assert (told["type"], told["eventId"]) == ("login", 7)
    assert (told["user"], told["domain"], told["appliedDecision"], told["wouldHaveBeen"]) == (
        "ann", "corp", "accept", "reject",
    )  # fmt: skip
    assert told["latencyMs"] == 1.5
    assert told["time"] == "2026-01-01T00:00:00.000000Z"


def test_a_syslog_message_is_rfc_5424() -> None:
    """Facility authpriv, a severity by the applied decision, structured data, and a sentence in UTF-8."""
    message = as_syslog(login_fields(EVENT, "corp", None), "gate")
    found = RFC_5424.fullmatch(message)
    assert found is not None, message
    assert (found[1], found[3]) == (b"86", b"gate")
    assert b'user="ann"' in message
    assert found[6] == b"accept ann at lobby: not enrolled"
    refused = as_syslog(login_fields(replace(EVENT, applied_decision="reject"), "corp", None), "gate")
    assert refused.startswith(b"<85>1 ")


def test_a_change_is_told_as_the_audit_trail_has_it() -> None:
    """Its fields are those of audit/list, its tenant the one of bodies; in syslog a facility of its own."""
    fields = audit_fields(CHANGE, "corp", None)
    told = json.loads(as_json(fields))
    assert (told["type"], told["auditId"], told["orgId"], told["tenantId"]) == ("audit", 9, 100, 7)
    assert (told["actor"], told["action"], told["target"]) == ("ci", "client.update", "client 5 vpn")
    assert told["changes"]["name"] == ["vpn", "vpn-1"]
    message = as_syslog(fields, "gate")
    found = RFC_5424.fullmatch(message)
    assert found is not None, message
    assert (found[1], found[6]) == (b"109", b"ci: client.update client 5 vpn")
    assert b" audit [audit@32473 " in message
    assert rb"\"vpn-1\"" in message


def test_a_long_change_fits_a_message() -> None:
    """A receiver takes some kilobytes, a datagram 64: the rest is in the trail."""
    long = json.dumps({"description": ["]" * 100_000, '"' * 100_000]})
    message = as_syslog(audit_fields(replace(CHANGE, changes=long), "corp", None), "gate")
    assert len(message) < 20_000
    assert RFC_5424.fullmatch(message)


@given(st.text(max_size=80))
def test_nothing_that_a_user_types_breaks_out(name: str) -> None:
    """Quotes, brackets, line breaks: one message stays one message, and one line one line."""
    fields = login_fields(replace(EVENT, user_name=name, device_name=name), "corp", None)
    assert RFC_5424.fullmatch(as_syslog(fields, "gate"))
    assert as_json(fields).count(b"\n") == 1
    change = replace(CHANGE, actor=name, target=name, changes=json.dumps({name: [name, name]}))
    fields = audit_fields(change, name, None)
    assert RFC_5424.fullmatch(as_syslog(fields, "gate"))
    assert as_json(fields).count(b"\n") == 1


def test_people_can_be_pseudonyms() -> None:
    """The same person is the same hash, another key another one, and the name is nowhere."""
    one, other = Pseudonyms(b"k" * 32), Pseudonyms(b"l" * 32)
    fields = login_fields(EVENT, "corp", one)
    assert b"ann" not in as_json(fields) + as_syslog(fields, "gate")
    assert fields["user"] == one.of("ann") != other.of("ann")
    assert one.of("") == ""
    fields = audit_fields(replace(CHANGE, target="user 3 ann", changes='{"email": ["", "ann@x"]}'), "corp", one)
    assert b"ann" not in as_json(fields) + as_syslog(fields, "gate")
    assert fields["target"] == one.of("user 3 ann")
    assert fields["changes"] == {"email": ["********", "********"]}


def test_a_counted_message_has_its_octets_before_it() -> None:
    """RFC 6587 section 3.4.1: the length, a space, the message."""
    assert counted("grün".encode()) == "5 grün".encode()


@pytest.mark.parametrize(
    "text",
    ["", "siem:514", "udp://siem", "tcp://siem", "file://siem/x", "file:x", "syslog+udp://", "syslog+tcp://u@h",
     "tcp://h:1/x", "syslog+udp://h?ca=/x"],
)  # fmt: skip
def test_what_is_no_outlet_is_refused(text: str) -> None:
    """Without repeating it."""
    with pytest.raises(ValueError, match=r"^(?!.*siem).*$"):
        parse_target(text)


def test_ports_have_defaults() -> None:
    """514, 601 and 6514, as the RFCs register them."""
    targets = [parse_target(f"syslog+{kind}://siem") for kind in ("udp", "tcp", "tls")]
    assert [target.port for target in targets] == [514, 601, 6514]
