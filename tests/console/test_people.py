"""A person in the console: factors, enrolment, lock-out, sessions, logins, and the rule that decides now."""

import re

from pyotp import TOTP

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.factors.denials import Denial, DeniedAt
from sallyport.areas.policy.lockouts import repo as lockouts
from sallyport.areas.policy.lockouts.repo import LockoutRow
from sallyport.base.clock import SECOND
from sallyport.web.scope import Role
from tests.areas.directory.world import group, imported, person
from tests.areas.dynamic.nas import ack, running_nas
from tests.areas.dynamic.world import device, session
from tests.areas.preview.conftest import Book
from tests.console.visitor import Site, Visitor, text_of

ALICE = "/people/person?user=alice"


async def with_alice(site: Site) -> Book:
    """Add a local user, and the provider totp."""
    await site.areas.add_user(site.areas.domain, "alice", b"password of alice")
    await site.areas.providers.set(site.areas.domain, "totp", {}, 60)
    return Book(site.areas)


async def lock(site: Site, kind: str, name: str, key: str) -> None:
    """Lock out a user or a station for ten minutes."""
    now = site.clock()
    row = LockoutRow(site.areas.domain, kind, key, name, now, now + 600 * SECOND, 10)
    await site.areas.store.write(lambda tx: lockouts.write(tx, row))


async def test_a_person_is_found_by_a_part_of_the_name(site: Site, admin: Visitor) -> None:
    """The list of people leads to the page of a person."""
    await with_alice(site)
    page = await admin.get("/people?search=lic")
    assert f'href="/people/person?domain={site.areas.domain}&amp;user=alice"' in page.text
    nobody = await admin.get("/people?search=zed")
    assert "Nothing matches" in text_of(nobody)
    assert "user=zed" in nobody.text


async def test_the_page_says_what_decides_now(site: Site, admin: Visitor) -> None:
    """The page shows both factors, the login rule that decides, and the last logins of the user alone."""
    book = await with_alice(site)
    await book.rule(name="staff", action="mfa_required", users=["alice"])
    await book.events(["alice", "alicia", "ALICE"])
    page = text_of(await admin.get(ALICE))
    assert "A login now: accept in monitor mode" in page
    assert "In enforce mode, the answer would be reject" in page
    assert "not enrolled" in page
    assert "staff Require a second factor decides" in page
    assert "alicia" not in page
    assert page.count("ALICE") == 1


async def test_a_local_password_is_shown_only_if_it_is_checked(site: Site, admin: Visitor) -> None:
    """If a directory checks the passwords, the page of a user does not speak of a local password."""
    await with_alice(site)
    assert "local users, with a password" in text_of(await admin.get(ALICE))
    ldap = {"servers": ["ldaps://dc.example.com"], "baseDN": "dc=example", "bindDN": "cn=s", "bindPassword": "secret"}
    domain = site.areas.domains.table.present(site.areas.domain)
    await site.areas.first_settings.set(domain, FirstFactor.LDAP, {"ldap": ldap})
    page = text_of(await admin.get(ALICE))
    assert "First factor LDAP directory" in page
    assert "password set" not in page and "with a password" not in page


async def test_a_rule_is_tested_for_a_client_and_a_station(site: Site, admin: Visitor) -> None:
    """Facts in the address decide too. If the client does not exist, the page has the error, and shows the rest."""
    book = await with_alice(site)
    await book.rule(name="lab", action="allow", stations=["02:00:00:00:00:01"])
    assert "lab Allow without a second factor decides" in text_of(await admin.get(f"{ALICE}&station=02-00-00-00-00-01"))
    missing = await admin.get(f"{ALICE}&client=nowhere")
    assert "RADIUS client not found" in text_of(missing)
    assert "Last logins" in text_of(missing)
    long = await admin.get(f"/people/person?user={'x' * 200}")
    assert "Last logins" in text_of(long)


async def test_a_name_that_is_nowhere_has_a_page_too(admin: Visitor) -> None:
    """A user of no directory may be in the log, so the page is no error."""
    page = text_of(await admin.get("/people/person?user=ghost"))
    assert "has no local user and no person of a directory with this name" in page
    assert "unknown user" in page


async def test_a_person_of_a_directory_shows_the_groups(site: Site, admin: Visitor) -> None:
    """The groups and the state come from the imported entry, found by the name or by the principal name."""
    entry = person("bob", "userPrincipalName: bob@corp.example") + group("ops", "uid=bob,ou=People,dc=x")
    await imported(site.areas, entry)
    assert "bob" in text_of(await admin.get("/people?kind=directory"))
    for name in ("bob", "bob@corp.example"):
        page = text_of(await admin.get(f"/people/person?user={name}"))
        assert "State active" in page
        assert "Groups ops" in page


async def test_an_authenticator_app_is_enrolled(site: Site, admin: Visitor) -> None:
    """The QR code and the seed are shown once. The first code makes the seed valid; a wrong code is an error."""
    await with_alice(site)
    enrol = "/people/person/enrol?user=alice"
    assert 'class="qr"' not in (await admin.get(enrol)).text
    made = await admin.send(enrol)
    assert re.search(r'class="qr"[^>]*>\s*<svg', made.text)
    (seed,) = re.findall(r"Or type it: <code class=\"secret\">(\w+)<", made.text)
    assert "/enrol" in made.text
    code = "/people/person/code?user=alice"
    wrong = await admin.send(code, {"code": "000000"})
    assert wrong.status_code == 400
    assert "wrong code" in text_of(wrong)
    right = await admin.send(code, {"code": TOTP(seed).at(site.clock() // SECOND)})
    assert right.status_code == 303
    page = await admin.get(right.headers["location"])
    assert "Authenticator app enrolled" in text_of(page)
    assert seed not in page.text


async def test_bypass_codes_are_made_and_removed(site: Site, admin: Visitor) -> None:
    """The digits are shown once, in groups. The page of the person shows how many codes are valid."""
    await with_alice(site)
    assert "Bypass codes none" in text_of(await admin.get(ALICE))
    form = "/people/person/bypass-codes?user=alice"
    assert "No bypass code." in text_of(await admin.get(form))
    refused = await admin.send(form, {"codes": "11", "uses": "1", "hours": "24"})
    assert refused.status_code == 400 and 'id="codes-wrong"' in refused.text
    made = await admin.send(form, {"codes": "2", "uses": "1", "hours": "24"})
    codes = re.findall(r'<code class="secret">(\d{4} \d{4})<', made.text)
    assert len(codes) == 2 and "no MFA provider of the domain takes bypass codes" in text_of(made)
    listed = await admin.get(form)
    assert text_of(listed).count("valid") == 2 and "New codes replace the present ones" in text_of(listed)
    assert not any(code[5:] in listed.text for code in codes)
    assert "Bypass codes 2" in text_of(await admin.get(ALICE))
    removal = "/people/person/bypass-codes/remove?user=alice"
    assert "Remove the codes" in text_of(await admin.get(removal))
    removed = await admin.send(removal)
    assert "2 bypass codes of alice removed." in text_of(await admin.get(removed.headers["location"]))
    assert "Bypass codes none" in text_of(await admin.get(ALICE))


async def test_a_locked_out_user_is_unlocked(site: Site, admin: Visitor) -> None:
    """The page says until when a user is locked out, and leads to the form that unlocks."""
    await with_alice(site)
    await lock(site, "user", "Alice", "alice")
    assert "Locked out since 2026-01-01 00:00:00 UTC , until 2026-01-01 00:10:00 UTC" in text_of(await admin.get(ALICE))
    assert "Alice" in text_of(await admin.get("/lockouts"))
    answer = await admin.send("/people/person/unlock?user=alice")
    assert "alice: unlocked" in text_of(await admin.get(answer.headers["location"]))
    assert "Locked out since" not in text_of(await admin.get(ALICE))


async def test_a_locked_out_station_is_unlocked(site: Site, admin: Visitor) -> None:
    """Home and the list of lock-outs lead to the station's form, in one notation of the station."""
    await lock(site, "station", "02-00-00-00-00-01", b"02-00-00-00-00-01".hex())
    assert "1 user or station of corp is locked out after failures." in text_of(await admin.get("/"))
    (where,) = set(re.findall(r'href="(/lockouts/station[^"]*)"', (await admin.get("/lockouts")).text))
    assert "The station 02:00:00:00:00:01 is locked out since" in text_of(await admin.get(where.replace("&amp;", "&")))
    answer = await admin.send(where.replace("&amp;", "&"))
    assert "unlocked" in text_of(await admin.get(answer.headers["location"]))
    assert "No lock-out" in text_of(await admin.get("/lockouts"))


async def test_the_sessions_of_a_person_are_ended(site: Site, admin: Visitor) -> None:
    """The page before it lists each session, with and without the realm; the answer has the result of each."""
    await with_alice(site)
    async with running_nas(ack) as nas:
        client = await site.areas.client(f"{nas.address}/32", coa_port=nas.port)
        at = await device(site.areas, client, nas.address, NAS_IDENTIFIER=b"ap-1")
        for number, name in enumerate(("alice", "ALICE@corp", "alicia")):
            await session(site.areas, at, f"s{number}", USER_NAME=name)
        form = "/people/person/disconnect?user=alice"
        shown = text_of(await admin.get(form))
        assert "asked to end 2 live sessions" in shown
        assert "alicia" not in shown
        assert nas.requests == []
        done = text_of(await admin.send(form))
        assert "2 of 2 sessions done" in done
        assert "the device has ended it" in done
        assert len(nas.requests) == 2


async def test_an_auditor_cannot_unlock_or_enrol(site: Site) -> None:
    """An auditor sees the page of a person without the links of an operator."""
    await with_alice(site)
    await lock(site, "user", "alice", "alice")
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(Role.AUDITOR))
        page = await visitor.get(ALICE)
        assert "Locked out since" in text_of(page)
        assert "/unlock" not in page.text
        assert "/enrol" not in page.text
        assert "/bypass-codes" not in page.text


async def test_prompts_of_a_user_are_sent_again(site: Site, admin: Visitor) -> None:
    """Home, the list and the person's page say who gets no prompt. An operator ends the pause."""
    await with_alice(site)
    denials = site.areas.app.factors.denials
    await denials.deny(Denial(site.areas.domain, "alice", DeniedAt.PROVIDER))
    assert "1 user of corp gets no prompt now" in text_of(await admin.get("/"))
    assert "alice not me" in text_of(await admin.get("/prompt-pauses"))
    assert "No prompt until 2026-01-01 00:10:00 UTC , after “not me”" in text_of(await admin.get(ALICE))
    assert "Somebody else may have the password" in text_of(await admin.get("/people/person/prompts?user=alice"))
    answer = await admin.send("/people/person/prompts?user=alice")
    assert "alice: prompts of alice resumed" in text_of(await admin.get(answer.headers["location"]))
    assert "No pause" in text_of(await admin.get("/prompt-pauses"))
    assert "may get prompts now" in text_of(await admin.get("/people/person/prompts?user=alice"))


async def test_a_user_who_is_locked_after_not_me(site: Site, admin: Visitor) -> None:
    """The setting of the domain is a choice of its form. The page of the person does not name the year 9999."""
    await with_alice(site)
    await admin.send(f"/domains/{site.areas.domain}/settings", {"name": "corp", "not_me": "yes"})
    assert site.areas.domains.table.present(site.areas.domain).lock_on_not_me
    await site.areas.app.factors.denials.deny(Denial(site.areas.domain, "alice", DeniedAt.PROVIDER))
    for page in (ALICE, "/people/person/unlock?user=alice"):
        text = text_of(await admin.get(page))
        assert "until an operator unlocks the user" in text
        assert "9999" not in text
    await admin.send("/people/person/unlock?user=alice")
    assert "ocked out since" not in text_of(await admin.get(ALICE))
    assert "No prompt until" not in text_of(await admin.get(ALICE))
