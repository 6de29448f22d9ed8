"""Roles at two nodes: a change at one node applies at both, and a role that the other node uses is not removed."""

import pytest

from sallyport.areas.policy.bypass.station import StationChange
from sallyport.areas.policy.roles.role import ReplySet, RoleSource
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.rule import Reply
from sallyport.base.errors import Conflict, Invalid
from tests.areas import Areas
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres
ARUBA = ReplySet("Aruba Wireless", reply_attributes=(Reply("Aruba-User-Role", "staff"),))


def rule() -> RuleFields:
    """Return a rule with the role staff."""
    return RuleFields.model_validate({"name": "r", "action": "allow", "users": ["ann"], "role": "staff"})


async def test_a_change_at_one_node_applies_at_the_other(pair: Pair) -> None:
    """The other node reads the changed role, also if two changes have the same time."""
    one, two, domain = pair.one, pair.two, pair.one.domain
    for vlan in ("20", "30", "40"):
        await one.roles.set(domain, "staff", ReplySet(vlan=vlan))
        await two.configuration.reload()
        assert two.roles.given_to(domain, "staff", "") == one.roles.given_to(domain, "staff", "")
        assert two.roles.given_to(domain, "staff", "").attributes.endswith(vlan.encode())
    await two.roles.set(domain, "STAFF", ARUBA)
    await one.configuration.reload()
    assert one.roles.given_to(domain, "staff", "Aruba Wireless").source is RoleSource.PRODUCT
    assert one.roles.given_to(domain, "staff", "").attributes.endswith(b"40")


@pytest.mark.parametrize("user", ["a rule", "a station"])
async def test_a_role_that_the_other_node_uses_is_not_removed(pair: Pair, user: str) -> None:
    """The transaction looks for uses in the store, so that a node that has not read the change yet sees it."""
    one, two, domain = pair.one, pair.two, pair.one.domain
    await one.roles.set(domain, "staff", ReplySet(vlan="20"))
    if user == "a rule":
        await one.rules.add(domain, rule())
    else:
        await one.bypass.put(domain, [StationChange("02000000000a", role="staff")])
    with pytest.raises(Conflict, match="staff"):
        await removed(two)
    assert two.roles.present(domain, "staff")


async def test_a_role_that_the_other_node_has_removed_is_not_used(pair: Pair) -> None:
    """A rule or a station that names it is refused, although this node still has the role in memory."""
    one, two, domain = pair.one, pair.two, pair.one.domain
    await one.roles.set(domain, "staff", ReplySet(vlan="20"))
    await two.configuration.reload()
    await removed(one)
    for change in (
        two.rules.add(domain, rule()),
        two.bypass.put(domain, [StationChange("02000000000a", role="staff")]),
    ):
        with pytest.raises(Invalid, match="role"):
            await change
    await two.configuration.reload()
    assert two.roles.given_to(domain, "staff", "").source is RoleSource.NONE


async def removed(areas: Areas) -> None:
    """Remove the role staff at a node."""
    await areas.configuration.reload()
    await areas.roles.remove(areas.domain, "staff")
