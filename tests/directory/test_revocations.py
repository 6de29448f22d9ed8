"""People who lose their access in a directory lose their sessions, in a domain that is configured so."""

import pytest

from sallyport.domains.domain import Mode
from sallyport.domains.repo import Update
from sallyport.policy.rules.bodies import RuleFields
from tests.areas import Areas
from tests.directory.world import group, imported, person

ANN = "uid=ann,ou=People,dc=x"
DISABLED = "nsAccountLock: TRUE"


async def revoked(areas: Areas) -> list[str]:
    """The revoked users, with all their names."""
    rows = await areas.store.read(lambda tx: tx.rows("select user_name from revocations order by id"))
    return [str(row[0]) for row in rows]


@pytest.fixture
async def strict(areas: Areas) -> Areas:
    """The domain ends sessions."""
    await areas.domains.update(areas.domain, Update(disconnect_on_revoke=True))
    return areas


async def test_disabled_and_removed(strict: Areas) -> None:
    """Each person's sessions are ended once, under all names; the others keep theirs."""
    await imported(strict, person("ann", "userPrincipalName: ann.s@corp") + person("ben"))
    assert await revoked(strict) == []
    for _ in range(2):
        await imported(strict, person("ann", "userPrincipalName: ann.s@corp", DISABLED))
    assert await revoked(strict) == ["ann", "ann.s@corp"]
    await imported(strict, "dn: uid=ben,ou=People,dc=x\nchangetype: delete\n")
    assert await revoked(strict) == ["ann", "ann.s@corp", "ben"]


async def test_another_directory_has_them(strict: Areas) -> None:
    """A person who is active in another directory of the domain keeps the sessions."""
    await imported(strict, person("ann"))
    await imported(strict, person("ann"), name="other")
    await imported(strict, person("ann", DISABLED))
    assert await revoked(strict) == []


async def test_a_group_that_a_rule_names(strict: Areas) -> None:
    """A person who leaves a group that a rule names loses the sessions in an enforcing domain; other groups do not
    matter."""
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


async def test_a_group_is_what_it_is_called(strict: Areas) -> None:
    """A group that was created again with the name in a rule is the same; a renamed group is lost."""
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


async def test_a_domain_that_does_not_say_so(areas: Areas) -> None:
    """Sessions last."""
    await imported(areas, person("ann"))
    await imported(areas, person("ann", DISABLED))
    assert await revoked(areas) == []


async def test_a_group_that_is_lost_by_nesting(strict: Areas) -> None:
    """The group in the middle leaves, is deleted, or loses somebody: who was only through it in the group that the rule
    names loses the sessions; who is in it in another way as well does not."""
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


async def test_who_moves_loses_nothing(strict: Areas) -> None:
    """From one group to another of the same group; who is renamed and loses it, loses it by both names."""
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
