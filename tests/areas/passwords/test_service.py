"""Tests of the service of password policies."""

import json
from collections.abc import Sequence

import pytest

from sallyport.areas.passwords import repo
from sallyport.areas.passwords.policy import values
from sallyport.areas.passwords.service import MAX_ENTRIES, PasswordPolicies
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.settings.limits import DEFAULTS
from sallyport.store.model import Tx
from sallyport.web.bodies import Page
from tests.areas.passwords import Machines
from tests.areas.passwords.conftest import Setup, change


async def failed(setup: Setup, machine: int, password: str, user: str = "") -> list[str]:
    """Return the rules that a password does not meet on a machine of the first tenant."""
    return [each.rule for each in await setup.policies.validate(setup.ours, machine, user, password)]


async def test_policies_are_listed(setup: Setup) -> None:
    """Policies are ordered by id and divided into pages.

    The list has the total, and contains only the policies of one tenant.
    """
    ids = [await setup.add(f"p{number}") for number in range(5)]
    await setup.add("theirs", setup.theirs)
    assert [each.id for each in await setup.all()] == ids
    assert [each.name for each in await setup.all(setup.theirs)] == ["theirs"]
    found, total = await setup.policies.page(setup.ours, Page(3, 2))
    assert ([each.id for each in found], total) == (ids[3:5], 5)
    assert await setup.policies.page(setup.ours, Page(10**15, 10)) == ([], 5)


async def test_the_policies_of_machines_are_listed(setup: Setup) -> None:
    """A list for several machines has each policy once, with the total. Another tenant's machine raises NotFound."""
    one, two, three = [await setup.add(name) for name in ("one", "two", "three")]
    await setup.assign(two, 1, 2)
    await setup.assign(one, 2)
    theirs = await setup.add("theirs", setup.theirs)
    await setup.assign(theirs, 7, tenant=setup.theirs)
    for machines, ids in (([1], [two]), ([1, 2, 2], [one, two]), ([3], [])):
        found, total = await setup.policies.page(setup.ours, Page(0, 10), machines)
        assert ([each.id for each in found], total) == (ids, len(ids))
    found, total = await setup.policies.page(setup.ours, Page(1, 1), [2])
    assert ([each.id for each in found], total) == ([two], 2)
    for machines in ([7], [1, 7], [99]):
        with pytest.raises(NotFound):
            await setup.policies.page(setup.ours, Page(0, 10), machines)
    assert await setup.policies.instances([one, two, three], 1000) == [[2], [1, 2], []]


async def test_names_are_unique_in_a_tenant(setup: Setup) -> None:
    """A name is unique in a tenant, regardless of case.

    A policy may keep its own name, or get the name of a deleted policy.
    """
    one = await setup.add("Strong", minLen="8")
    await setup.add("strong", setup.theirs)
    other = await setup.add("other")
    with pytest.raises(Conflict):
        await setup.add("STRONG")
    with pytest.raises(Conflict):
        await setup.policies.update(setup.ours, [(other, change(policyName="sTRONG"))])
    await setup.policies.update(setup.ours, [(one, change(policyName="STRONG"))])
    await setup.policies.delete(setup.ours, [one])
    await setup.policies.update(setup.ours, [(other, change(policyName="strong"))])
    assert [each.name for each in await setup.all()] == ["strong"]


async def test_an_empty_name_keeps_the_name(setup: Setup) -> None:
    """An empty name in an update changes nothing."""
    ids = [await setup.add("a"), await setup.add("b")]
    await setup.policies.update(setup.ours, [(each, change(policyName="")) for each in ids])
    assert [each.name for each in await setup.all()] == ["a", "b"]


async def test_an_update_keeps_and_clears(setup: Setup) -> None:
    """An absent field leaves the value unchanged, and an empty text removes it.

    An update of several policies changes all of them or none.
    """
    one = await setup.add("one", minLen="8", maxLen="12", dcredit="-1", templateName="t")
    two = await setup.add("two", minLen="8")
    await setup.policies.update(setup.ours, [(one, change(minLen="", maxrepeat=2)), (two, change(minLen=9))])
    first, second = await setup.all()
    assert values(first.fields) == {
        "policyName": "one", "maxLen": "12", "dcredit": "-1", "templateName": "t", "maxrepeat": "2",
    }  # fmt: skip
    assert second.fields["minLen"] == "9"
    for refused, error in ((change(minLen="13"), Invalid), (change(policyName="two"), Conflict)):
        with pytest.raises(error):
            await setup.policies.update(setup.ours, [(two, change(minLen="7")), (one, refused)])
    with pytest.raises(NotFound):
        await setup.policies.update(setup.ours, [(two, change(minLen="7")), (99, change())])
    assert await setup.all() == [first, second]


async def test_lengths_that_exclude_each_other(setup: Setup) -> None:
    """If no password can meet the lengths, the policy is Invalid and nothing is stored."""
    with pytest.raises(Invalid, match="invalid maxLen"):
        await setup.add(minLen="9", maxLen="8")
    assert await setup.all() == []
    assert await setup.add(minLen="8", maxLen="8")


async def test_policies_are_deleted(setup: Setup) -> None:
    """The answer has each deleted policy once, in the requested order.

    A deletion removes all of them or none, and ends their assignments.
    """
    one, two = await setup.add("one", minLen="4"), await setup.add("two", minLen="5")
    theirs = await setup.add("theirs", setup.theirs)
    await setup.assign(one, 1)
    for wrong in (theirs, 99, 0, -1):
        with pytest.raises(NotFound):
            await setup.policies.delete(setup.ours, [one, wrong])
    assert await failed(setup, 1, "abc") == ["minLen"]
    deleted = await setup.policies.delete(setup.ours, [two, one, two])
    assert [each["policyName"] for each in deleted] == ["two", "one"]
    assert await setup.all() == []
    assert await failed(setup, 1, "abc") == ["minlen", "minclass"]
    assert [each.id for each in await setup.all(setup.theirs)] == [theirs]


async def test_observers_of_a_deletion(setup: Setup) -> None:
    """Observers run before the deletion. If an observer raises an error, the policies are kept."""
    deletions: list[int] = []

    def deleted(tx: Tx, policy_ids: Sequence[int]) -> int:
        (policy_id,) = policy_ids
        assert setup.policies.exists(tx, setup.ours, policy_id) and not setup.policies.exists(
            tx, setup.theirs, policy_id
        )
        if deletions:
            raise Conflict("needed")
        deletions.append(policy_id)
        return 0

    one, two = await setup.add("one"), await setup.add("two")
    listening = PasswordPolicies(setup.areas.store, Machines())
    listening.before_deletion(deleted)
    await listening.delete(setup.ours, [one])
    with pytest.raises(Conflict):
        await listening.delete(setup.ours, [two])
    assert (deletions, [each.id for each in await setup.all()]) == ([one], [two])


async def test_another_tenants_policies_and_machines(setup: Setup) -> None:
    """Another tenant's policies and machines raise NotFound at any position in a request, and the request changes
    nothing."""
    ours, theirs = await setup.add(), await setup.add("theirs", setup.theirs)
    for policy, machines in ((theirs, [1]), (ours, [1, 7]), (ours, [99]), (99, [1])):
        with pytest.raises(NotFound):
            await setup.assign(policy, *machines)
        with pytest.raises(NotFound):
            await setup.assign(policy, *machines, action="remove")
    with pytest.raises(NotFound):
        await setup.policies.update(setup.ours, [(theirs, change(minLen="1"))])
    with pytest.raises(NotFound):
        await setup.policies.validate(setup.ours, 7, "", "x")
    assert await setup.policies.instances([ours, theirs], 1000) == [[], []]
    assert [each.fields["minLen"] for each in await setup.all(setup.theirs)] == [""]


async def test_all_policies_of_a_machine_apply(setup: Setup) -> None:
    """Each policy of a machine applies.

    A rule that two policies have is listed once. If the machine has no policy, the guidance applies.
    """
    assert await failed(setup, 1, "abcdefgh") == ["minclass"]
    digits = await setup.add("digits", dcredit="-1", minLen="4")
    upper = await setup.add("upper", ucredit="-1", minLen="4")
    await setup.assign(digits, 1, 2)
    assert await failed(setup, 1, "abX") == ["minLen", "dcredit"]
    await setup.assign(upper, 1)
    await setup.assign(upper, 1)
    assert await failed(setup, 1, "abc") == ["minLen", "dcredit", "ucredit"]
    assert await failed(setup, 2, "abc") == ["minLen", "dcredit"]
    await setup.assign(digits, 1, 3, action="remove")
    assert await failed(setup, 1, "abc") == ["minLen", "ucredit"]
    assert await failed(setup, 1, "aXbc") == []


async def test_policies_of_a_users_machines(setup: Setup) -> None:
    """A user has the policies of all its machines.

    A machine without a policy adds none, and neither does a deleted machine.
    """
    longer = await setup.add("long", minLen="10")
    named = await setup.add("named", usercheck="yes")
    await setup.assign(longer, 1)
    await setup.assign(named, 2)

    async def check(*machines: int, policies: Sequence[int] = ()) -> list[str]:
        found = await setup.areas.store.read(
            lambda tx: setup.policies.check(tx, machines, policies, "Alice", "xaLICE7")
        )
        return [each.rule for each in found]

    assert await check() == await check(3) == []
    assert await check(2) == ["usercheck"]
    assert await check(3, 2, 1) == ["minLen", "usercheck"]
    assert await check(1, policies=[named, longer]) == ["minLen", "usercheck"]
    await setup.areas.store.write(lambda tx: repo.forget_instance(tx, 1))
    assert await check(1, 2) == ["usercheck"]
    assert await setup.policies.instances([longer, named], 1000) == [[], [2]]


async def test_every_change_is_in_the_trail(setup: Setup) -> None:
    """Each change has an audit entry with the changed fields.

    A refused change has no entry, and neither has a change without effect.
    """
    policy = await setup.add("one", minLen="8")
    for _ in range(2):
        await setup.policies.update(setup.ours, [(policy, change(policyName="two", minLen="8"))])
    await setup.assign(policy, 1, 1)
    await setup.assign(policy, 1)
    with pytest.raises(NotFound):
        await setup.assign(policy, 2, 99)
    await setup.assign(policy, 1, 2, action="remove")
    await setup.policies.delete(setup.ours, [policy])
    found = [(action, tenant, target, json.loads(changes)) for action, tenant, target, changes in await setup.trail()]
    one, two = f"policy {policy} one", f"policy {policy} two"
    assert [each[:3] for each in found] == [
        ("policy.add", setup.ours, one),
        ("policy.update", setup.ours, two),
        ("policy.assign", setup.ours, two),
        ("policy.unassign", setup.ours, two),
        ("policy.delete", setup.ours, two),
    ]
    assert found[0][3] == {"policyName": [None, "one"], "minLen": [None, "8"]}
    assert found[1][3] == {"policyName": ["one", "two"]}
    assert [found[2][3], found[3][3]] == [{"instanceId": [None, 1]}, {"instanceId": [1, None]}]
    assert found[4][3] == {"policyName": ["two", None], "minLen": ["8", None]}


async def test_a_tenant_has_a_thousand_policies(setup: Setup) -> None:
    """The policy with the number 1001 of a tenant raises Conflict. Another tenant can still add a policy."""
    columns = ("tenant_id", "name_key", "fields", "created_at", "updated_at")
    most = DEFAULTS["password_policies"]
    rows = [(setup.ours, str(number), f'{{"policyName": "{number}"}}', 0, 0) for number in range(most)]
    await setup.areas.store.write(lambda tx: tx.insert("password_policies", columns, rows))
    with pytest.raises(Conflict):
        await setup.add("one more")
    assert await setup.add("theirs", setup.theirs)


async def test_a_request_is_bounded(setup: Setup) -> None:
    """An empty array changes nothing and is answered. An array that is too long is refused before it delays others."""
    policy = await setup.add()
    for policies in ([], [policy] * (MAX_ENTRIES + 1)):
        with pytest.raises(Invalid):
            await setup.policies.delete(setup.ours, policies)
        with pytest.raises(Invalid):
            await setup.policies.update(setup.ours, [(each, change()) for each in policies])
        with pytest.raises(Invalid):
            await setup.policies.assign(setup.ours, [])
    assert [each.id for each in await setup.all()] == [policy]
