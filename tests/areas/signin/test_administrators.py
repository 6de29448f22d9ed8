"""Local administrators: names, passwords by policy, and what the store has of their secrets."""

import json

import pytest

from sallyport.areas.signin import repo
from sallyport.base.errors import Conflict, Forbidden, Invalid, NotFound
from sallyport.store.model import Tx
from sallyport.web.scope import Caller, Role
from tests.areas import Areas, stored

PASSWORD = "a horse and 42 batteries"
INSTALLATION = (Role.INSTALLATION, None)


async def test_the_store_has_neither_password_nor_seed(areas: Areas) -> None:
    """The hash of the password and the seed are sealed, so a stolen database does not allow guessing."""
    _, seed = await areas.administrators.add("root", PASSWORD, *INSTALLATION)
    octets = stored(areas.store)
    assert PASSWORD.encode() not in octets
    assert seed.encode() not in octets
    assert b"$argon2id$" not in octets


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("short 1 A", "fewer than 12 characters"),
        ("abcdefghijklmnop", "fewer than 2 classes"),
        ("root root root root", "name"),
        ("", "must have 1 to 128"),
        ("a" * 600, "must have 1 to 128"),
        ("two\nlines of 42 horses", "must have 1 to 128"),
    ],
    ids=["short", "one class", "name", "empty", "long", "lines"],
)
async def test_a_password_must_meet_the_policy(areas: Areas, password: str, why: str) -> None:
    """The refusal names each rule that fails, and never the password."""
    with pytest.raises(Invalid) as refused:
        await areas.administrators.add("root", password, *INSTALLATION)
    assert why in str(refused.value) + repr(refused.value.fields)
    assert not password or password not in str(refused.value)
    assert await areas.administrators.list() == []


@pytest.mark.parametrize("name", ["", " ", " root", "a\nb", "x" * 65])
async def test_a_name_must_be_readable(areas: Areas, name: str) -> None:
    """A name that would be confused in a list is refused."""
    with pytest.raises(Invalid):
        await areas.administrators.add(name, PASSWORD, *INSTALLATION)


async def test_a_name_is_used_once_in_any_case(areas: Areas) -> None:
    """ROOT is root."""
    await areas.administrators.add("root", PASSWORD, *INSTALLATION)
    with pytest.raises(Conflict):
        await areas.administrators.add("ROOT", PASSWORD, Role.AUDITOR, areas.tenant)


@pytest.mark.parametrize("action", ["remove", "password", "seed"])
async def test_an_unknown_administrator_is_named_with_the_known_ones(areas: Areas, action: str) -> None:
    """The refusal lists the administrators that exist."""
    await areas.administrators.add("root", PASSWORD, *INSTALLATION)
    with pytest.raises(NotFound, match=r'"rot" not found.*root'):
        if action == "remove":
            await areas.administrators.remove("rot")
        elif action == "password":
            await areas.administrators.set_password("rot", PASSWORD)
        else:
            await areas.administrators.renew_seed("rot")


async def test_each_change_is_in_the_audit_trail_without_secrets(areas: Areas) -> None:
    """The entries name the administrator and the change, in the trail of its tenant or of the installation."""
    _, seed = await areas.administrators.add("root", PASSWORD, *INSTALLATION)
    await areas.administrators.add("ann", PASSWORD, Role.AUDITOR, areas.tenant)
    await areas.administrators.set_password("root", PASSWORD + "2")
    await areas.administrators.renew_seed("root")
    await areas.administrators.remove("ann")
    sql = "select action, tenant_id, target, changes from audit_trail where action like 'administrator.%' order by id"
    rows = await areas.store.read(lambda tx: tx.rows(sql))
    assert [(row[0], row[1]) for row in rows] == [
        ("administrator.add", 0),
        ("administrator.add", areas.tenant),
        ("administrator.password", 0),
        ("administrator.totp", 0),
        ("administrator.remove", areas.tenant),
    ]
    text = json.dumps([row[2:] for row in rows])
    assert "root" in text and PASSWORD not in text and seed not in text


async def test_the_names_whose_factors_an_operator_may_not_change(areas: Areas) -> None:
    """An administrator of the installation, and an admin of the tenant, is protected under the own name, with and
    without each realm of the domain. A realm of another domain makes another person."""
    tenant = await areas.tenancy.ensure_tenant(3, 4)
    branch = await areas.domains.add(tenant, "Branch", realms=("Branch.Example",))
    await areas.administrators.add("Root", PASSWORD, *INSTALLATION)
    for name, role, tenant_id in (
        ("ann@BRANCH.example", Role.ADMIN, tenant),
        ("bea@corp", Role.ADMIN, tenant),
        ("cy", Role.OPERATOR, tenant),
        ("@branch", Role.ADMIN, tenant),
        ("dan", Role.ADMIN, areas.tenant),
    ):
        await areas.administrators.add(name, PASSWORD, role, tenant_id)

    def sign_in_eve(tx: Tx) -> None:
        who = ("https://id.example", "7")
        repo.put_identity(tx, *who, name=" Eve ", role="admin", tenant_id=tenant, member_of="[]", at=areas.clock())

    await areas.store.write(sign_in_eve)
    operator = Caller(1, 3, 4, tenant, Role.OPERATOR, "an operator")

    async def is_protected(name: str) -> bool:
        try:
            await areas.app.users.administrators.check(branch, name, operator)
        except Forbidden:
            return True
        return False

    protected = [
        *("root", "ROOT@Branch", "root@branch.example", "ann", "ann@branch", "ann@branch.example"),
        *("bea@corp", "eve", "eve@branch", "@branch"),
    ]
    others = ["root@corp", "bea", "bea@branch", "cy", "dan", "eve@corp", "branch", ""]
    assert [each for each in (*protected, *others) if await is_protected(each)] == protected
