"""The ends of a session, and the roles that may see and end it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from sallyport.areas.signin.person import Person, Session
from sallyport.areas.signin.sessions import Browser
from sallyport.base.clock import SECOND
from sallyport.base.errors import Forbidden, NotFound
from sallyport.settings.values import ANYWHERE
from sallyport.web.scope import Role
from tests.console.visitor import PASSWORD, Site, Visitor, text_of

MINUTE, HOUR = 60, 3600
OUTSIDE = "192.0.2.9"


async def test_a_session_ends_without_requests(site: Site, admin: Visitor) -> None:
    """Half an hour after the last request, the next one leads to the sign-in, and the browser drops the cookie."""
    site.clock.pass_by(29 * MINUTE)
    assert await admin.is_signed_in()
    site.clock.pass_by(29 * MINUTE)
    assert await admin.is_signed_in()
    site.clock.pass_by(31 * MINUTE)
    answer = await admin.get("/account")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2Faccount")
    assert "__Host-sallyport" not in admin.http.cookies


async def test_a_short_idle_time_is_exact(site: Site, admin: Visitor) -> None:
    """With the shortest setting, a session that is used every 20 seconds does not end."""
    site.areas.app.apply(site.areas.settings.model_copy(update={"console_idle_minutes": 1, "egress": ANYWHERE}))
    for _ in range(6):
        site.clock.pass_by(20)
        assert await admin.is_signed_in()
    site.clock.pass_by(60)
    assert not await admin.is_signed_in()


async def test_requests_of_the_script_do_not_keep_a_session(site: Site, admin: Visitor) -> None:
    """A page that refreshes itself does not count as use by the person."""
    for _ in range(3):
        site.clock.pass_by(9 * MINUTE)
        assert await admin.is_signed_in(**{"x-refresh": "1"})
    site.clock.pass_by(4 * MINUTE)
    assert not await admin.is_signed_in()


async def test_a_session_ends_although_it_is_used(site: Site, admin: Visitor) -> None:
    """After twelve hours, a session has ended in any case."""
    for _ in range(12 * 60 // 25):
        site.clock.pass_by(25 * MINUTE)
        assert await admin.is_signed_in()
    site.clock.pass_by(25 * MINUTE)
    assert not await admin.is_signed_in()


async def test_a_session_ends_with_its_token(site: Site) -> None:
    """The request after the revocation of the token is refused."""
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token())
        assert await visitor.is_signed_in()
        await site.areas.tenancy.revoke(Role.ADMIN.value)
        assert not await visitor.is_signed_in()


async def test_a_session_ends_when_its_token_expires(site: Site) -> None:
    """The request after the expiry of the token is refused."""
    expires = site.clock.now + 10 * MINUTE * 1_000_000
    _, token = await site.areas.tenancy.create_token(1, 1, Role.ADMIN, "short", expires)
    async with site.visitor() as visitor:
        await visitor.sign_in(token)
        assert await visitor.is_signed_in()
        site.clock.pass_by(11 * MINUTE)
        assert not await visitor.is_signed_in()


@pytest.mark.parametrize("change", ["removed", "password", "seed"])
async def test_the_sessions_of_a_changed_administrator_end(site: Site, change: str) -> None:
    """A removal, a new password and a new seed of the codes end the sessions of the administrator, and no others."""
    seed, seed_of_ann = await site.administrator("root"), await site.administrator("ann")
    administrators = site.areas.administrators
    async with site.visitor() as visitor, site.visitor() as ann, site.visitor() as holder:
        await visitor.sign_in_as("root", site.code(seed))
        await ann.sign_in_as("ann", site.code(seed_of_ann))
        await holder.sign_in(await site.token())
        assert await visitor.is_signed_in()
        if change == "removed":
            await administrators.remove("root")
        elif change == "password":
            await administrators.set_password("root", "another horse, 43 batteries")
        else:
            await administrators.renew_seed("root")
        assert not await visitor.is_signed_in()
        assert await ann.is_signed_in()
        assert await holder.is_signed_in()


async def test_a_sign_out_ends_the_session(site: Site, admin: Visitor) -> None:
    """The key is worthless afterwards, even to a thief of the cookie, and the audit trail has the sign-out."""
    key = admin.http.cookies["__Host-sallyport"]
    answer = await admin.send("/sign-out", page="/account")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    async with site.visitor() as thief:
        thief.http.cookies.set("__Host-sallyport", key, domain="console.example")
        assert not await thief.is_signed_in()
    assert len(await site.audited("console.sign-out")) == 1


async def test_an_admin_ends_a_session_of_the_tenant(site: Site, admin: Visitor) -> None:
    """The page shows the session first, and after the confirmation its person has to sign in again."""
    async with site.visitor("192.0.2.7") as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        number = max(each.id for each in await site.areas.console_sessions.everything())
        page = f"/account/sessions/{number}/end"
        assert "192.0.2.7" in text_of(await admin.get(page))
        assert await auditor.is_signed_in()
        answer = await admin.send(page)
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")
        assert "has ended" in text_of(await admin.get("/account"))
        assert not await auditor.is_signed_in()
    assert len(await site.audited("console.revoke")) == 1


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR])
async def test_other_roles_see_only_their_own_sessions(site: Site, admin: Visitor, role: Role) -> None:
    """An operator and an auditor neither see nor end the session of another token."""
    number = (await site.areas.console_sessions.everything())[0].id
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(role))
        assert f"/account/sessions/{number}/end" not in (await visitor.get("/account")).text
        assert (await visitor.get(f"/account/sessions/{number}/end")).status_code == 404
        assert (await visitor.send(f"/account/sessions/{number}/end", page="/account")).status_code == 404
    assert await admin.is_signed_in()


async def test_an_admin_of_another_tenant_sees_nothing(site: Site, admin: Visitor) -> None:
    """A session does not exist for another tenant, nor for a tenant's admin if it is of the installation. An
    installation administrator sees all sessions, also without a chosen tenant."""
    seed = await site.administrator("root")
    async with site.visitor() as root, site.visitor() as other:
        await root.sign_in_as("root", site.code(seed))
        await other.sign_in(await site.token(org=2, tenant=2))
        numbers = {each.role: each.id for each in await site.areas.console_sessions.everything() if each.tenant_id == 1}
        for number in numbers.values():
            assert (await other.get(f"/account/sessions/{number}/end")).status_code == 404
        assert (await admin.get(f"/account/sessions/{numbers['installation']}/end")).status_code == 404
        assert "root" in text_of(await root.get("/account"))
        everything = await site.areas.console_sessions.everything()
        (own,) = [Person(each) for each in everything if each.role == Role.INSTALLATION]
        for person, acts_in in ((own, 1), (Person(replace(own.session, tenant_id=None)), None)):
            assert person.session.tenant_id == acts_in
            found, total = await site.areas.console_sessions.visible_to(person, offset=0, limit=9)
            assert (found, total) == (everything, 3)


VISIBLE = {
    "root": {"root", "ann", "ann elsewhere", "auditor", "operator", "admin", "stranger"},
    "admin": {"ann", "ann elsewhere", "auditor", "operator", "admin"},
    "ann": {"ann", "ann elsewhere"},
    "auditor": {"auditor"},
    "operator": {"operator"},
    "stranger": {"stranger"},
}
"""The sessions that each person may see and end. Administrators and tokens have the same numbers."""


@pytest.mark.parametrize("label", VISIBLE)
async def test_who_sees_which_session(site: Site, label: str) -> None:
    """A person sees exactly the own sessions, those of the tenant, or all of them. An installation administrator who
    acts in the tenant stays hidden from its admins. A session that is not listed does not exist for the person."""
    sign_ins, sessions, keys = site.areas.sign_ins, site.areas.console_sessions, dict[str, str]()
    root, ann = await site.administrator("root"), await site.administrator("ann", Role.AUDITOR)
    for name, tenant in (("auditor", 1), ("operator", 1), ("admin", 1), ("stranger", 2)):
        token = await site.token(Role.ADMIN if name == "stranger" else Role(name), org=tenant, tenant=tenant)
        keys[name] = await sign_ins.by_token(token, Browser(OUTSIDE, name))
    for name, seed in (("root", root), ("ann", ann), ("ann elsewhere", ann)):
        site.clock.pass_by(30)
        browser = Browser(OUTSIDE, name)
        keys[name] = await sign_ins.by_password(name.split()[0], PASSWORD, site.code(seed), browser)
    acting = await sessions.person(keys["root"], OUTSIDE)
    assert acting is not None
    await sessions.choose_tenant(acting, site.areas.tenant)
    person = await sessions.person(keys[label], OUTSIDE)
    assert person is not None
    found, total = await sessions.visible_to(person, offset=0, limit=9)
    assert ({each.agent for each in found}, total) == (VISIBLE[label], len(VISIBLE[label]))
    for each in await sessions.everything():
        if each.agent in VISIBLE[label]:
            assert await sessions.visible(person, each.id) == each
        else:
            with pytest.raises(NotFound):
                await sessions.visible(person, each.id)


async def test_a_session_that_a_person_may_not_end(site: Site, admin: Visitor) -> None:
    """A person cannot end the session of another token, and an expired session does not exist."""
    sessions = site.areas.console_sessions
    (other,) = await sessions.everything()
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(Role.AUDITOR))
        person = Person((await sessions.everything())[0])
        with pytest.raises(NotFound):
            await sessions.end(other.id, person)
        assert await admin.is_signed_in()
        site.clock.pass_by(20 * MINUTE)
        assert await visitor.is_signed_in()
        site.clock.pass_by(20 * MINUTE)
        await visitor.sign_in(await site.token())
        assert (await visitor.get(f"/account/sessions/{other.id}/end")).status_code == 404
        assert (await visitor.get(f"/account/sessions/{person.session.id}/end")).status_code == 200


async def test_the_audit_trail_has_who_signs_out_and_where(site: Site) -> None:
    """The entry has the kind and the name of the person. A tenant sees those of its people, and nothing of the
    installation's administrators, although they act in the tenant."""
    root, ann = await site.administrator("root"), await site.administrator("ann", Role.OPERATOR)
    token = await site.token(Role.AUDITOR)
    async with site.visitor() as first, site.visitor() as second, site.visitor() as third:
        await first.sign_in_as("root", site.code(root))
        await second.sign_in_as("ann", site.code(ann))
        await third.sign_in(token)
        for visitor in (first, second, third):
            await visitor.send("/sign-out", page="/account")
    sql = "select actor_kind, actor, target, tenant_id from audit_trail where action = 'console.sign-out' order by id"
    assert await site.areas.store.read(lambda tx: tx.rows(sql)) == [
        ("administrator", "root", "administrator 1 root", 0),
        ("administrator", "ann", "administrator 2 ann", site.areas.tenant),
        ("token", "auditor", "token 1 auditor", site.areas.tenant),
    ]


async def test_an_installation_administrator_chooses_the_tenant(site: Site) -> None:
    """With several tenants, the pages of a tenant lead to the choice first; then they show that tenant. The choice is
    of this session alone."""
    seed, seed_of_other = await site.administrator("root"), await site.administrator("other")
    tenant = await site.areas.tenancy.ensure_tenant(3, 4)
    await site.areas.domains.add(tenant, "branch")
    async with site.visitor() as root, site.visitor() as other:
        await root.sign_in_as("root", site.code(seed))
        await other.sign_in_as("other", site.code(seed_of_other))
        assert (await root.get("/")).headers["location"] == "/tenants"
        assert (await root.send("/tenants", {"tenant": "999"})).status_code == 400
        assert (await root.send("/tenants", {"tenant": str(tenant)})).headers["location"] == "/"
        assert "org 3, tenant 4" in text_of(await root.get("/"))
        shown = text_of(await root.get("/domains"))
        assert "branch" in shown and "corp" not in shown
        assert (await other.get("/")).headers["location"] == "/tenants"


async def test_only_an_installation_administrator_chooses_a_tenant(site: Site, admin: Visitor) -> None:
    """The refusal names the role that is needed, and the role of the person."""
    (session,) = await site.areas.console_sessions.everything()
    with pytest.raises(Forbidden, match="needs installation, not admin"):
        await site.areas.console_sessions.choose_tenant(Person(session), site.areas.tenant)


async def test_a_restored_backup_has_no_sessions(site: Site, admin: Visitor) -> None:
    """Sessions that were ended after the backup must not come back, so none does."""
    path = site.areas.settings.data_dir / "backup.db"
    await site.areas.copies.backup(path)
    await site.areas.copies.restore(path)
    assert not await admin.is_signed_in()


async def test_sessions_are_read_in_pages(site: Site, admin: Visitor) -> None:
    """An admin with more sessions than a page has sees them in pages, the newest first or sorted by a column. The
    tenant's admins see the same ones."""
    sessions = site.areas.console_sessions
    async with site.visitor() as other:
        for number in range(3):
            _, token = await site.areas.tenancy.create_token(1, 1, Role.AUDITOR, f"token {number}", None)
            await other.sign_in(token)
    (own,) = [each for each in await sessions.everything() if each.role == Role.ADMIN]
    person = Person(own)
    newest = [each.id for each in await sessions.everything()]
    pages = [await sessions.visible_to(person, offset=offset, limit=2) for offset in (0, 2, 4)]
    assert [[each.id for each in page] for page, _ in pages] == [newest[:2], newest[2:], []]
    assert {total for _, total in pages} == {4}
    names = [each.name for each in (await sessions.visible_to(person, "name", offset=0, limit=9, descending=False))[0]]
    assert names == sorted(names)


KEYS: dict[str, Callable[[Session], object]] = {
    "name": lambda each: each.name.lower(),
    "role": lambda each: each.role,
    "from": lambda each: each.source,
    "browser": lambda each: each.agent,
    "began": lambda each: each.created_at,
    "seen": lambda each: each.seen_at,
    "ends": lambda each: each.ends_at,
    "id": lambda each: each.id,
}


@pytest.mark.parametrize("column", KEYS)
async def test_sessions_are_sorted_by_each_column(site: Site, column: str) -> None:
    """An admin can sort the sessions by what the page shows, in both directions."""
    areas, keys = site.areas, list[str]()
    for name, role, source, agent, hours in (
        ("b", Role.OPERATOR, "192.0.2.3", "Firefox", 3),
        ("C", Role.AUDITOR, "192.0.2.1", "Edge", 1),
        ("a", Role.ADMIN, "192.0.2.2", "Safari", 2),
    ):
        _, token = await areas.tenancy.create_token(1, 1, role, name, None)
        areas.sign_ins.longest_us = hours * HOUR * SECOND
        keys.append(await areas.sign_ins.by_token(token, Browser(source, agent)))
        site.clock.pass_by(MINUTE)
    assert await areas.console_sessions.person(keys[1], "192.0.2.1")
    person = Person((await areas.console_sessions.everything())[0])
    for descending in (False, True):
        found, _ = await areas.console_sessions.visible_to(person, column, offset=0, limit=9, descending=descending)
        assert found == sorted(found, key=KEYS[column], reverse=descending)  # type: ignore[arg-type]


async def test_own_sessions_are_sorted(site: Site) -> None:
    """A person who sees only the own sessions can sort them too."""
    sessions, token = site.areas.console_sessions, await site.token(Role.AUDITOR)
    for source in ("192.0.2.2", "192.0.2.3", "192.0.2.1"):
        await site.areas.sign_ins.by_token(token, Browser(source))
    person = Person((await sessions.everything())[0])
    for descending in (False, True):
        found, _ = await sessions.visible_to(person, "from", offset=0, limit=9, descending=descending)
        sources = [each.source for each in found]
        assert sources == sorted(sources, reverse=descending)
