"""Events as JSON lines and as syslog: whole, readable by others, and safe from what users type."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.log import Pseudonyms
from sallyport.login.outlets.format import as_json, as_syslog, counted, fields_of
from sallyport.login.outlets.model import parse_target
from sallyport.login.outlets.repo import Decided

EVENT = Decided(
    7, 1_767_225_600_000_000, 1, "ann", "192.0.2.1", "192.0.2.9", "lobby", "aa-bb", "pap", "local", "reject", "accept",
    "reject", "not enrolled", 1500,
)  # fmt: skip
RFC_5424 = re.compile(
    rb"<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) ([\x21-\x7e]{1,255}) sallyport \d+ login "
    rb'\[login@32473( [A-Za-z_]{1,32}="([^"\\\]]|\\["\\\]])*")+\] \xef\xbb\xbf([^\x00-\x1f\x7f]*)',
    re.DOTALL,
)


def test_a_line_of_json_has_every_field() -> None:
    """The names are those of GetAuthLog, the numbers are numbers."""
    told = json.loads(as_json(fields_of(EVENT, "corp", None)))
    assert told["eventId"] == 7
    assert (told["user"], told["domain"], told["appliedDecision"], told["wouldHaveBeen"]) == (
        "ann", "corp", "accept", "reject",
    )  # fmt: skip
    assert told["latencyMs"] == 1.5
    assert told["time"] == "2026-01-01T00:00:00.000000Z"


def test_a_syslog_message_is_rfc_5424() -> None:
    """Facility authpriv, a severity by what was applied, structured data, and a sentence in UTF-8."""
    message = as_syslog(fields_of(EVENT, "corp", None), "gate")
    found = RFC_5424.fullmatch(message)
    assert found is not None, message
    assert (found[1], found[3]) == (b"86", b"gate")
    assert b'user="ann"' in message
    assert found[6] == b"accept ann at lobby: not enrolled"
    refused = as_syslog(fields_of(replace(EVENT, applied_decision="reject"), "corp", None), "gate")
    assert refused.startswith(b"<85>1 ")


@given(st.text(max_size=80))
def test_nothing_that_a_user_types_breaks_out(name: str) -> None:
    """Quotes, brackets, line breaks: one message stays one message, and one line one line."""
    fields = fields_of(replace(EVENT, user_name=name, device_name=name), "corp", None)
    assert RFC_5424.fullmatch(as_syslog(fields, "gate"))
    assert as_json(fields).count(b"\n") == 1


def test_people_can_be_pseudonyms() -> None:
    """The same person is the same hash, another key another one, and the name is nowhere."""
    one, other = Pseudonyms(b"k" * 32), Pseudonyms(b"l" * 32)
    fields = fields_of(EVENT, "corp", one)
    assert b"ann" not in as_json(fields) + as_syslog(fields, "gate")
    assert fields["user"] == one.of("ann") != other.of("ann")
    assert one.of("") == ""


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
