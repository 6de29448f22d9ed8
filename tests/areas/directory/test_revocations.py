"""Sessions of people who lose their access in a directory are revoked if this is set for the domain."""

import pytest

from sallyport.areas.domains.domain import Mode
from sallyport.areas.domains.repo import Update
from sallyport.areas.policy.rules.bodies import RuleFields
from tests.areas import Areas
from tests.areas.directory.world import group, imported, person

ANN = "uid=ann,ou=People,dc=x"
DISABLED = "nsAccountLock: TRUE"


async def revoked(areas: Areas) -> list[str]:
    """Return the revoked user names, with the oldest first."""
    rows = await areas.store.read(lambda tx: tx.rows("select user_name from revocations order by id"))
    return [str(row[0]) for row in rows]


@pytest.fixture
async def strict(areas: Areas) -> Areas:
    """Return areas whose domain disconnects sessions when access is revoked."""
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    return areas


async def test_disabled_and_removed_people_lose_their_sessions(strict: Areas) -> None:
    """When a person is disabled or removed, the person's sessions are revoked once, under all names. Other people keep
    their sessions.
    """
    await imported(strict, person("ann", "userPrincipalName: ann.s@corp") + person("ben"))
    assert await revoked(strict) == []
    for _ in range(2):
        await imported(strict, person("ann", "userPrincipalName: ann.s@corp", DISABLED))
    assert await revoked(strict) == ["ann", "ann.s@corp"]
    await imported(strict, "dn: uid=ben,ou=People,dc=x\nchangetype: delete\n")
    assert await revoked(strict) == ["ann", "ann.s@corp", "ben"]


async def test_a_person_active_in_another_directory_keeps_the_sessions(strict: Areas) -> None:
    await imported(strict, person("ann"))
    await imported(strict, person("ann"), name="other")
    await imported(strict, person("ann", DISABLED))
    assert await revoked(strict) == []


async def test_leaving_a_group_of_a_rule_revokes_the_sessions(strict: Areas) -> None:
    """In an enforcing domain, a person who leaves a group that a rule names loses the sessions. Leaving another group
    has no effect.
    """
    both = person("ann") + group("vpn", ANN) + group("other", ANN)
    await imported(strict, both)
    rule = RuleFields.model_validate({"name": "r", "action": "allow", "groups": ["VPN"]})
    await strict.rules.add(strict.domain, rule)
    await imported(strict, group("other"))
    await imported(strict, group("vpn"))
    assert await revoked(strict) == []
    await imported(strict, both)
    await strict.domains.set_mode([strict.domain], Mode.ENFORCE)
    await imported(strict, group("other") + group("vpn"))
    assert await revoked(strict) == ["ann"]


async def test_a_group_is_matched_by_name(strict: Areas) -> None:
    """Rules name groups, so a group that is created again with the same name keeps the sessions. If the group is
    renamed, its sessions are revoked.
    """
    first, second = (f"entryUUID: 00000000-0000-4000-8000-00000000000{digit}" for digit in "12")
    rule = RuleFields.model_validate({"name": "r", "action": "allow", "groups": ["vpn"]})
    await strict.rules.add(strict.domain, rule)
    await strict.domains.set_mode([strict.domain], Mode.ENFORCE)

    def ldif(name: str, identity: str) -> str:
        return person("ann") + group(name, ANN).replace("objectClass", f"{identity}\nobjectClass", 1)

    await imported(strict, ldif("vpn", first), complete=True)
    await imported(strict, ldif("VPN", second), complete=True)
    assert await revoked(strict) == []
    await imported(strict, ldif("guests", second), complete=True)
    assert await revoked(strict) == ["ann"]


async def test_sessions_are_kept_in_other_domains(areas: Areas) -> None:
    """In a domain without disconnect_on_revoke, disabled people keep their sessions."""
    await imported(areas, person("ann"))
    await imported(areas, person("ann", DISABLED))
    assert await revoked(areas) == []


async def test_a_lost_nested_membership_revokes_the_sessions(strict: Areas) -> None:
    """When an intermediate group loses a member, leaves its parent or is deleted, some people may have no other path to
    the group that a rule names. They lose their sessions.
    """
    await strict.rules.add(
        strict.domain, RuleFields.model_validate({"name": "r", "action": "allow", "groups": ["vpn"]})
    )
    await strict.domains.set_mode([strict.domain], Mode.ENFORCE)
    people = "".join(map(person, ("ann", "ben", "cas", "dan")))

    def dns(*names: str) -> list[str]:
        return [f"uid={name},ou=People,dc=x" for name in names]

    await strict.rules.add(
        strict.domain, RuleFields.model_validate({"name": "again", "action": "allow", "groups": ["mid"]})
    )
    vpn = group("vpn", "cn=mid,dc=x", "cn=mid2,dc=x", *dns("cas"))
    mid = group("mid", *dns("ann", "ben", "cas"))
    await imported(strict, people + vpn + mid + group("mid2", *dns("dan", "ben")))
    await imported(strict, group("mid", *dns("ben", "cas")))
    assert await revoked(strict) == ["ann"]
    await imported(strict, group("vpn", "cn=mid2,dc=x", *dns("cas")))
    assert await revoked(strict) == ["ann"]
    await imported(strict, "dn: cn=mid2,dc=x\nchangetype: delete\n")
    assert await revoked(strict) == ["ann", "ben", "dan"]


async def test_moving_between_subgroups_keeps_the_sessions(strict: Areas) -> None:
    """A person who moves to another subgroup of the same group keeps the sessions. If a person is renamed and loses the
    group, the sessions under both names are revoked.
    """
    await strict.rules.add(
        strict.domain, RuleFields.model_validate({"name": "r", "action": "allow", "groups": ["vpn"]})
    )
    await strict.domains.set_mode([strict.domain], Mode.ENFORCE)
    uuid = "entryUUID: 00000000-0000-4000-8000-00000000000a"
    await imported(strict, person("ann", uuid) + group("vpn", "cn=a,dc=x", "cn=b,dc=x") + group("a", ANN) + group("b"))
    await imported(strict, group("a") + group("b", ANN))
    assert await revoked(strict) == []
    await imported(strict, person("anna", uuid) + group("b"))
    assert await revoked(strict) == ["anna", "ann"]
