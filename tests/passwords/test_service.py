"""The service of password policies."""

import json
from collections.abc import Sequence

import pytest

from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.base.limits import DEFAULTS
from sallyport.passwords import repo
from sallyport.passwords.policy import values
from sallyport.passwords.service import MAX_ENTRIES, PasswordPolicies
from sallyport.store.model import Tx
from sallyport.web.paging import Page
from tests.passwords import Machines
from tests.passwords.conftest import Setup, change


async def failed(desk: Setup, machine: int, password: str, user: str = "") -> list[str]:
    """Return the rules that a password does not meet on a machine of ours."""
    return [each.rule for each in await desk.policies.validate(desk.ours, machine, user, password)]


async def test_policies_are_listed(desk: Setup) -> None:
    """Policies are ordered by id, paged, with the total, of one tenant alone."""
    ids = [await desk.add(f"p{number}") for number in range(5)]
    await desk.add("theirs", desk.theirs)
    assert [each.id for each in await desk.all()] == ids
    assert [each.name for each in await desk.all(desk.theirs)] == ["theirs"]
    found, total = await desk.policies.page(desk.ours, Page(3, 2))
    assert ([each.id for each in found], total) == (ids[3:5], 5)
    assert await desk.policies.page(desk.ours, Page(10**15, 10)) == ([], 5)


async def test_the_policies_of_machines_are_listed(desk: Setup) -> None:
    """The list of several machines has each policy once, with the total. Another tenant's machine is NotFound."""
    one, two, three = [await desk.add(name) for name in ("one", "two", "three")]
    await desk.assign(two, 1, 2)
    await desk.assign(one, 2)
    theirs = await desk.add("theirs", desk.theirs)
    await desk.assign(theirs, 7, tenant=desk.theirs)
    for machines, ids in (([1], [two]), ([1, 2, 2], [one, two]), ([3], [])):
        found, total = await desk.policies.page(desk.ours, Page(0, 10), machines)
        assert ([each.id for each in found], total) == (ids, len(ids))
    found, total = await desk.policies.page(desk.ours, Page(1, 1), [2])
    assert ([each.id for each in found], total) == ([two], 2)
    for machines in ([7], [1, 7], [99]):
        with pytest.raises(NotFound):
            await desk.policies.page(desk.ours, Page(0, 10), machines)
    assert await desk.policies.instances([one, two, three], 1000) == [[2], [1, 2], []]


async def test_names_are_unique_in_a_tenant(desk: Setup) -> None:
    """A name is unique in a tenant, in any case. A policy may keep its own name or take a deleted one's."""
    one = await desk.add("Strong", minLen="8")
    await desk.add("strong", desk.theirs)
    other = await desk.add("other")
    with pytest.raises(Conflict):
        await desk.add("STRONG")
    with pytest.raises(Conflict):
        await desk.policies.update(desk.ours, [(other, change(policyName="sTRONG"))])
    await desk.policies.update(desk.ours, [(one, change(policyName="STRONG"))])
    await desk.policies.delete(desk.ours, [one])
    await desk.policies.update(desk.ours, [(other, change(policyName="strong"))])
    assert [each.name for each in await desk.all()] == ["strong"]


async def test_an_empty_name_keeps_the_name(desk: Setup) -> None:
    """An empty name in an update changes nothing."""
    ids = [await desk.add("a"), await desk.add("b")]
    await desk.policies.update(desk.ours, [(each, change(policyName="")) for each in ids])
    assert [each.name for each in await desk.all()] == ["a", "b"]


async def test_an_update_keeps_and_clears(desk: Setup) -> None:
    """An absent field stays and an empty text clears. An update of several is all or none."""
    one = await desk.add("one", minLen="8", maxLen="12", dcredit="-1", templateName="t")
    two = await desk.add("two", minLen="8")
    await desk.policies.update(desk.ours, [(one, change(minLen="", maxrepeat=2)), (two, change(minLen=9))])
    first, second = await desk.all()
    assert values(first.fields) == {
        "policyName": "one", "maxLen": "12", "dcredit": "-1", "templateName": "t", "maxrepeat": "2",
    }  # fmt: skip
    assert second.fields["minLen"] == "9"
    for refused, error in ((change(minLen="13"), Invalid), (change(policyName="two"), Conflict)):
        with pytest.raises(error):
            await desk.policies.update(desk.ours, [(two, change(minLen="7")), (one, refused)])
    with pytest.raises(NotFound):
        await desk.policies.update(desk.ours, [(two, change(minLen="7")), (99, change())])
    assert await desk.all() == [first, second]


async def test_lengths_that_exclude_each_other(desk: Setup) -> None:
    """Lengths that no password can meet are Invalid, and nothing is stored."""
    with pytest.raises(Invalid, match="invalid maxLen"):
        await desk.add(minLen="9", maxLen="8")
    assert await desk.all() == []
    assert await desk.add(minLen="8", maxLen="8")


async def test_policies_are_deleted(desk: Setup) -> None:
    """The answer has the deleted policies, each once, in the requested order.

    A deletion is all or none and ends assignments.
    """
    one, two = await desk.add("one", minLen="4"), await desk.add("two", minLen="5")
    theirs = await desk.add("theirs", desk.theirs)
    await desk.assign(one, 1)
    for wrong in (theirs, 99, 0, -1):
        with pytest.raises(NotFound):
            await desk.policies.delete(desk.ours, [one, wrong])
    assert await failed(desk, 1, "abc") == ["minLen"]
    deleted = await desk.policies.delete(desk.ours, [two, one, two])
    assert [each["policyName"] for each in deleted] == ["two", "one"]
    assert await desk.all() == []
    assert await failed(desk, 1, "abc") == ["minlen", "minclass"]
    assert [each.id for each in await desk.all(desk.theirs)] == [theirs]


async def test_observers_of_a_deletion(desk: Setup) -> None:
    """Observers run before the deletion: an error of theirs keeps the policies."""
    told: list[int] = []

    def deleted(tx: Tx, policy_ids: Sequence[int]) -> int:
        (policy_id,) = policy_ids
        assert desk.policies.exists(tx, desk.ours, policy_id) and not desk.policies.exists(tx, desk.theirs, policy_id)
        if told:
            raise Conflict("needed")
        told.append(policy_id)
        return 0

    one, two = await desk.add("one"), await desk.add("two")
    listening = PasswordPolicies(desk.areas.store, Machines(), deleted=deleted)
    await listening.delete(desk.ours, [one])
    with pytest.raises(Conflict):
        await listening.delete(desk.ours, [two])
    assert (told, [each.id for each in await desk.all()]) == ([one], [two])


async def test_another_tenants_policies_and_machines(desk: Setup) -> None:
    """Another tenant's policies and machines are NotFound in any position, and such a request changes nothing."""
    ours, theirs = await desk.add(), await desk.add("theirs", desk.theirs)
    for policy, machines in ((theirs, [1]), (ours, [1, 7]), (ours, [99]), (99, [1])):
        with pytest.raises(NotFound):
            await desk.assign(policy, *machines)
        with pytest.raises(NotFound):
            await desk.assign(policy, *machines, action="remove")
    with pytest.raises(NotFound):
        await desk.policies.update(desk.ours, [(theirs, change(minLen="1"))])
    with pytest.raises(NotFound):
        await desk.policies.validate(desk.ours, 7, "", "x")
    assert await desk.policies.instances([ours, theirs], 1000) == [[], []]
    assert [each.fields["minLen"] for each in await desk.all(desk.theirs)] == [""]


async def test_all_policies_of_a_machine_apply(desk: Setup) -> None:
    """Each policy of a machine applies; a rule that two of them have is listed once.

    Without a policy the guidance applies.
    """
    assert await failed(desk, 1, "abcdefgh") == ["minclass"]
    digits = await desk.add("digits", dcredit="-1", minLen="4")
    upper = await desk.add("upper", ucredit="-1", minLen="4")
    await desk.assign(digits, 1, 2)
    assert await failed(desk, 1, "abX") == ["minLen", "dcredit"]
    await desk.assign(upper, 1)
    await desk.assign(upper, 1)
    assert await failed(desk, 1, "abc") == ["minLen", "dcredit", "ucredit"]
    assert await failed(desk, 2, "abc") == ["minLen", "dcredit"]
    await desk.assign(digits, 1, 3, action="remove")
    assert await failed(desk, 1, "abc") == ["minLen", "ucredit"]
    assert await failed(desk, 1, "aXbc") == []


async def test_policies_of_a_users_machines(desk: Setup) -> None:
    """A user has the policies of all its machines; none without a policy, and none of a deleted machine."""
    longer = await desk.add("long", minLen="10")
    named = await desk.add("named", usercheck="yes")
    await desk.assign(longer, 1)
    await desk.assign(named, 2)

    async def check(*machines: int, policies: Sequence[int] = ()) -> list[str]:
        found = await desk.areas.store.read(lambda tx: desk.policies.check(tx, machines, policies, "Alice", "xaLICE7"))
        return [each.rule for each in found]

    assert await check() == await check(3) == []
    assert await check(2) == ["usercheck"]
    assert await check(3, 2, 1) == ["minLen", "usercheck"]
    assert await check(1, policies=[named, longer]) == ["minLen", "usercheck"]
    await desk.areas.store.write(lambda tx: repo.forget_instance(tx, 1))
    assert await check(1, 2) == ["usercheck"]
    assert await desk.policies.instances([longer, named], 1000) == [[], [2]]


async def test_every_change_is_in_the_trail(desk: Setup) -> None:
    """Each change has an audit entry with the changed fields. A refused change and one without effect have none."""
    policy = await desk.add("one", minLen="8")
    for _ in range(2):
        await desk.policies.update(desk.ours, [(policy, change(policyName="two", minLen="8"))])
    await desk.assign(policy, 1, 1)
    await desk.assign(policy, 1)
    with pytest.raises(NotFound):
        await desk.assign(policy, 2, 99)
    await desk.assign(policy, 1, 2, action="remove")
    await desk.policies.delete(desk.ours, [policy])
    found = [(action, tenant, target, json.loads(changes)) for action, tenant, target, changes in await desk.trail()]
    one, two = f"policy {policy} one", f"policy {policy} two"
    assert [each[:3] for each in found] == [
        ("policy.add", desk.ours, one),
        ("policy.update", desk.ours, two),
        ("policy.assign", desk.ours, two),
        ("policy.unassign", desk.ours, two),
        ("policy.delete", desk.ours, two),
    ]
    assert found[0][3] == {"policyName": [None, "one"], "minLen": [None, "8"]}
    assert found[1][3] == {"policyName": ["one", "two"]}
    assert [found[2][3], found[3][3]] == [{"instanceId": [None, 1]}, {"instanceId": [1, None]}]
    assert found[4][3] == {"policyName": ["two", None], "minLen": ["8", None]}


async def test_a_tenant_has_a_thousand_policies(desk: Setup) -> None:
    """A tenant's policy number 1001 is a Conflict; another tenant can still add one."""
    columns = ("tenant_id", "name_key", "fields", "created_at", "updated_at")
    most = DEFAULTS["password_policies"]
    rows = [(desk.ours, str(number), f'{{"policyName": "{number}"}}', 0, 0) for number in range(most)]
    await desk.areas.store.write(lambda tx: tx.insert("password_policies", columns, rows))
    with pytest.raises(Conflict):
        await desk.add("one more")
    assert await desk.add("theirs", desk.theirs)


async def test_a_request_is_bounded(desk: Setup) -> None:
    """An empty array changes nothing and is answered. One that is too long is refused before it delays others."""
    policy = await desk.add()
    for policies in ([], [policy] * (MAX_ENTRIES + 1)):
        with pytest.raises(Invalid):
            await desk.policies.delete(desk.ours, policies)
        with pytest.raises(Invalid):
            await desk.policies.update(desk.ours, [(each, change()) for each in policies])
        with pytest.raises(Invalid):
            await desk.policies.assign(desk.ours, [])
    assert [each.id for each in await desk.all()] == [policy]
