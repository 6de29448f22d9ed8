"""A code by mail on the pages of step-ups: to the right person, with a limit, and for one login."""

import re
from dataclasses import dataclass, field, replace

import pytest

from sallyport.areas.factors.pages.mail import MailFactor, masked
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.stepup.stepup import MAX_CODE_MAILS, MAX_MAILS_OF_PERSON, MAX_WRONG
from sallyport.areas.mfa.fields import OwnFields
from sallyport.areas.mfa.host import StepUpState as State
from sallyport.areas.mfa.provider import Strength
from sallyport.base.errors import TooMany
from tests.areas import Areas
from tests.areas.factors.pages import Site, site_of, text_of
from tests.areas.factors.stepups import opened, question

OWN = OwnFields(factors="mail")


@dataclass
class Mails:
    """The mail of a service. sent: (tenant, address, text) of each mail. is_full: whether the queue is full."""

    is_on: bool = True
    is_full: bool = False
    sent: list[tuple[int, str, str]] = field(default_factory=list)

    def send(self, tenant_id: int, to: str, subject: str, text: str) -> None:
        """Keep a mail."""
        if self.is_full:
            raise TooMany("too many mails wait")
        self.sent.append((tenant_id, to, text))

    async def deliver(self, tenant_id: int, to: str, subject: str, text: str) -> None:
        """Keep a mail."""
        self.send(tenant_id, to, subject, text)

    @property
    def code(self) -> str:
        """The code in the last mail."""
        return self.sent[-1][2][:6]


@dataclass
class Bench:
    """The pages with the factor. addresses: the mail addresses by user."""

    areas: Areas
    mails: Mails = field(default_factory=Mails)
    addresses: dict[str, str] = field(default_factory=lambda: {"ann": "ann@example.com"})

    def __post_init__(self) -> None:
        self.site: Site = site_of(self.areas, "totp")
        stepups, vault = self.site.stepups, self.areas.vault
        self.factor = MailFactor(self.mails, self.address, stepups, vault)
        self.site.pages.add(self.factor)
        stepups.offer("mail", self.factor.has)

    async def address(self, person: Person) -> str:
        """Return the address of a person."""
        return self.addresses.get(person.name, "")


@pytest.fixture
async def bench(areas: Areas) -> Bench:
    """Return a bench."""
    return Bench(areas)


async def test_the_code_of_the_mail_proves_the_login(bench: Bench) -> None:
    """The mail goes to the address of the directory, of which the page shows little. The code is the weakest proof."""
    asked = question(bench.areas)
    page = await opened(bench.site.stepups, asked, OWN)
    async with bench.site.browser() as browser:
        login = login_of((await browser.send(code=page.code)).text)
        sent = await browser.send(login=login, do="mail", send="1")
        assert "A code was sent to a…@example.com" in text_of(sent)
        assert bench.mails.code not in sent.text and "ann@" not in sent.text
        done = await browser.send(login=login, do="mail", answer=f" {bench.mails.code} ")
        assert (done.status_code, len(bench.mails.sent)) == (200, 1)
    tenant, to, text = bench.mails.sent[0]
    assert (tenant, to) == (bench.areas.tenant, "ann@example.com")
    assert "is the code for your login of 2026-01-01" in text and "at vpn-1." in text
    assert await bench.site.stepups.state_of(asked.challenge_id, within_s=0) == (State.PROVEN, Strength.ANY)


async def test_codes_cannot_be_guessed(bench: Bench) -> None:
    """Three wrong codes end the login. Mails are no tries. The code of another login is wrong."""
    one, two = question(bench.areas), question(bench.areas, 2)
    first, second = await opened(bench.site.stepups, one, OWN), await opened(bench.site.stepups, two, OWN)
    async with bench.site.browser() as browser:
        other = login_of((await browser.send(code=second.code)).text)
        await browser.send(login=other, do="mail", send="1")
        login = login_of((await browser.send(code=first.code)).text)
        for _ in range(MAX_CODE_MAILS):
            await browser.send(login=login, do="mail", send="1")
        right, wrong = bench.mails.code, bench.mails.sent[0][2][:6]
        assert right != wrong
        for _ in range(MAX_WRONG):
            assert (await browser.send(login=login, do="mail", answer=wrong)).status_code == 400
        await browser.send(login=login, do="mail", answer=right)
    assert (await bench.site.stepups.state_of(one.challenge_id, within_s=0))[0] is State.WRONG


async def test_a_login_sends_two_mails_at_most(bench: Bench) -> None:
    """Both have the same code. A third one is refused, and the page offers it no more."""
    page = await opened(bench.site.stepups, question(bench.areas), OWN)
    async with bench.site.browser() as browser:
        login = login_of((await browser.send(code=page.code)).text)
        answers = [await browser.send(login=login, do="mail", send="1") for _ in range(MAX_CODE_MAILS + 1)]
    assert [each.status_code for each in answers] == [*[200] * MAX_CODE_MAILS, 429]
    assert len({text for _, _, text in bench.mails.sent}) == 1 and len(bench.mails.sent) == MAX_CODE_MAILS
    assert "Send it again" not in answers[-1].text


async def test_texts_of_packets_do_not_fill_the_mail(bench: Bench) -> None:
    """The name of a device is cut, and has no line end and no address of a page."""
    asked = replace(question(bench.areas), device="vpn\r\nhttps://evil.example www.evil.com " + "x" * 500)
    page = await opened(bench.site.stepups, asked, OWN)
    async with bench.site.browser() as browser:
        login = login_of((await browser.send(code=page.code)).text)
        await browser.send(login=login, do="mail", send="1")
    first = bench.mails.sent[0][2].splitlines()[0]
    assert "at vpn https evil example www evil com xxx" in first and len(first) < 180


async def test_a_code_proves_nothing_before_it_was_sent(bench: Bench) -> None:
    """Otherwise an attacker could guess, and the person would get no mail about it."""
    asked = question(bench.areas)
    page = await opened(bench.site.stepups, asked, OWN)
    async with bench.site.browser() as browser:
        shown = await browser.send(code=page.code)
        login = login_of(shown.text)
        stepup = await bench.site.stepups.shown(login, browser.client.cookies[next(iter(browser.client.cookies))])
        assert stepup is not None
        refused = await browser.send(login=login, do="mail", answer=bench.factor._code(stepup))
    assert refused.status_code == 409 and "No code was sent" in text_of(refused)
    assert (await bench.site.stepups.state_of(asked.challenge_id, within_s=0))[0] is State.OPEN


async def test_a_person_gets_few_mails(bench: Bench) -> None:
    """Many logins of a person send MAX_MAILS_OF_PERSON mails in some minutes. Another person's logins do not count."""
    statuses = []
    async with bench.site.browser() as browser:
        for number in range(MAX_MAILS_OF_PERSON):
            asked = question(bench.areas, number)
            login = login_of((await browser.send(code=(await opened(bench.site.stepups, asked, OWN)).code)).text)
            for _ in range(MAX_CODE_MAILS):
                statuses.append((await browser.send(login=login, do="mail", send="1")).status_code)
            await bench.site.stepups.end(asked.challenge_id)
        bench.addresses["bob"] = "bob@example.com"
        page = await opened(bench.site.stepups, question(bench.areas, 99, user="bob"), OWN)
        login = login_of((await browser.send(code=page.code)).text)
        assert (await browser.send(login=login, do="mail", send="1")).status_code == 200
    assert statuses == [200] * MAX_MAILS_OF_PERSON + [429] * MAX_MAILS_OF_PERSON


async def test_only_people_with_an_address_have_the_factor(bench: Bench) -> None:
    """Without an address, or without an SMTP server, no person has the factor."""
    domain = bench.areas.domain
    assert [await bench.factor.has(Person(domain, each)) for each in ("ann", "eve")] == [True, False]
    bench.mails.is_on = False
    assert not await bench.factor.has(Person(domain, "ann"))


async def test_a_full_queue_is_named(bench: Bench) -> None:
    """The person may try again, or choose another factor."""
    bench.mails.is_full = True
    page = await opened(bench.site.stepups, question(bench.areas), OwnFields(factors="mail,totp"))
    async with bench.site.browser() as browser:
        login = login_of((await browser.send(code=page.code)).text)
        refused = await browser.send(login=login, do="mail", send="1")
    assert refused.status_code == 429 and "Too many mails wait" in text_of(refused)
    assert "Confirm with the app" in refused.text


@pytest.mark.parametrize(("address", "shown"), [("ann@a.org", "a…@a.org"), ("a@b", "a…@b"), ("", "…")])
def test_an_address_is_masked(address: str, shown: str) -> None:
    """A person recognises it, and a stranger learns little."""
    assert masked(address) == shown


def login_of(page: str) -> str:
    """Return the id of the login in the forms of a page."""
    found = re.search(r'name="login" value="([^"]+)"', page)
    assert found, page
    return found[1]
