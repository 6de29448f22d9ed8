"""Enrolment links that a challenge shows: who gets one, what it permits, and attacks by people with the password."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sallyport.areas.factors.bypass_codes.code import Wanted
from sallyport.areas.factors.denials import Denial, DeniedAt
from sallyport.areas.factors.enrolment.challenge import LIFE_US
from sallyport.areas.mfa.circuit import Attached, Guarded
from sallyport.areas.mfa.own import MAX_ADDRESS
from sallyport.areas.mfa.provider import Answer, Code, Outcome
from sallyport.base.errors import Invalid
from tests.areas import Areas, SetClock
from tests.areas.factors.authenticator import ORIGIN, Authenticator
from tests.areas.factors.people import Browser, running_site
from tests.areas.factors.stepups import question
from tests.areas.factors.test_me import DONE, actions, enrolled, link
from tests.areas.mfa.host import make_host

NOTHING = Code("")


@pytest.fixture
async def site(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """Yield a site with the users ann and bob, whose domain shows links."""
    async with running_site(tmp_path, clock) as areas:
        await areas.add_user(areas.domain, "bob", b"hello")
        await areas.providers.set(areas.domain, "own", {"enrolByChallenge": "true"}, 60)
        yield areas


def provider(site: Areas) -> Guarded:
    """Return the provider of the domain."""
    found = site.providers.of(site.domain)
    assert isinstance(found, Attached)
    return found.provider


async def offered(site: Areas, number: int = 1, user: str = "ann") -> str | None:
    """Return the link that a login of a user gets."""
    return await site.app.factors.challenge_links.offer(question(site, number, user=user))


async def started(site: Areas, number: int = 1) -> Answer:
    """Return the answer to a login of ann."""
    return await provider(site).start(question(site, number), deadline_s=5)


async def test_a_person_enrols_and_logs_in(site: Areas) -> None:
    """The challenge has a short link. After the passkey is added, Enter at the same prompt opens the page. The next
    login gets no link."""
    first = await started(site)
    address = first.text.split()[8]
    assert first.outcome is Outcome.CODE and address.startswith(f"{ORIGIN}/me/enrol/")
    assert len(address) <= MAX_ADDRESS and len(first.text) <= 253
    assert (await provider(site).verify(question(site), NOTHING, first.handle, deadline_s=5)).outcome is (
        Outcome.NOT_ENROLLED
    )
    browser = Browser(site)
    await browser.open_link(address)
    assert DONE in await browser.add_passkey(Authenticator())
    after = await provider(site).verify(question(site), NOTHING, first.handle, deadline_s=5)
    assert after.outcome is Outcome.CODE and "/mfa/" in after.text
    assert "/mfa/" in (await started(site, 2)).text
    assert await actions(site) == [
        ("user.enrol", "service"),
        ("user.sign-in", "public"),
        ("user.passkey.add", "person"),
    ]


async def test_a_code_is_typed_in_any_form(site: Areas) -> None:
    """A person may type the address on the phone in small letters, with a hyphen."""
    address = await offered(site)
    assert address is not None
    code = address.rpartition("/")[2].lower()
    browser = Browser(site)
    assert "Add a passkey" in await browser.open_link(f"/me/enrol/{code[:5]}-{code[5:]}")


@pytest.mark.parametrize("factor", ["passkey", "a passkey of a former host", "app", "bypass code"])
async def test_a_person_with_any_factor_gets_no_link(site: Areas, factor: str) -> None:
    """Whether the domain accepts the factor or not."""
    if factor == "bypass code":
        await site.app.factors.bypass_codes.make(site.domain, "ann", Wanted())
    elif factor == "app":
        browser = Browser(site)
        await browser.open_link(await link(site))
        await browser.add_app()
    else:
        await enrolled(site)
    if factor == "a passkey of a former host":
        await site.store.write(lambda tx: tx.execute("update passkeys set rp_id = 'former.example'"))
    accepted = "passkey" if factor in ("app", "bypass code") else "totp"
    await site.providers.set(site.domain, "own", {"enrolByChallenge": "true", "factors": accepted}, 60)
    assert await offered(site) is None
    assert (await started(site)).outcome is Outcome.NOT_ENROLLED
    assert await offered(site, 2, "bob") is not None


async def test_a_link_of_an_attacker_ends_with_the_first_factor(site: Areas) -> None:
    """An attacker with the password gets a link, and keeps its page open while ann enrols by her own sign-in. It adds
    no second passkey to her account."""
    ann = Browser(site)
    await ann.open_link(await link(site))
    stolen = await offered(site)
    assert stolen is not None
    attacker = Browser(site, "198.51.100.66")
    await attacker.post(stolen.removeprefix(ORIGIN))
    assert DONE in await ann.add_passkey(Authenticator())
    assert "link has ended" in await attacker.post(stolen.removeprefix(ORIGIN), password="correct horse")
    assert "Sign in" in await attacker.get()


async def test_a_link_is_of_its_person_and_tenant(site: Areas) -> None:
    """The password of bob opens no link of ann. The link of another domain with the same name is another one."""
    other = await site.domains.add(site.tenant, "branch")
    address = await offered(site)
    assert address is not None
    browser = Browser(site)
    assert "password is wrong" in await browser.open_link(address, "hello")
    sql = "select domain_id, user_name, state, wrong from enrolment_links"
    assert await site.store.read(lambda tx: tx.rows(sql)) == [(site.domain, "ann", "shown", 1)]
    assert await site.app.me.links.not_enrolled(other, "", 0, 10) == ([], 0)


async def test_a_link_expires_and_works_once(site: Areas) -> None:
    """A new one replaces it."""
    first, second = await offered(site), await offered(site, 2)
    assert first is not None and second is not None and first != second
    assert "not valid" in await Browser(site).open_link(first)
    site.clock.now += LIFE_US
    assert "not valid" in await Browser(site).open_link(second)
    third = await offered(site, 3)
    assert third is not None
    assert "Add a passkey" in await Browser(site).open_link(third)
    assert "not valid" in await Browser(site).open_link(third)


async def test_an_open_link_of_an_operator_stays(site: Areas) -> None:
    """An attacker with the password must not end it."""
    given = await link(site)
    assert await offered(site) is None
    assert (await started(site)).outcome is Outcome.NOT_ENROLLED
    assert "Add a passkey" in await Browser(site).open_link(given)


async def test_no_link_after_not_me(site: Areas) -> None:
    """The person gets no prompt, and so no link, and an open one ends."""
    address = await offered(site)
    assert address is not None
    await site.app.factors.denials.deny(Denial(site.domain, "ann", DeniedAt.OWN_PAGES))
    assert await offered(site, 2) is None
    assert "not valid" in await Browser(site).open_link(address)


async def test_no_link_that_cannot_check_the_password(site: Areas) -> None:
    """A page of a domain whose first factor is `none` checks no passwords."""
    await site.store.write(lambda tx: tx.execute("update domains set first_factor = 'none'"))
    assert await offered(site) is None


async def test_no_link_for_an_administrator(site: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """The factors of an administrator need the role admin."""
    monkeypatch.setattr(site.app.users.administrators, "_names", lambda _tx, _domain: frozenset({"ann"}))
    assert await offered(site) is None
    assert await offered(site, 2, "bob") is not None


async def test_it_is_off_by_default_and_needs_a_prompt(site: Areas) -> None:
    """A device that shows no challenge refuses the login, and no link is made."""
    silent = question(site)
    object.__setattr__(silent, "takes_codes", False)
    assert (await provider(site).start(silent, deadline_s=5)).outcome is Outcome.NOT_ENROLLED
    site.clock.now += 1
    await site.providers.set(site.domain, "own", {}, 60)
    assert (await started(site)).outcome is Outcome.NOT_ENROLLED
    assert await site.store.read(lambda tx: tx.rows("select id from enrolment_links")) == []


async def test_what_makes_no_sense_is_refused(site: Areas) -> None:
    """The message says why."""
    for factors, text in (("bypass", "people add by a link: passkey, totp"), ("passkey,oidc", "must be false")):
        fields = {"enrolByChallenge": "true", "factors": factors, "issuer": "https://idp.example", "clientId": "x",
                  "clientSecret": "y"}  # fmt: skip
        with pytest.raises(Invalid) as refused:
            await site.providers.set(site.domain, "own", fields, 60)
        assert text in refused.value.fields[0].message
    links = site.app.factors.challenge_links
    links._site = f"https://{'h' * 40}.example"
    with pytest.raises(Invalid) as refused:
        await site.providers.set(site.domain, "own", {"enrolByChallenge": "true"}, 60)
    assert "shorten public_url" in refused.value.fields[0].message


async def test_a_service_without_pages_makes_none() -> None:
    """Its provider asks nobody."""
    assert await make_host().enrolments.offer(None) is None  # type: ignore[arg-type]


async def test_a_removed_domain(site: Areas) -> None:
    """A login that was under way gets no link."""
    asked = question(site)
    await site.removal.remove(site.domain)
    assert await site.app.factors.challenge_links.offer(asked) is None
