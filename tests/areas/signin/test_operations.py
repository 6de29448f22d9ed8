"""The local operations of administrators and sessions, as the command line calls them."""

from collections.abc import Mapping
from typing import Any

import pytest

from sallyport.areas.signin import repo
from sallyport.areas.signin.area import SignInArea
from sallyport.areas.signin.sessions import Browser
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import Conflict, Invalid, NotFound, SecretError, Unauthenticated
from sallyport.base.secret import Secret
from sallyport.base.totp import hotp, seed_octets, step_at
from sallyport.store.sealed import check_keys
from sallyport.store.vault import Vault
from sallyport.web.scope import Role
from tests.areas import Areas

PASSWORD = "a horse and 42 batteries"
OTHER_PASSWORD = "another cow, 17 turbines"
LAPTOP = Browser("192.0.2.7", "Firefox")


async def run(areas: Areas, operation: str, /, **arguments: object) -> Any:
    """Run a local operation."""
    commands: Mapping[str, Any] = areas.app.signin.commands()
    return await commands[operation](arguments)()


def code(areas: Areas, otpauth: str) -> str:
    """Return the present one-time code of an otpauth URI."""
    seed = otpauth.partition("secret=")[2].partition("&")[0]
    return hotp(seed_octets(seed), step_at(areas.clock()))


async def test_administrators_are_added_listed_and_removed(areas: Areas) -> None:
    """An administrator belongs to the installation, or to a tenant with a role. The seed is shown once."""
    root = await run(areas, "admin.add", name="root", password=PASSWORD)
    assert "otpauth://totp/" in root["otpauth"] and "root" in root["otpauth"] and "Sallyport" in root["otpauth"]
    ann = await run(areas, "admin.add", name="Ann", password=PASSWORD, org=1, tenant=1, role="auditor")
    common = {"created": iso(areas.clock())}
    expected = [
        {"id": ann["id"], "name": "Ann", "role": "auditor", "org": 1, "tenant": 1, **common},
        {"id": root["id"], "name": "root", "role": "installation", "org": None, "tenant": None, **common},
    ]
    assert await run(areas, "admin.list") == expected
    assert {name: value for name, value in root.items() if name != "otpauth"} == expected[1]
    assert await run(areas, "admin.remove", name="ANN") == expected[0]
    assert await run(areas, "admin.list") == expected[1:]


async def test_the_tenant_of_an_administrator(areas: Areas) -> None:
    """A tenant is an org and a tenant, in this order. One without the other is no tenant, and never the installation.
    The role of an administrator of a tenant is admin by default."""
    await areas.tenancy.ensure_tenant(3, 4)
    made = await run(areas, "admin.add", name="bea", password=PASSWORD, org=3, tenant=4)
    assert (made["role"], made["org"], made["tenant"]) == ("admin", 3, 4)
    for wrong in ({"org": 4, "tenant": 3}, {"org": 3}, {"tenant": 4}):
        with pytest.raises(NotFound):
            await run(areas, "admin.add", name="cy", password=PASSWORD, **wrong)
    for number in (0, -1, 2**63):
        with pytest.raises(Invalid):
            await run(areas, "admin.add", name="cy", password=PASSWORD, org=number, tenant=4)
    with pytest.raises(Invalid):
        await run(areas, "admin.add", name="cy", password=PASSWORD, org=3, tenant=4, role="installation")
    assert [each["name"] for each in await run(areas, "admin.list")] == ["bea"]


async def test_a_role_has_a_tenant(areas: Areas) -> None:
    """A role of a tenant is never that of the whole installation, and the role of the installation is in no tenant."""
    for role, tenant in ((Role.ADMIN, None), (Role.INSTALLATION, areas.tenant)):
        with pytest.raises(ValueError, match="has no tenant"):
            await areas.administrators.add("root", PASSWORD, role, tenant)


async def test_a_new_password_and_a_new_seed(areas: Areas) -> None:
    """Afterwards, only the new password and codes of the new seed are right. Other administrators keep theirs."""
    other = await run(areas, "admin.add", name="other", password=PASSWORD)
    first = await run(areas, "admin.add", name="root", password=PASSWORD)
    changed = await run(areas, "admin.password", name="root", password=OTHER_PASSWORD)
    assert changed == {name: value for name, value in first.items() if name != "otpauth"}
    renewed = await run(areas, "admin.totp", name="root")
    assert renewed["otpauth"] != first["otpauth"]
    sign_in = areas.sign_ins.by_password
    for password, otpauth in ((PASSWORD, renewed["otpauth"]), (OTHER_PASSWORD, first["otpauth"])):
        with pytest.raises(Unauthenticated):
            await sign_in("root", password, code(areas, otpauth), LAPTOP)
    assert await sign_in("root", OTHER_PASSWORD, code(areas, renewed["otpauth"]), LAPTOP)
    assert await sign_in("other", PASSWORD, code(areas, other["otpauth"]), LAPTOP)


async def test_a_code_is_new_after_the_seed(areas: Areas) -> None:
    """A used code of the former seed does not void the codes of the new one."""
    first = await run(areas, "admin.add", name="root", password=PASSWORD)
    await areas.sign_ins.by_password("root", PASSWORD, code(areas, first["otpauth"]), LAPTOP)
    renewed = await run(areas, "admin.totp", name="root")
    assert await areas.sign_ins.by_password("root", PASSWORD, code(areas, renewed["otpauth"]), LAPTOP)


async def test_sessions_are_listed_and_ended(areas: Areas) -> None:
    """The newest session comes first, with its person, browser and times."""
    root = await run(areas, "admin.add", name="root", password=PASSWORD)
    _, token = await areas.tenancy.create_token(1, 1, Role.OPERATOR, "ci", None)
    began = areas.clock()
    await areas.sign_ins.by_token(token, LAPTOP)
    areas.clock.pass_by(60)
    key = await areas.sign_ins.by_password("root", PASSWORD, code(areas, root["otpauth"]), Browser("192.0.2.8"))
    areas.clock.pass_by(90)
    assert await areas.console_sessions.person(key, "192.0.2.8")
    newest, oldest = await run(areas, "admin.sessions")
    hours = areas.settings.console_hours * 3600 * SECOND
    assert oldest == {
        "id": oldest["id"],
        "kind": "token",
        "name": "ci",
        "role": "operator",
        "org": 1,
        "tenant": 1,
        "from": "192.0.2.7",
        "browser": "Firefox",
        "began": iso(began),
        "seen": iso(began),
        "ends": iso(began + hours),
    }
    at = began + 60 * SECOND
    assert (newest["kind"], newest["name"], newest["role"]) == ("administrator", "root", "installation")
    assert (newest["from"], newest["browser"]) == ("192.0.2.8", "")
    assert (newest["began"], newest["seen"], newest["ends"]) == (
        iso(at),
        iso(at + 90 * SECOND),
        iso(at + hours),
    )
    assert await run(areas, "admin.revoke", session=newest["id"]) == newest
    assert await areas.console_sessions.person(key, "192.0.2.8") is None
    assert await run(areas, "admin.sessions") == [oldest]
    with pytest.raises(NotFound):
        await run(areas, "admin.revoke", session=newest["id"])


async def test_a_session_without_a_tenant(areas: Areas) -> None:
    """An installation administrator who has not chosen one of several tenants acts in none."""
    await areas.tenancy.ensure_tenant(3, 4)
    root = await run(areas, "admin.add", name="root", password=PASSWORD)
    await areas.sign_ins.by_password("root", PASSWORD, code(areas, root["otpauth"]), LAPTOP)
    (session,) = await run(areas, "admin.sessions")
    assert (session["role"], session["org"], session["tenant"]) == ("installation", None, None)


async def test_what_the_audit_trail_has(areas: Areas) -> None:
    """Each entry has the trail of its tenant, its time, the changed fields, and the address of the browser."""
    root = await run(areas, "admin.add", name="root", password=PASSWORD)
    ann = await run(areas, "admin.add", name="ann", password=PASSWORD, org=1, tenant=1, role="auditor")
    areas.clock.pass_by(1)
    await areas.sign_ins.by_password("root", PASSWORD, code(areas, root["otpauth"]), LAPTOP)
    await areas.sign_ins.by_password("ann", PASSWORD, code(areas, ann["otpauth"]), LAPTOP)
    for session in await areas.console_sessions.everything():
        await run(areas, "admin.revoke", session=session.id)
    await run(areas, "admin.password", name="ann", password=OTHER_PASSWORD)
    await run(areas, "admin.totp", name="ann")
    sql = "select action, tenant_id, at, changes from audit_trail where target like 'administrator %' order by id"
    rows = await areas.store.read(lambda tx: tx.rows(sql))
    later, hidden = areas.clock(), '["********","********"]'
    assert [(row[0], row[1], row[2], str(row[3]).replace(" ", "")) for row in rows] == [
        ("administrator.add", 0, later - SECOND, '{"role":[null,"installation"]}'),
        ("administrator.add", areas.tenant, later - SECOND, '{"role":[null,"auditor"]}'),
        *(("console.sign-in", tenant, later, '{"from":[null,"192.0.2.7"]}') for tenant in (0, areas.tenant)),
        *(("console.revoke", tenant, later, '{"from":[null,"192.0.2.7"]}') for tenant in (areas.tenant, 0)),
        ("administrator.password", areas.tenant, later, f'{{"password":{hidden}}}'),
        ("administrator.totp", areas.tenant, later, f'{{"seed":{hidden}}}'),
    ]


async def test_a_restored_store_has_no_sessions_and_no_unused_codes(areas: Areas) -> None:
    """A backup does not know the codes that were used after it. So no code up to the next time step is accepted."""
    root = await run(areas, "admin.add", name="root", password=PASSWORD)
    _, token = await areas.tenancy.create_token(1, 1, Role.OPERATOR, "ci", None)
    await areas.sign_ins.by_token(token, LAPTOP)
    await areas.store.write(lambda tx: areas.app.signin.void(tx, areas.clock()))
    assert await run(areas, "admin.sessions") == []
    for seconds in (0, 30):
        areas.clock.pass_by(seconds)
        with pytest.raises(Unauthenticated):
            await areas.sign_ins.by_password("root", PASSWORD, code(areas, root["otpauth"]), LAPTOP)
    areas.clock.pass_by(30)
    assert await areas.sign_ins.by_password("root", PASSWORD, code(areas, root["otpauth"]), LAPTOP)


async def test_secrets_get_another_master_key(areas: Areas) -> None:
    """The password, the seed and the ID token are in the declared columns. A store whose passwords or seeds another key
    has sealed is refused: each value is tried."""
    await run(areas, "admin.add", name="root", password=PASSWORD)
    _, token = await areas.tenancy.create_token(1, 1, Role.OPERATOR, "ci", None)
    await areas.sign_ins.by_token(token, LAPTOP)
    (session,) = await areas.console_sessions.everything()
    await areas.store.write(lambda tx: repo.set_id_token(tx, areas.vault, session.id, "an ID token"))
    other = Vault(Secret(b"1" * 32))
    for column in SignInArea.sealed:
        await areas.store.read(lambda tx, column=column: check_keys(tx, [column], areas.vault))
        with pytest.raises(SecretError):
            await areas.store.read(lambda tx, column=column: check_keys(tx, [column], other))
    assert [column.is_vital for column in SignInArea.sealed] == [True, True, False]


@pytest.mark.parametrize("name", ["x" * 64, "Ann Example", "é"])
async def test_names_that_are_accepted(areas: Areas, name: str) -> None:
    """A name has at most 64 characters, and is kept as it was given."""
    await run(areas, "admin.add", name=name, password=PASSWORD)
    assert [each["name"] for each in await run(areas, "admin.list")] == [name]
    with pytest.raises(Conflict, match=f'an administrator is called "{name.upper()}" already'):
        await run(areas, "admin.add", name=name.upper(), password=PASSWORD)


@pytest.mark.parametrize(
    ("password", "is_accepted"),
    [("aB3 aB3 aB3 ", True), ("abcd horse 42", True), ("aB3 aB3 aB3", False), ("abcde horse 42", False)],
    ids=["12 characters", "sequence of 4", "11 characters", "sequence of 5"],
)
async def test_the_limits_of_passwords(areas: Areas, password: str, is_accepted: bool) -> None:
    """A password has at least twelve characters, and no sequence of more than four."""
    if is_accepted:
        await run(areas, "admin.add", name="root", password=password)
        return
    with pytest.raises(Invalid, match="does not meet the policy"):
        await run(areas, "admin.add", name="root", password=password)
