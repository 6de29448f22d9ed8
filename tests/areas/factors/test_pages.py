"""The pages `/mfa` and `/mfa/CODE`: what they show and change, the proofs, and attacks on each."""

from dataclasses import replace

import pytest
import trio
from pyotp import TOTP

from sallyport.areas.factors.pages.mfa import MAX_FORMS, NOT_VALID
from sallyport.areas.factors.stepup.limits import WRONG_CODES, WRONG_CODES_OF_ALL
from sallyport.areas.factors.stepup.stepup import LIFE_US, MAX_WRONG, plain
from sallyport.areas.mfa.fields import Binding, OwnFields
from sallyport.areas.mfa.host import StepUpState as State
from sallyport.areas.mfa.provider import Code, Strength
from sallyport.base.clock import SECOND
from tests.areas import Areas
from tests.areas.factors.pages import BYPASS, SEED, digits_of, options_of, register, site_of, text_of
from tests.areas.factors.stepups import ELSEWHERE, opened, question

CODE, ADDRESS, UNBOUND = (OwnFields(binding=each) for each in Binding)
HOSTILE = "<script>alert(1)</script>'\"&\u202e</bdi>"


def app_code(areas: Areas, off_s: int = 0) -> str:
    """Return the present code of the app."""
    return TOTP(SEED).at(areas.clock() // SECOND + off_s)


async def test_get_looks_nothing_up_and_changes_nothing(areas: Areas) -> None:
    """The page of a link is the same for every code but for the code itself. It sets no cookie, and binds nothing."""
    site = site_of(areas)
    code = plain((await opened(site.stepups, question(areas))).code)
    before = await areas.store.read(lambda tx: tx.rows("select * from stepups"))
    async with site.browser() as browser:
        good, wrong = await browser.get(f"/mfa/{code}"), await browser.get("/mfa/ABCDE23456")
        form = await browser.get("/mfa")
    assert (good.status_code, wrong.status_code, form.status_code) == (200, 200, 200)
    assert good.text.replace(code, "ABCDE23456") == wrong.text and good.headers.keys() == wrong.headers.keys()
    assert (
        "set-cookie" not in good.headers
        and await areas.store.read(lambda tx: tx.rows("select * from stepups")) == before
    )


async def test_a_mail_scanner_leaves_the_page_to_the_person(areas: Areas) -> None:
    """After a GET and a HEAD of another program, the person opens the page."""
    site = site_of(areas)
    page = await opened(site.stepups, question(areas))
    async with site.browser(ELSEWHERE) as scanner, site.browser() as ann:
        for method in ("GET", "HEAD"):
            assert (await scanner.client.request(method, f"/mfa/{plain(page.code)}")).status_code == 200
        assert "vpn-1" in text_of(await ann.send(code=page.code))


@pytest.mark.parametrize("in_address", [True, False], ids=["link", "typed code"])
async def test_the_page_names_the_login(areas: Areas, in_address: bool) -> None:
    """The page shows account, device, place, address and time, and the factors of the person."""
    site = site_of(areas)
    await register(areas, site.passkeys)
    page = await opened(site.stepups, question(areas))
    async with site.browser() as browser:
        if in_address:
            form = {"sec-fetch-site": "same-origin"}
            shown = await browser.client.post(f"/mfa/{plain(page.code)}", data={"do": ""}, headers=form)
        else:
            shown = await browser.send(code=f" {page.code.lower()} ")
    text = text_of(shown)
    assert shown.status_code == 200 and "Is this your login?" in text
    assert (
        "Account ann Logs in at vpn-1 ( 192.0.2.7 ) Place Berlin From 198.51.100.7 Time 2026-01-01 00:00:00 UTC" in text
    )
    assert "Use a passkey" in text and "Confirm with the app" in text and "Confirm with the code" in text
    assert "This is not me" in text


async def test_a_passkey_shows_the_digits(areas: Areas) -> None:
    """After the passkey, the page shows the digits that the user types at the device. A reload shows them again."""
    site = site_of(areas)
    device = await register(areas, site.passkeys)
    asked = question(areas)
    page = await opened(site.stepups, asked, CODE)
    async with site.browser() as browser:
        shown = await browser.send(code=page.code)
        done = await browser.send(code=page.code, do="passkey", credential=device.get(options_of(shown)))
        again = await browser.send(code=page.code)
    assert done.status_code == 200 and len(digits_of(done)) == 6 and digits_of(again) == digits_of(done)
    assert await site.stepups.state_of(asked.challenge_id, within_s=0) == (State.PROVEN, Strength.TWO_CHANNELS)
    assert await site.stepups.check_digits(asked.challenge_id, Code(digits_of(done)))


async def test_the_forms_of_an_open_page_need_its_cookie(areas: Areas) -> None:
    """The page names the login by its id. Another browser that sends this id gets what an unknown code gets."""
    site, asked = site_of(areas), question(areas)
    page = await opened(site.stepups, asked, UNBOUND)
    async with site.browser() as browser, site.browser() as other:
        shown = await browser.send(code=page.code)
        assert f'name="login" value="{asked.challenge_id}"' in shown.text and plain(page.code) not in shown.text
        wanted = {"login": asked.challenge_id, "answer": app_code(areas)}
        refused = [await other.send(**wanted, do=do) for do in ("totp", "deny", "")]
        unknown = await other.send(code="ABCDE23456")
        done = await browser.send(**wanted, do="totp")
    assert {(each.status_code, each.text) for each in refused} == {(404, unknown.text)}
    assert "return to your device" in text_of(done)


@pytest.mark.parametrize("factor", ["totp", "bypass"])
async def test_typed_codes_prove_once(areas: Areas, factor: str) -> None:
    """A code of the app and a bypass code prove a login, and no second one."""
    site = site_of(areas)
    answer = app_code(areas) if factor == "totp" else BYPASS
    one, two = question(areas), question(areas, 2)
    first, second = await opened(site.stepups, one, UNBOUND), await opened(site.stepups, two, UNBOUND)
    async with site.browser() as browser:
        await browser.send(code=first.code)
        done = await browser.send(code=first.code, do=factor, answer=answer)
        await browser.send(code=second.code)
        refused = await browser.send(code=second.code, do=factor, answer=answer)
    assert done.status_code == 200 and "You can return to your device" in text_of(done)
    assert refused.status_code == 400 and "You have 2 tries left" in text_of(refused)
    assert (await site.stepups.state_of(one.challenge_id, within_s=0))[0] is State.PROVEN
    assert (await site.stepups.state_of(two.challenge_id, within_s=0))[0] is State.OPEN


async def test_three_wrong_codes_end_the_login(areas: Areas) -> None:
    """The third wrong code ends the login. A right one after it changes nothing."""
    site, asked = site_of(areas), question(areas)
    page = await opened(site.stepups, asked)
    wrong = "000000" if app_code(areas) != "000000" else "000001"
    async with site.browser() as browser:
        await browser.send(code=page.code)
        answers = [await browser.send(code=page.code, do="totp", answer=wrong) for _ in range(MAX_WRONG)]
        late = await browser.send(code=page.code, do="totp", answer=app_code(areas))
    assert [each.status_code for each in answers] == [400] * MAX_WRONG
    assert "It was the last try" in text_of(answers[-1]) and "too many attempts were wrong" in text_of(late)
    assert (await site.stepups.state_of(asked.challenge_id, within_s=0))[0] is State.WRONG
    assert site.seeds.spent == []


async def test_simultaneous_guesses_are_counted_before_they_are_checked(areas: Areas) -> None:
    """Of twenty guesses at once at two nodes, three are checked."""
    site, other = site_of(areas), site_of(areas)
    page = await opened(site.stepups, question(areas))
    async with site.browser() as one, other.browser() as two:
        await one.send(code=page.code)
        two.client.cookies.update(one.client.cookies)
        statuses = list[int]()

        async def guess(number: int) -> None:
            sender = (one, two)[number % 2]
            statuses.append((await sender.send(code=page.code, do="totp", answer=f"00000{number}")).status_code)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(guess, number)
    assert statuses.count(400) == MAX_WRONG and len(statuses) == 20


async def test_not_me_refuses_the_login(areas: Areas) -> None:
    """The login is refused, and a proof after it changes nothing."""
    site, asked = site_of(areas), question(areas)
    page = await opened(site.stepups, asked)
    async with site.browser() as browser:
        await browser.send(code=page.code)
        denied = await browser.send(code=page.code, do="deny")
        late = await browser.send(code=page.code, do="totp", answer=app_code(areas))
    assert "Login refused" in text_of(denied) and "This is not me" not in text_of(denied)
    assert "It is refused" in text_of(late) and site.seeds.spent == []
    assert (await site.stepups.state_of(asked.challenge_id, within_s=0))[0] is State.DENIED


async def test_not_me_after_the_login_has_continued(areas: Areas) -> None:
    """The page says that it is too late for a refusal, and what to do."""
    site, asked = site_of(areas), question(areas)
    page = await opened(site.stepups, asked, UNBOUND)
    async with site.browser() as browser:
        await browser.send(code=page.code)
        await browser.send(code=page.code, do="totp", answer=app_code(areas))
        assert await site.stepups.use(asked.challenge_id) is State.USED
        denied = await browser.send(code=page.code, do="deny")
    assert "The login has continued already" in text_of(denied)


@pytest.mark.parametrize("is_late", [False, True], ids=["in time", "expired"])
async def test_not_me_without_a_checked_password(areas: Areas, is_late: bool) -> None:
    """The page blames no password, tells nobody, and the person gets the next page at once."""
    site, asked = site_of(areas), replace(question(areas), is_checked=False)
    page = await opened(site.stepups, asked)
    async with site.browser() as browser:
        shown = await browser.send(code=page.code)
        areas.clock.pass_by(LIFE_US / SECOND * is_late)
        denied = await browser.send(code=page.code, do="deny")
    assert "somebody has typed your name" in text_of(shown)
    assert "Login refused" in text_of(denied)
    assert "password" not in text_of(shown) + text_of(denied) and "administrator" not in text_of(denied)
    assert (await site.stepups.state_of(asked.challenge_id, within_s=0))[0] is State.DENIED
    assert await site.stepups.paused(areas.domain, "ann") == ""
    await opened(site.stepups, replace(question(areas, 2), is_checked=False))


# --- codes that open no page ----------------------------------------------------------------------------------------


async def test_codes_that_open_nothing_look_alike(areas: Areas) -> None:
    """A code that is unknown, malformed, over, or opened by another browser has the same status, text and headers."""
    site = site_of(areas)
    over = await opened(site.stepups, question(areas, 1))
    await site.stepups.end(question(areas, 1).challenge_id)
    late = await opened(site.stepups, replace(question(areas, 2), expires_at=areas.clock() + SECOND))
    areas.clock.pass_by(2)
    foreign = await opened(site.stepups, question(areas, 3))
    async with site.browser() as ann, site.browser(ELSEWHERE) as other:
        await ann.send(code=foreign.code)
        await other.send(code="")  # sets the cookie
        answers = [
            await other.send(code=each, **more)
            for each in ("ABCDE23456", "", "x" * 100, over.code, late.code, foreign.code)
            for more in ({}, {"do": "totp", "answer": app_code(areas)}, {"do": "deny"})
        ]
    assert {each.status_code for each in answers} == {404}
    assert {each.text for each in answers} == {answers[0].text} and NOT_VALID in text_of(answers[0])
    for each in answers:
        del each.headers["x-request-id"]  # a new one for each request
    assert {str(sorted(each.headers.items())) for each in answers} == {str(sorted(answers[0].headers.items()))}
    assert site.seeds.spent == []


async def test_a_login_that_is_over_says_so_to_its_browser(areas: Areas) -> None:
    """The browser that has opened the page sees that the login is over."""
    site = site_of(areas)
    page = await opened(site.stepups, question(areas))
    async with site.browser() as browser:
        await browser.send(code=page.code)
        areas.clock.pass_by(LIFE_US / SECOND)
        late = await browser.send(code=page.code, do="totp", answer=app_code(areas))
        denied = await browser.send(code=page.code, do="deny")
    assert "Your administrator is told" in text_of(denied)
    assert "This login is over" in text_of(late) and "Confirm with" not in text_of(late) and site.seeds.spent == []


@pytest.mark.parametrize(("one", "other"), [("203.0.113.9", "203.0.113.9"), ("2001:db8::1", "2001:db8::ffff")])
async def test_wrong_codes_of_an_address_are_limited(areas: Areas, one: str, other: str) -> None:
    """An address, or /64 network, that has sent too many wrong codes gets no page. Others do, and later it does too."""
    site = site_of(areas)
    page = await opened(site.stepups, question(areas))
    async with site.browser(one) as guesser, site.browser(other) as neighbour, site.browser() as ann:
        statuses = [(await guesser.send(code="ABCDE23456")).status_code for _ in range(WRONG_CODES)]
        refused = await neighbour.send(code=page.code)
        shown = await ann.send(code=page.code)
    assert set(statuses) == {404} and (refused.status_code, shown.status_code) == (429, 200)
    assert "too many wrong codes" in text_of(refused)


async def test_wrong_codes_of_all_addresses_are_limited(areas: Areas) -> None:
    """Many addresses together cannot guess faster."""
    site = site_of(areas)
    for number in range(WRONG_CODES_OF_ALL):
        site.stepups._guesses.fail(f"10.{number >> 8}.{number & 255}.1")
    page = await opened(site.stepups, question(areas))
    async with site.browser("10.117.47.1") as browser:
        assert (await browser.send(code=page.code)).status_code == 429


async def test_guesses_of_others_do_not_close_an_open_page(areas: Areas) -> None:
    """The browser that has opened the page can prove the login, however many wrong codes arrive."""
    site = site_of(areas)
    page = await opened(site.stepups, question(areas), UNBOUND)
    async with site.browser() as browser:
        await browser.send(code=page.code)
        for _ in range(WRONG_CODES):
            await browser.send(code="ABCDE23456")
        assert (await browser.send(code="ABCDE23456")).status_code == 429
        done = await browser.send(code=page.code, do="totp", answer=app_code(areas))
    assert "return to your device" in text_of(done)


async def test_the_forms_of_a_login_are_limited(areas: Areas) -> None:
    """A person with one code cannot keep the service busy. Another login of the same browser has its own limit."""
    site = site_of(areas)
    one, two = await opened(site.stepups, question(areas)), await opened(site.stepups, question(areas, 2))
    async with site.browser() as browser:
        statuses = [(await browser.send(code=one.code)).status_code for _ in range(MAX_FORMS + 1)]
        other = await browser.send(code=two.code)
    assert (set(statuses[:-1]), statuses[-1], other.status_code) == ({200}, 429, 200)
