"""Attributes of answers: what the other server has sent is compared with what this service would send."""

from datetime import UTC, datetime

import pytest

from sallyport.areas.shadow.logs.record import OldLogin
from sallyport.areas.shadow.shadow_login import ACCEPT, REJECT, REPLY_ATTRIBUTES, Comparison, OldAnswer
from sallyport.base.clock import SECOND
from tests.areas.shadow.conftest import Office, areas, clock, office

__all__ = ["areas", "clock", "office"]

AT = int(datetime(2026, 1, 1, 8, tzinfo=UTC).timestamp()) * SECOND
VLAN = ["Tunnel-Type=VLAN", "Tunnel-Medium-Type=IEEE-802", "Tunnel-Private-Group-Id=20"]


def login(replies: list[str] | None, answer: OldAnswer = ACCEPT) -> OldLogin:
    """Return a login of ann."""
    return OldLogin(at=AT, user="ann", answer=answer, client="192.0.2.1", method="mschapv2", replies=replies)


async def prepare(office: Office) -> None:
    """Let the domain admit ann into VLAN 20 with a filter."""
    await office.users("ann")
    reply = [{"name": "Filter-Id", "value": "staff"}, {"name": "Class", "value": "here"}]
    await office.rule("staff", "allow", users=["ann"], vlan="20", replyAttributes=reply)


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([*VLAN, "Filter-Id=staff", "Class=0x01", "MS-MPPE-Send-Key=0x02", "Framed-IP-Address=192.0.2.7"], ""),
        (["tunnel-type=13", "Tunnel-Medium-Type=6", "Tunnel-Private-Group-Id=20", "Filter-Id=staff"], ""),
        ([*VLAN[:2], "Tunnel-Private-Group-Id=30", "Filter-Id=staff"],
         "there Tunnel-Private-Group-Id=30, here Tunnel-Private-Group-Id=20"),
        (VLAN, "there nothing, here Filter-Id=staff"),
        ([*VLAN, "Filter-Id=staff", "Session-Timeout=3600"], "there Session-Timeout=3600, here nothing"),
        (None, ""),
    ],
    ids=["same", "numbers", "vlan", "filter", "timeout", "unknown"],
)  # fmt: skip
async def test_attributes_of_an_accept_are_compared(office: Office, replies: list[str] | None, reason: str) -> None:
    """Another VLAN or filter is a difference of its own kind. Attributes of a session are not compared, and a login
    whose attributes are not known is the same."""
    await prepare(office)
    await office.record([login(replies)])
    found = await office.report()
    assert found.counts == {"reply" if reason else "same": 1}
    assert [each.reason for each in found.cases] == ([reason] if reason else [])


async def test_each_compared_attribute_is_known(office: Office) -> None:
    """An attribute that the dictionary does not know would be left out in silence."""
    dictionary = office.areas.app.parts.dictionary
    assert {dictionary.attribute(name).name for name in REPLY_ATTRIBUTES} == REPLY_ATTRIBUTES


async def test_a_refusal_has_no_attributes_to_compare(office: Office) -> None:
    await prepare(office)
    await office.record([login([], REJECT)])
    assert not (await office.report()).counts[Comparison.REPLY]
