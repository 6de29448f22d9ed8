"""Tests of reports, which are read from Accounting-Requests with any octets: times, counters and addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.sessions.report import COUNTS, FACTS, LATEST_US, MAX_DELAY_S, MAX_NUMBER, PASSING, Report, Status
from sallyport.base.clock import SECOND
from sallyport.radius import attributes as names
from sallyport.radius.attributes import MAX_ATTRIBUTES, pull_attributes, push_attribute
from tests.areas.sessions.records import NOW, octets, report
from tests.packets import accounting, opened

NUMBERS = (
    "ACCT_DELAY_TIME", "ACCT_INPUT_OCTETS", "ACCT_OUTPUT_OCTETS", "ACCT_SESSION_TIME", "ACCT_INPUT_PACKETS",
    "ACCT_OUTPUT_PACKETS", "ACCT_TERMINATE_CAUSE", "ACCT_INPUT_GIGAWORDS", "ACCT_OUTPUT_GIGAWORDS", "EVENT_TIMESTAMP",
    "NAS_PORT", "NAS_PORT_TYPE", "FRAMED_IP_ADDRESS",
)  # fmt: skip


def facts(found: Report) -> dict[str, object]:
    """Return the facts of a report, keyed by name."""
    return {name: value for name, value in zip(FACTS, found.facts, strict=True) if value is not None}


def counts(found: Report) -> dict[str, int]:
    """Return the counters of a report, keyed by name."""
    return dict(zip(COUNTS, found.counts, strict=True))


def test_a_record_is_parsed() -> None:
    """Names become text, addresses of both families are read, and Class stays octets."""
    found = report(
        Status.INTERIM,
        USER_NAME="ann@corp",
        CALLING_STATION_ID="02-01",
        CALLED_STATION_ID="AA:corp",
        CLASS=b"\x00\xff",
        NAS_PORT=0,
        NAS_PORT_ID="ge-0/0/1",
        NAS_PORT_TYPE=15,
        FRAMED_IP_ADDRESS=bytes((10, 0, 0, 7)),
        FRAMED_IPV6_ADDRESS=bytes.fromhex("20010db8000000000000000000000007"),
        FRAMED_IPV6_PREFIX=bytes.fromhex("004020010db800000001"),
        DELEGATED_IPV6_PREFIX=bytes.fromhex("003020010db80002"),
        ACCT_MULTI_SESSION_ID=b"m",
        ACCT_SESSION_TIME=60,
        ACCT_INPUT_PACKETS=3,
        ACCT_OUTPUT_PACKETS=4,
    )
    assert facts(found) == {
        "user_name": "ann@corp", "station": "02-01", "called_station": "AA:corp", "class": b"\x00\xff",
        "multi_session_id": b"m", "nas_port": 0, "nas_port_id": "ge-0/0/1", "nas_port_type": 15,
        "framed_ip": "10.0.0.7", "framed_ipv6": "2001:db8::7", "framed_ipv6_prefix": "2001:db8:0:1::/64",
        "delegated_ipv6_prefix": "2001:db8:2::/48",
    }  # fmt: skip
    assert counts(found) == {
        "session_time": 60, "input_octets": 0, "output_octets": 0, "input_packets": 3, "output_packets": 4,
    }  # fmt: skip
    assert (found.at, found.begun) == (NOW, NOW - 60 * SECOND)


def test_gigawords_extend_a_counter() -> None:
    """Gigawords are the upper 32 bits of the counter for the same direction (RFC 2869 sections 5.1 and 5.2)."""
    found = report(3, ACCT_INPUT_OCTETS=5, ACCT_INPUT_GIGAWORDS=2, ACCT_OUTPUT_OCTETS=7, ACCT_OUTPUT_GIGAWORDS=1)
    assert (counts(found)["input_octets"], counts(found)["output_octets"]) == (2 * 2**32 + 5, 2**32 + 7)


def test_a_counter_is_limited_to_the_largest_stored_number() -> None:
    """If one field is invalid, the other fields of the record are still used."""
    found = report(3, ACCT_INPUT_OCTETS=2**32 - 1, ACCT_INPUT_GIGAWORDS=2**32 - 1)
    assert counts(found)["input_octets"] == MAX_NUMBER


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ({}, 0),
        ({"ACCT_DELAY_TIME": 30}, -30),
        ({"ACCT_DELAY_TIME": MAX_DELAY_S + 1}, 0),
        ({"EVENT_TIMESTAMP": NOW // SECOND - 100}, -100),
        ({"EVENT_TIMESTAMP": NOW // SECOND - 100, "ACCT_DELAY_TIME": 30}, -100),
        ({"EVENT_TIMESTAMP": NOW // SECOND + LATEST_US // SECOND}, 0),
        ({"EVENT_TIMESTAMP": NOW // SECOND + LATEST_US // SECOND + 1}, 0),
        ({"EVENT_TIMESTAMP": 86_400, "ACCT_DELAY_TIME": 30}, -30),
        ({"EVENT_TIMESTAMP": 2**32 - 1, "ACCT_DELAY_TIME": 30}, -30),
        ({"EVENT_TIMESTAMP": NOW // SECOND - 6 * 86_400, "ACCT_DELAY_TIME": 6 * 86_400 - 60}, -6 * 86_400),
    ],
)
def test_the_time_of_a_record(values: dict[str, int], seconds: int) -> None:
    """The time of a record is the time that the device sent, if it is plausible.

    Otherwise it is the time of receipt minus the delay. It is never later than the time of receipt.
    """
    assert report(1, **values).at == NOW + seconds * SECOND


@pytest.mark.parametrize("size", [0, 1, 3, 5, 253])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_with_a_wrong_length_is_ignored(name: str, size: int) -> None:
    """A number that does not have four octets is ignored, and the other fields are still used."""
    found, plain = report(3, **{name: b"\x01" * size}), report(3)
    assert (found.at, found.begun, found.facts, found.counts, found.cause) == (
        plain.at, plain.begun, plain.facts, plain.counts, None,
    )  # fmt: skip


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\x81" + bytes(16), b"\0\x40" + bytes(17)])
def test_a_malformed_prefix_is_ignored(value: bytes) -> None:
    """A prefix is ignored if it has no length, a length over 128, or more octets than an address."""
    assert not facts(report(3, FRAMED_IPV6_PREFIX=value, DELEGATED_IPV6_PREFIX=value))


@pytest.mark.parametrize(
    ("status", "session", "belongs"),
    [(1, b"x" * 253, True), (2, b"x", True), (3, b"x", True), (1, b"", False), (7, b"x", False), (9, b"x", False)],
)
def test_which_records_belong_to_a_session(status: int, session: bytes, belongs: bool) -> None:
    """Start, Stop and interim records with an Acct-Session-Id belong to a session."""
    assert bool(report(status, session=session).session_id) is belongs


def test_a_retransmitted_record_has_the_same_digest() -> None:
    """The digest ignores delay, time, Proxy-State and signature. Any other octet changes it."""
    body = octets(3, USER_NAME="ann", ACCT_INPUT_OCTETS=7)
    again = (
        push_attribute(names.PROXY_STATE, b"p")
        + push_attribute(names.ACCT_DELAY_TIME, (5).to_bytes(4))
        + body
        + push_attribute(names.EVENT_TIMESTAMP, (9).to_bytes(4))
        + push_attribute(names.PROXY_STATE, b"")
    )
    first, second, other = (
        Report(opened(accounting(each)), NOW) for each in (body, again, octets(3, USER_NAME="ann", ACCT_INPUT_OCTETS=8))
    )
    assert first.digest == second.digest != other.digest
    assert opened(accounting(again)).without(PASSING) == body


OTHER_NUMBERS = {"MAX_ATTRIBUTES", "HEADER", "INTEGER", "SAME_LENGTH", "MAX_KEPT"}
KINDS = [
    number
    for name, number in vars(names).items()
    if name.isupper() and isinstance(number, int) and name not in OTHER_NUMBERS
]
FIELD = st.tuples(
    st.sampled_from([kind for kind in KINDS if kind != names.MESSAGE_AUTHENTICATOR]), st.binary(max_size=20)
)


@given(st.lists(FIELD, max_size=MAX_ATTRIBUTES // 2), st.integers(0, 2**53))
def test_any_record_is_read(fields: list[tuple[int, bytes]], received: int) -> None:
    """No attribute values raise an error, and all results can be stored."""
    request = opened(accounting(b"".join(push_attribute(*field) for field in fields)))
    found = Report(request, received)
    numbers = [
        value for value in (*found.facts, *found.counts, found.at, found.begun, found.cause) if isinstance(value, int)
    ]
    assert all(-(2**63) <= number < 2**63 for number in numbers)
    assert found.begun <= max(found.at, 0) and found.at <= received
    kept = list(pull_attributes(request.without(PASSING)))
    assert len(kept) == sum(kind not in {33, 41, 55} for kind, _ in fields)
