"""Attacks on an open page of a login: relayed links, passkeys of others, texts of packets and forms, and the log."""

import re
from dataclasses import replace

import pytest
from pyotp import TOTP
from structlog.testing import capture_logs

from sallyport.areas.factors.pages.mfa import NO_FACTOR
from sallyport.areas.factors.stepup.stepup import MAX_WRONG, plain
from sallyport.areas.mfa.fields import Binding, OwnFields
from sallyport.areas.mfa.host import StepUpState as State
from sallyport.base.clock import SECOND
from tests.areas import Areas
from tests.areas.factors.pages import BYPASS, SEED, digits_of, options_of, register, site_of, text_of
from tests.areas.factors.stepups import ELSEWHERE, STATION, node, opened, question

CODE, ADDRESS, UNBOUND = (OwnFields(binding=each) for each in Binding)
HOSTILE = "<script>alert(1)</script>'\"&\u202e</bdi>"


def app_code(areas: Areas, off_s: int = 0) -> str:
    """Return the present code of the app."""
    return TOTP(SEED).at(areas.clock() // SECOND + off_s)


async def test_a_relayed_link_shows_where_the_login_is(areas: Areas) -> None:
    """With the binding `address`, a victim at another address cannot prove the login of the attacker."""
    site, asked = site_of(areas), question(areas)
    page = await opened(site.stepups, asked, ADDRESS)
    async with site.browser(ELSEWHERE) as victim, site.browser() as ann:
        shown = await victim.send(code=page.code)
        proof = await victim.send(code=page.code, do="totp", answer=app_code(areas))
        own = await ann.send(code=page.code, do="totp", answer=app_code(areas))
    assert all("does not have the address of the device" in text_of(each) for each in (shown, proof))
    assert "Confirm with" not in text_of(shown)
    assert "You can return to your device" in text_of(own)


async def test_the_victim_of_a_relayed_link_can_deny_the_login(areas: Areas) -> None:
    """The page of a person at another address has the button, which needs no bound browser. All logins of ann end."""
    site, asked, other = site_of(areas), question(areas), question(areas, 2)
    page = await opened(site.stepups, asked, ADDRESS)
    await opened(site.stepups, other, ADDRESS)
    async with site.browser(ELSEWHERE) as victim:
        shown = await victim.send(code=page.code)
        assert f'name="code" value="{page.code}"' in shown.text and "This is not me" in text_of(shown)
        denied = await victim.send(code=page.code, do="deny")
    assert denied.status_code == 200 and "Your administrator is told" in text_of(denied)
    for each in (asked, other):
        assert (await site.stepups.state_of(each.challenge_id, within_s=0))[0] is State.DENIED
    pause = await areas.app.factors.pauses.read((areas.domain, "ann"))
    assert areas.app.factors.pauses.is_paused(pause)


async def test_another_browser_than_that_of_the_page_cannot_deny(areas: Areas) -> None:
    """The page says nothing of an administrator, because nothing was stored."""
    site, asked = site_of(areas), question(areas)
    page = await opened(site.stepups, asked, ADDRESS)
    async with site.browser() as ann, site.browser(ELSEWHERE) as other:
        login = re.search(r'name="login" value="([^"]+)"', (await ann.send(code=page.code)).text)
        assert login is not None
        answers = [await other.send(code=page.code, do="deny"), await other.send(login=login[1], do="deny")]
    assert {each.status_code for each in answers} == {404}
    assert not any("administrator is told" in text_of(each) for each in answers)
    assert (await site.stepups.state_of(asked.challenge_id, within_s=0))[0] is State.OPEN


async def test_the_address_may_change_until_the_proof(areas: Areas) -> None:
    """A proof from another address than the station's ends the login, even by the browser of the page."""
    site, asked = site_of(areas), question(areas)
    page = await opened(site.stepups, asked, ADDRESS)
    async with site.browser() as browser, site.browser(ELSEWHERE) as moved:
        await browser.send(code=page.code)
        moved.client.cookies.update(browser.client.cookies)
        proof = await moved.send(code=page.code, do="totp", answer=app_code(areas))
    assert proof.status_code == 403 and "another address" in text_of(proof)
    assert (await site.stepups.state_of(asked.challenge_id, within_s=0))[0] is State.UNBOUND


async def test_a_passkey_of_another_login_proves_nothing(areas: Areas) -> None:
    """An assertion for another login, a replayed one, and one of another person are refused. The page may try again."""
    site = site_of(areas)
    ann, bob = await register(areas, site.passkeys), await register(areas, site.passkeys, "bob")
    one, two = await opened(site.stepups, question(areas)), await opened(site.stepups, question(areas, 2))
    async with site.browser() as browser:
        first, second = await browser.send(code=one.code), await browser.send(code=two.code)
        other = await browser.send(code=one.code, do="passkey", credential=ann.get(options_of(second)))
        foreign = await browser.send(code=one.code, do="passkey", credential=bob.get(options_of(other)))
        good = ann.get(options_of(foreign))
        done = await browser.send(code=one.code, do="passkey", credential=good)
        replayed = await browser.send(code=two.code, do="passkey", credential=good)
    assert first.status_code == 200
    assert {each.status_code for each in (other, foreign, replayed)} <= {400, 409} and digits_of(done)
    assert not digits_of(replayed) and "Use a passkey" in text_of(replayed)


@pytest.mark.parametrize(
    ("origin", "host"),
    [("https://vpn.example.org.evil.test", "vpn.example.org"), ("https://vpn.example.org", "example.org")],
    ids=["wrong origin", "wrong rpId"],
)
async def test_a_passkey_of_another_page_proves_nothing(areas: Areas, origin: str, host: str) -> None:
    """A phishing page can ask for no passkey of this service."""
    site, asked = site_of(areas), question(areas)
    device = await register(areas, site.passkeys)
    device.origin, device.host = origin, host
    page = await opened(site.stepups, asked)
    async with site.browser() as browser:
        shown = await browser.send(code=page.code)
        refused = await browser.send(code=page.code, do="passkey", credential=device.get(options_of(shown)))
    assert refused.status_code == 400 and not digits_of(refused)
    assert (await site.stepups.state_of(asked.challenge_id, within_s=0))[0] is State.OPEN


async def test_without_javascript_the_page_says_what_is_missing(areas: Areas) -> None:
    """The form of the passkey without a response explains itself, and costs no try."""
    site = site_of(areas)
    await register(areas, site.passkeys)
    page = await opened(site.stepups, question(areas))
    async with site.browser() as browser:
        await browser.send(code=page.code)
        answers = [await browser.send(code=page.code, do="passkey", credential="") for _ in range(MAX_WRONG + 1)]
    assert {each.status_code for each in answers} == {400} and "need JavaScript" in text_of(answers[-1])


@pytest.mark.parametrize("do", ["oidc", "mail", "nothing", "<b>"])
async def test_a_factor_that_is_not_offered_is_refused(areas: Areas, do: str) -> None:
    """A form for another factor changes nothing."""
    site, asked = site_of(areas, "totp"), question(areas)
    page = await opened(site.stepups, asked)
    async with site.browser() as browser:
        await browser.send(code=page.code)
        refused = await browser.send(code=page.code, do=do, answer=BYPASS, credential="{}")
    assert refused.status_code == 400 and "<b>" not in refused.text
    assert (await site.stepups.state_of(asked.challenge_id, within_s=0))[0] is State.OPEN


async def test_a_person_without_a_factor_sees_why(areas: Areas) -> None:
    """The page says that the person has no factor that the login accepts, and still offers to refuse it."""
    site = site_of(areas, "totp")
    page = await opened(site.stepups, question(areas), OwnFields(factors="passkey"))
    async with site.browser() as browser:
        shown = text_of(await browser.send(code=page.code))
    assert NO_FACTOR in shown and "This is not me" in shown


async def test_a_passkey_that_cannot_be_used_leaves_the_other_factors(areas: Areas) -> None:
    """If the passkeys of the person cannot be asked, the page says why and offers the app."""
    site = site_of(areas)
    page = await opened(site.stepups, question(areas))  # the store has no passkey
    async with site.browser() as browser:
        shown = text_of(await browser.send(code=page.code))
    assert "has no passkey for this service" in shown and "Confirm with the app" in shown


@pytest.mark.parametrize("name", ["user", "device", "place", "source", "address"])
async def test_texts_of_packets_are_escaped(areas: Areas, name: str) -> None:
    """No text of a packet becomes markup, or turns the direction of the texts beside it."""
    site = site_of(areas, "totp")
    asked = replace(question(areas), **{name: HOSTILE})  # type: ignore[arg-type]
    page = await opened(site.stepups, asked, UNBOUND)
    async with site.browser() as browser:
        shown = await browser.send(code=page.code)
    escaped = "&lt;script&gt;alert(1)&lt;/script&gt;&#39;&#34;&amp;\u202e&lt;/bdi&gt;"
    assert f"<bdi>{escaped}</bdi>" in shown.text and "<script>" not in shown.text


@pytest.mark.parametrize("field", ["code", "do", "answer", "credential"])
async def test_texts_of_forms_are_escaped(areas: Areas, field: str) -> None:
    """No text of a form or address becomes markup."""
    site = site_of(areas, "totp")
    page = await opened(site.stepups, question(areas))
    async with site.browser() as browser:
        link = await browser.get("/mfa/%22%3E%3Cscript%3E")
        shown = await browser.send(**{"code": page.code, "do": "totp", field: f'">{HOSTILE}'})
    assert "<script>" not in shown.text + link.text


async def test_no_code_is_in_log_or_metrics(areas: Areas) -> None:
    """Neither the code of a login nor the codes that prove it are logged or measured."""
    site = site_of(areas)
    page = await opened(site.stepups, question(areas))
    with capture_logs() as logged:
        async with site.browser() as browser:
            await browser.get(f"/mfa/{plain(page.code)}")
            await browser.send(code=page.code)
            done = await browser.send(code=page.code, do="totp", answer=app_code(areas))
    text = repr(logged) + repr(site.measured)
    assert not {page.code, plain(page.code), app_code(areas), digits_of(done)} & set(text.split("'")) and logged
    assert [route for _, route, _ in site.measured] == ["/mfa/{code}", "/mfa", "/mfa"]


async def test_two_nodes_show_the_same_page(areas: Areas) -> None:
    """A proxy may send each request to another node: the page is bound to the browser at all of them."""
    site, other = site_of(areas), site_of(areas)
    page = await opened(node(areas), question(areas), UNBOUND)
    async with site.browser() as one, other.browser() as two, other.browser(STATION) as stranger:
        await one.send(code=page.code)
        two.client.cookies.update(one.client.cookies)
        assert (await stranger.send(code=page.code)).status_code == 404
        assert "return to your device" in text_of(await two.send(code=page.code, do="totp", answer=app_code(areas)))
        assert "return to your device" in text_of(await one.send(code=page.code))
