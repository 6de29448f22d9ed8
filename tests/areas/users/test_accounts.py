"""Tests of the administration of endpoint users: fields, secrets, lists, wallets, and the changes that a login sees."""

from collections.abc import Mapping, Sequence

import pyotp
import pytest

from sallyport.areas.passwords.policy import Assignment
from sallyport.areas.users.accounts.account import Removal, UserChange, UserQuery, WalletAssignment
from sallyport.areas.users.accounts.service import Users, WalletChange
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.imports import import_users
from sallyport.areas.users.instances.instance import Instance
from sallyport.areas.users.membership import MAX_PAIRS, Action
from sallyport.areas.users.service import EndpointUsers
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.areas.users import trail
from tests.areas.users.keys import ED25519

SEED = "JBSWY3DPEHPK3PXP"


async def passwords(areas: Areas, name: str) -> tuple[bytes, ...]:
    """Return the passwords that the next login accepts. If there is no such user, the result is empty."""
    user = await areas.users.load(areas.domain, name)
    return () if user is None else user.passwords


async def listed(areas: Areas, **fields: object) -> tuple[list[str], int]:
    """Return the names that match a query, and the total."""
    rows, total = await areas.accounts.page(UserQuery(areas.domain, **fields))  # type: ignore[arg-type]
    return [each.name for each in rows], total


async def strict_machine(areas: Areas, name: str = "strict") -> int:
    """Return the id of a new instance whose policy demands twelve characters."""
    machine = await areas.instances.add(areas.domain, Instance(name))
    policy = await areas.policies.add(areas.tenant, {"policyName": name, "minLen": "12"})
    await areas.policies.assign(areas.tenant, [Assignment(policy, machine)])
    return machine


async def test_a_new_user(areas: Areas) -> None:
    """A new user has the given fields, and defaults for the others.

    Secrets are shown if `reveal` is set, and otherwise as asterisks.
    """
    given = UserChange("ann", "Admin", "Key", b"hello", "yes", ED25519, SEED, "did:key:z6Mk")
    user = await areas.accounts.add(areas.domain, given)
    detail = await areas.accounts.detail(areas.domain, user, reveal=True)
    account = detail.account
    assert (account.name, account.user_type, account.credential_type) == ("ann", "Admin", "Key")
    assert (account.privileged_user, account.ssh_key, account.did) == ("yes", ED25519, "did:key:z6Mk")
    assert (detail.password, detail.motp) == ("hello", SEED)
    hidden = await areas.accounts.detail(areas.domain, user, reveal=False)
    assert (hidden.password, hidden.motp) == ("********", "********")
    bare = await areas.accounts.add(areas.domain, UserChange("bob"))
    for reveal in (True, False):
        detail = await areas.accounts.detail(areas.domain, bare, reveal=reveal)
        assert (detail.password, detail.motp, detail.account.privileged_user) == ("", "", "false")
    with pytest.raises(NotFound):
        await areas.accounts.detail(areas.domain, 10**9, reveal=True)


async def test_an_update_holds_for_the_next_login(areas: Areas) -> None:
    """The next login uses a new password and a new name, even if the user is cached. Fields that are not given stay
    unchanged."""
    user = await areas.accounts.add(areas.domain, UserChange("ann", password=b"old", did="did:a:b"))
    assert await passwords(areas, "ann") == (b"old",)
    await areas.accounts.update(areas.domain, user, UserChange(password=b"new"))
    assert await passwords(areas, "ann") == (b"new",)
    await areas.accounts.update(areas.domain, user, UserChange(name="anna"))
    assert (await passwords(areas, "ann"), await passwords(areas, "anna")) == ((), (b"new",))
    assert await listed(areas, column="name", value="anna") == (["anna"], 1)
    await areas.accounts.update(areas.domain, user, UserChange(did="", user_type=""))
    account = (await areas.accounts.detail(areas.domain, user, reveal=True)).account
    assert (account.did, account.user_type) == ("", "Local")
    await areas.accounts.add(areas.domain, UserChange("bob"))
    with pytest.raises(Conflict):
        await areas.accounts.update(areas.domain, user, UserChange(name="BOB"))
    with pytest.raises(NotFound):
        await areas.accounts.update(await areas.domains.add(areas.tenant, "branch"), user, UserChange(did="did:a:c"))


async def test_a_seed_keeps_its_spent_codes(areas: Areas) -> None:
    """If the same seed is set again, its used codes stay used.

    Another seed, or the removal of the seed, takes effect at once and ends a pending enrolment.
    """
    user = await areas.accounts.add(areas.domain, UserChange("ann", motp=SEED))
    step = areas.clock() // 30_000_000
    assert await areas.seeds.seed(areas.domain, "ann") == SEED
    assert await areas.seeds.spend(areas.domain, "ann", step)
    await areas.accounts.update(areas.domain, user, UserChange(motp=SEED))
    await areas.seeds.seed(areas.domain, "ann")
    assert not await areas.seeds.spend(areas.domain, "ann", step)
    other = pyotp.random_base32()
    await areas.seeds.enrol(areas.domain, "ann")
    await areas.accounts.update(areas.domain, user, UserChange(motp=other))
    assert await areas.seeds.seed(areas.domain, "ann") == other
    with pytest.raises(NotFound):  # a pending enrolment would have replaced the new seed
        await areas.seeds.confirm(areas.domain, "ann", "123456")
    await areas.accounts.update(areas.domain, user, UserChange(motp=""))
    assert await areas.seeds.seed(areas.domain, "ann") is None


async def test_a_password_meets_the_policies_of_its_machines(areas: Areas) -> None:
    """A password must meet the policies of all machines of the user, assigned directly or through groups.

    A refused change stores nothing.
    """
    machine = await strict_machine(areas)
    with pytest.raises(Invalid) as raised:
        await areas.accounts.add(areas.domain, UserChange("ann", password=b"hunter2"), [machine])
    assert [error.field for error in raised.value.fields] == ["minLen"]
    assert "hunter2" not in str(raised.value.fields)
    assert await listed(areas) == ([], 0)
    ann = await areas.accounts.add(areas.domain, UserChange("ann", password=b"a long password"), [machine])
    bob = await areas.accounts.add(areas.domain, UserChange("bob", password=b"hunter2"))
    group = await areas.groups.add(areas.domain, Group("g"), [machine])
    await areas.groups.assign_users(areas.domain, group, [bob], Action.ADD)
    for user in (ann, bob):
        with pytest.raises(Invalid):
            await areas.accounts.update(areas.domain, user, UserChange(password=b"hunter3", did="did:a:b"))
        assert (await areas.accounts.detail(areas.domain, user, reveal=True)).account.did == ""
        await areas.accounts.update(areas.domain, user, UserChange(password=b"another long one"))
    assert await passwords(areas, "bob") == (b"another long one",)


async def test_a_password_meets_the_policies_of_its_groups(areas: Areas) -> None:
    """A password must meet the policy in the credential policy of a group, even if the group has no machine.

    An import also checks the groups of its rows.
    """
    policy = await areas.policies.add(areas.tenant, {"policyName": "long", "minLen": "12"})
    group = await areas.groups.add(areas.domain, Group("g"))
    await areas.groups.set_credential_policy(areas.domain, group, {"policy_id": policy})
    ann = await areas.accounts.add(areas.domain, UserChange("ann", password=b"hunter2"))
    await areas.accounts.update(areas.domain, ann, UserChange(password=b"hunter3"))
    await areas.groups.assign_users(areas.domain, group, [ann], Action.ADD)
    with pytest.raises(Invalid, match="policy"):
        await areas.accounts.update(areas.domain, ann, UserChange(password=b"hunter4"))
    await areas.accounts.update(areas.domain, ann, UserChange(password=b"a long password"))
    rows = [{"userName": name, "password": "hunter2", "groups": "g"} for name in ("ann", "new")]
    planned = await import_users(areas.store, areas.accounts, areas.domain, rows, apply=False)
    assert {each.outcome.value for each in planned} == {"refused"}
    await areas.policies.delete(areas.tenant, [policy])
    await areas.accounts.update(areas.domain, ann, UserChange(password=b"hunter4"))


async def test_an_unchanged_password_is_not_checked_again(areas: Areas) -> None:
    """If an unchanged password is sent again, it is not checked against a newer policy."""
    bob = await areas.accounts.add(areas.domain, UserChange("bob", password=b"hunter2"))
    await areas.instances.assign_users(areas.domain, [await strict_machine(areas)], [bob], Action.ADD)
    await areas.accounts.update(areas.domain, bob, UserChange(password=b"hunter2", did="did:a:b"))
    assert (await areas.accounts.detail(areas.domain, bob, reveal=True)).account.did == "did:a:b"


async def test_lists_are_filtered_by_any_column(areas: Areas) -> None:
    """The filter for names matches a part of the name; the other filters match the whole value.

    Both are case-insensitive. A list for several instances has each user once.
    """
    web, mail = [
        await areas.instances.add(areas.domain, Instance(n, host_name=h))
        for n, h in (("web", ""), ("mail", "mx1.example"))
    ]
    ann = await areas.accounts.add(areas.domain, UserChange("Ann-Marie"), [web, mail])
    bob = await areas.accounts.add(areas.domain, UserChange("bob", "Admin", "SSH"), [mail])
    carl = await areas.accounts.add(areas.domain, UserChange("carl"))
    staff, foreign = [
        await areas.groups.add(domain, Group("staff"))
        for domain in (areas.domain, await areas.domains.add(areas.tenant, "branch"))
    ]
    await areas.groups.assign_users(areas.domain, staff, [ann, carl], Action.ADD)
    for column, value, names in (
        ("name", "n-M", ["Ann-Marie"]), ("id", str(bob), ["bob"]), ("user_type", "LOCAL user", ["Ann-Marie", "carl"]),
        ("user_type", "admin", ["bob"]), ("credential_type", "ssh", ["bob"]),
        ("source", "local", ["Ann-Marie", "bob", "carl"]),
        ("assigned", "0", ["carl"]), ("assigned", "1", ["Ann-Marie", "bob"]), ("instance", str(web), ["Ann-Marie"]),
        ("host", "WEB", ["Ann-Marie"]), ("host", "MX1.example", ["Ann-Marie", "bob"]), ("host", "mail", []),
        ("credential", "x", []), ("name", "nobody", []),
        ("group", str(staff), ["Ann-Marie", "carl"]), ("group", str(foreign), []),
    ):  # fmt: skip
        assert await listed(areas, column=column, value=value) == (names, len(names)), (column, value)
    assert await listed(areas, instance_ids=[web, mail]) == (["Ann-Marie", "bob"], 2)
    assert await listed(areas, instance_ids=[mail], column="name", value="bo") == (["bob"], 1)
    assert await listed(areas, instance_ids=[web, mail], limit=1) == (["Ann-Marie"], 2)
    rows, _ = await areas.accounts.page(UserQuery(areas.domain))
    assert [each.host_names for each in rows] == [
        ["web", "mx1.example"],
        ["mx1.example"],
        [],
    ]
    await areas.instances.remove(areas.domain, mail)
    assert await listed(areas, column="assigned", value="1") == (["Ann-Marie"], 1)
    await areas.instances.assign_users(areas.domain, [web], [ann], Action.REMOVE)
    assert await listed(areas, column="assigned", value="1") == ([], 0)
    with pytest.raises(NotFound):
        await listed(areas, instance_ids=[web, mail])


async def test_removing_users(areas: Areas) -> None:
    """A removal that names an instance ends the assignment.

    Without an instance, or with `wholly`, it deletes the user. Users are named by id, by name or by both. One wrong
    entry refuses the whole request.
    """
    machine = await areas.instances.add(areas.domain, Instance("web"))
    users = [UserChange(name, password=b"x") for name in ("ann", "bob", "carl")]
    ids = [await areas.accounts.add(areas.domain, user, [machine]) for user in users]
    for wrong in (Removal(10**9, "", 0), Removal(ids[0], "bob", 0), Removal(0, "dora", 0), Removal(ids[1], "", 10**9)):
        with pytest.raises(NotFound):
            await areas.accounts.remove(areas.domain, [Removal(ids[0], "", 0), wrong])
    assert await listed(areas) == (["ann", "bob", "carl"], 3)
    for _ in range(2):
        assert await areas.accounts.remove(areas.domain, [Removal(ids[0], "", machine)]) == 0
    assert await listed(areas, instance_ids=[machine]) == (["bob", "carl"], 2)
    assert await passwords(areas, "bob") == (b"x",)
    twice = [Removal(ids[1], "BOB", 0), Removal(0, "bob", machine), Removal(ids[0], "", 0)]
    assert await areas.accounts.remove(areas.domain, twice) == 2
    assert await passwords(areas, "bob") == ()
    assert await areas.accounts.remove(areas.domain, [Removal(0, "carl", machine)], wholly=True) == 1
    assert await listed(areas) == ([], 0)
    assert await areas.store.read(lambda tx: tx.value(int, "select total_users from endpoint_instances")) == 0


class Wallets:
    """A fake of the identity area. It has one credential for each user."""

    def __init__(self) -> None:
        self.held: dict[int, str] = {}

    def assign(self, tx: Tx, wanted: WalletAssignment) -> None:
        if 7 in wanted.credential_ids:
            raise NotFound("credential not found")
        self.held |= {user: f"urn:uuid:{wanted.credential_ids[0]}" for user in wanted.user_ids if wanted.credential_ids}

    def of_users(self, tx: Tx, user_ids: Sequence[int]) -> Mapping[int, str]:
        return {user: self.held[user] for user in user_ids if user in self.held}

    def holder(self, tx: Tx, domain_id: int, credential_id: str) -> int | None:
        return next((user for user, held in self.held.items() if held == credential_id), None)

    def unlink(self, tx: Tx, user_ids: Sequence[int]) -> int:
        return sum(self.held.pop(user_id, None) is not None for user_id in user_ids)


def change(areas: Areas, users: list[int], *, credentials: Sequence[int] = (), **fields: Sequence[int]) -> WalletChange:
    """Return the change that a request to updateUserWallet describes."""
    wallet = WalletAssignment(areas.domain, users, fields.get("wallets", ()), credentials, "", 0, several=False)
    return WalletChange(wallet, fields.get("groups", ()), fields.get("instances", ()), "Admin", "yes")


async def test_a_wallet_change_is_all_or_nothing(areas: Areas) -> None:
    """One request sets groups, instances, type, privilege and credential. If one id is unknown, nothing is changed."""
    wallets = Wallets()
    users = EndpointUsers(areas.store, areas.vault, areas.clock)
    users.before_deletion(wallets.unlink)
    accounts = Users(areas.store, areas.vault, users, areas.policies, wallets, areas.clock)
    ann = await accounts.add(areas.domain, UserChange("ann", password=b"x"))
    group = await areas.groups.add(areas.domain, Group("g"))
    machine = await areas.instances.add(areas.domain, Instance("web"))
    for wrong in (
        change(areas, [ann, 10**9], groups=[group]), change(areas, [ann], groups=[group, 10**9]),
        change(areas, [ann], instances=[10**9]), change(areas, [ann], groups=[group], credentials=[7]),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            await accounts.update_wallet(areas.domain, wrong)
    before = (await accounts.page(UserQuery(areas.domain)))[0][0]
    assert (before.user_type, before.groups, before.instances, before.credential) == ("Local", (), (), "")
    assert (await users.load(areas.domain, "ann")).groups == frozenset()  # type: ignore[union-attr]
    for _ in range(2):
        wanted = change(areas, [ann], groups=[group], instances=[machine], credentials=[3])
        await accounts.update_wallet(areas.domain, wanted)
    after = (await accounts.page(UserQuery(areas.domain, column="credential", value="urn:uuid:3")))[0][0]
    assert (after.user_type, after.privileged_user) == ("Admin", "yes")
    assert (after.groups, [each.id for each in after.instances], after.credential) == (["g"], [machine], "urn:uuid:3")
    assert (await users.load(areas.domain, "ann")).groups == {"g"}  # type: ignore[union-attr]
    await accounts.remove(areas.domain, [Removal(ann, "", 0)])
    assert wallets.held == {}


async def test_one_request_assigns_a_bounded_number_of_credentials(areas: Areas) -> None:
    """A request is refused before the store is used if its number of users, multiplied by its number of wallets and
    credentials, is too large."""
    accounts = Users(areas.store, areas.vault, areas.users, areas.policies, Wallets(), areas.clock)
    for several in ({"credentials": [3] * 11}, {"wallets": [3] * 11}):
        with pytest.raises(Invalid, match=f"at most {MAX_PAIRS} assignments"):
            await accounts.update_wallet(areas.domain, change(areas, list(range(200)), **several))


async def test_without_the_identity_area(areas: Areas) -> None:
    """Without the identity area, setting a wallet or a credential raises NotFound. Groups and instances can still be
    changed."""
    ann = await areas.accounts.add(areas.domain, UserChange("ann"))
    for wrong in (change(areas, [ann], credentials=[1]), change(areas, [ann], wallets=[1])):
        with pytest.raises(NotFound):
            await areas.accounts.update_wallet(areas.domain, wrong)
    await areas.accounts.update_wallet(areas.domain, change(areas, [ann]))
    assert (await areas.accounts.detail(areas.domain, ann, reveal=True)).account.user_type == "Admin"


async def test_the_audit_trail_holds_no_secret(areas: Areas) -> None:
    """The audit trail records each addition, change, read and removal. Secrets are shown as asterisks."""
    user = await areas.accounts.add(areas.domain, UserChange("ann", password=b"hunter2", motp=SEED))
    for _ in range(2):
        await areas.accounts.update(areas.domain, user, UserChange(password=b"hunter3", did="did:a:b"))
    await areas.accounts.detail(areas.domain, user, reveal=True)
    await areas.seeds.enrol(areas.domain, "ann")
    await areas.seeds.remove(areas.domain, "ann")
    await areas.accounts.remove(areas.domain, [Removal(user, "", 0)])
    entries = [entry for entry in await trail(areas) if entry.target == f"user {user} ann"]
    assert [entry.action for entry in entries] == [
        "user.add", "user.update", "user.read", "user.totp.enrol", "user.totp.remove", "user.delete",
    ]  # fmt: skip
    assert entries[1].changes == {"did": ["", "did:a:b"], "password": ["********", "********"]}
    assert entries[2].changes == {"secrets": "shown"}
    assert not any(secret in str(entries) for secret in ("hunter", SEED))


async def test_an_import_reports_each_row(areas: Areas) -> None:
    """An import reports the same whether or not it applies the rows.

    It adds instances and groups to those that the user already has.
    """
    web, mail = [await areas.instances.add(areas.domain, Instance(name)) for name in ("web", "mail")]
    await areas.groups.add(areas.domain, Group("staff"))
    old = await areas.accounts.add(areas.domain, UserChange("old", password=b"hello"), [web])
    await areas.users.load(areas.domain, "old")
    rows = [
        {"userName": "OLD", "password": "hello", "instances": "mail, web", "groups": ["staff"]},
        {"userName": "new", "password": "x", "sshKey": f"{ED25519} a, {ED25519} b", "motp": SEED},
    ]
    for apply in (False, True):
        planned = await import_users(areas.store, areas.accounts, areas.domain, rows, apply=apply)
        assert [(each.outcome.value, list(each.changes)) for each in planned] == [
            ("changed", ["name", "instances", "groups"]), ("new", []),
        ]  # fmt: skip
    again = await import_users(areas.store, areas.accounts, areas.domain, rows, apply=False)
    assert [each.outcome.value for each in again] == ["unchanged", "unchanged"]
    (first, second), total = await areas.accounts.page(UserQuery(areas.domain))
    assert total == 2
    assert (first.id, [each.id for each in first.instances], first.groups) == (old, [web, mail], ["staff"])
    assert second.ssh_key == f"{ED25519} a\n{ED25519} b"
    assert (await areas.users.load(areas.domain, "old")).groups == {"staff"}  # type: ignore[union-attr]


async def test_an_import_gives_the_reason_of_each_refused_row(areas: Areas) -> None:
    """An import reports why each row is refused, without the values of the row: invalid fields, unknown instances and
    groups, or a password that does not meet its policy."""
    await strict_machine(areas)
    rows = [
        {"userName": "a", "motp": "hunter2"},
        {"userName": "b", "instances": "nowhere"},
        {"userName": "c", "groups": "nobody"},
        {"userName": "d", "password": "hunter2", "instances": "strict"},
        {"password": "hunter2"},
    ]
    planned = await import_users(areas.store, areas.accounts, areas.domain, rows, apply=False)
    assert {each.outcome.value for each in planned} == {"refused"}
    reasons = [each.reason for each in planned]
    assert [reason.partition(";")[0] for reason in reasons] == [
        "motp must be a seed in base32 of 16 to 128 characters",
        "instances: instance not found", "groups: group not found",
        "the password has fewer than 12 characters", "userName is missing",
    ]  # fmt: skip
    assert "hunter2" not in str(reasons)
    with pytest.raises(Conflict):
        await import_users(areas.store, areas.accounts, areas.domain, [{"userName": "fine"}, *rows], apply=True)
    assert await listed(areas) == ([], 0)
