"""Tests of events as JSON lines and as syslog messages: they are complete, conform to the standard, and remain intact
whatever text users enter."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.audit.repo import NumberedRow
from sallyport.areas.events.event import DomainEvent
from sallyport.areas.events.outlets.format import as_json, as_syslog, audit_fields, counted, login_fields
from sallyport.areas.events.outlets.transport import parse_target
from sallyport.base.log import Pseudonyms
from sallyport.base.wire import JSON

EVENT = DomainEvent(
    7, 1_767_225_600_000_000, "ann", "192.0.2.1", "192.0.2.9", 3, "lobby", "aa-bb", "pap", "local", "reject", "accept",
    "reject", "not enrolled", 1500, 0, 0, "", 0, 0, None, None, None, None, "corp", "Gi1/0/1",
    None, None, None, "f" * 32, 1,
)  # fmt: skip
RFC_5424 = re.compile(
    rb"<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) ([\x21-\x7e]{1,255}) sallyport \d+ (?:login|audit) "
    rb'\[(?:login|audit)@32473( [A-Za-z_]{1,32}="([^"\\\]]|\\["\\\]])*")+\] \xef\xbb\xbf([^\x00-\x1f\x7f]*)',
    re.DOTALL,
)


CHANGE = NumberedRow(
    9, 1_767_225_600_000_000, 3, 1, "token", "ci", 4, "client.update", "client 5 vpn",
    '{"name": ["vpn", "vpn-1"], "secret": ["********", "********"]}', "req-1", 100, 7,
)  # fmt: skip


def test_a_json_line_has_every_field() -> None:
    """The names are those of GetAuthLog, and numbers are written as JSON numbers."""
    record = json.loads(as_json(login_fields(EVENT, "corp", None)))
    assert (record["type"], record["eventId"]) == ("login", 7)
    assert (record["user"], record["domain"], record["appliedDecision"], record["wouldHaveBeen"]) == (
        "ann", "corp", "accept", "reject",
    )  # fmt: skip
    assert record["latencyMs"] == 1.5
    assert (record["ssid"], record["port"], record["role"]) == ("corp", "Gi1/0/1", "")
    assert record["traceId"] == "f" * 32 and json.loads(as_json(audit_fields(CHANGE, "", None)))["requestId"] == "req-1"
    assert record["time"] == "2026-01-01T00:00:00.000000Z"


def test_a_syslog_message_has_the_form_of_rfc_5424() -> None:
    """A message has the facility authpriv, a severity that depends on the applied decision, structured data, and a
    sentence in UTF-8."""
    message = as_syslog(login_fields(EVENT, "corp", None), "gate")
    found = RFC_5424.fullmatch(message)
    assert found is not None, message
    assert (found[1], found[3]) == (b"86", b"gate")
    assert b'user="ann"' in message
    assert found[6] == b"accept ann at lobby: not enrolled"
    refused = as_syslog(login_fields(replace(EVENT, applied_decision="reject"), "corp", None), "gate")
    assert refused.startswith(b"<85>1 ")


@pytest.mark.parametrize("fields", [login_fields(EVENT, "corp", None), audit_fields(CHANGE, "corp", None)])
def test_a_syslog_message_may_have_the_json_object(fields: dict[str, JSON]) -> None:
    """With format=json, the text is the JSON object. There is no structured data and no byte order mark."""
    message = as_syslog(fields, "gate", is_json=True)
    head, _, text = message.partition(b" - ")
    assert re.fullmatch(rb"<\d+>1 \S+ gate sallyport \d+ (login|audit)", head)
    assert json.loads(text) == fields


def test_a_long_change_is_cut_in_a_syslog_message() -> None:
    """A message in JSON fits into a datagram, and stays JSON."""
    long = replace(CHANGE, changes=json.dumps({"name": ["\u20ac" * 30_000, "vpn"]}))
    message = as_syslog(audit_fields(long, "corp", None), "gate", is_json=True)
    assert len(message) < 65_507
    assert json.loads(message.partition(b" - ")[2])["target"] == "client 5 vpn"


def test_a_change_has_the_fields_of_the_audit_trail() -> None:
    """The fields are those of audit/list, and the tenant is given by its numbers.

    The syslog facility differs from that of logins.
    """
    fields = audit_fields(CHANGE, "corp", None)
    record = json.loads(as_json(fields))
    assert (record["type"], record["auditId"], record["orgId"], record["tenantId"]) == ("audit", 9, 100, 7)
    assert (record["actor"], record["action"], record["target"]) == ("ci", "client.update", "client 5 vpn")
    assert record["changes"]["name"] == ["vpn", "vpn-1"]
    message = as_syslog(fields, "gate")
    found = RFC_5424.fullmatch(message)
    assert found is not None, message
    assert (found[1], found[6]) == (b"109", b"ci: client.update client 5 vpn")
    assert b" audit [audit@32473 " in message
    assert rb"\"vpn-1\"" in message


def test_a_long_change_is_shortened_in_syslog() -> None:
    """The length of a syslog message is limited. The audit trail has the whole change."""
    long = json.dumps({"description": ["]" * 100_000, '"' * 100_000]})
    message = as_syslog(audit_fields(replace(CHANGE, changes=long), "corp", None), "gate")
    assert len(message) < 20_000
    assert RFC_5424.fullmatch(message)


@given(st.text(max_size=80))
def test_user_input_cannot_forge_a_message(name: str) -> None:
    """With any user input, a message remains one message and a line remains one line."""
    fields = login_fields(replace(EVENT, user_name=name, device_name=name), "corp", None)
    assert RFC_5424.fullmatch(as_syslog(fields, "gate"))
    assert as_json(fields).count(b"\n") == 1
    change = replace(CHANGE, actor=name, target=name, changes=json.dumps({name: [name, name]}))
    fields = audit_fields(change, name, None)
    assert RFC_5424.fullmatch(as_syslog(fields, "gate"))
    assert as_json(fields).count(b"\n") == 1


def test_names_can_be_replaced_by_pseudonyms() -> None:
    """The hash of a name depends only on the name and the key. The message does not contain the name."""
    one, other = Pseudonyms(b"k" * 32), Pseudonyms(b"l" * 32)
    fields = login_fields(EVENT, "corp", one)
    assert b"ann" not in as_json(fields) + as_syslog(fields, "gate")
    assert fields["user"] == one.of("ann") != other.of("ann")
    assert one.of("") == ""
    fields = audit_fields(replace(CHANGE, target="user 3 ann", changes='{"email": ["", "ann@x"]}'), "corp", one)
    assert b"ann" not in as_json(fields) + as_syslog(fields, "gate")
    assert fields["target"] == one.of("user 3 ann")
    assert fields["changes"] == {"email": ["********", "********"]}


def test_a_counted_message_starts_with_its_length() -> None:
    """A frame has the length in octets, a space and the message (RFC 6587 section 3.4.1)."""
    assert counted("grün".encode()) == "5 grün".encode()


@pytest.mark.parametrize(
    "text",
    ["", "siem:514", "udp://siem", "tcp://siem", "file://siem/x", "file:x", "syslog+udp://", "syslog+tcp://u@h",
     "tcp://h:1/x", "syslog+udp://h?ca=/x", "syslog+tcp://h?format=xml", "syslog+tcp://h?Format=json",
     "tcp://h:1?format=json"],
)  # fmt: skip
def test_a_malformed_target_is_refused(text: str) -> None:
    """The message does not contain the target."""
    with pytest.raises(ValueError, match=r"^(?!.*siem).*$"):
        parse_target(text)


def test_ports_have_defaults() -> None:
    """The defaults are the registered ports 514, 601 and 6514."""
    targets = [parse_target(f"syslog+{kind}://siem") for kind in ("udp", "tcp", "tls")]
    assert [target.port for target in targets] == [514, 601, 6514]
