"""Tests of the provider of the service's own factors: who gets a page, a code or mail, and what an event says."""

from dataclasses import replace

import pytest

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.mfa.fields import OwnFields
from sallyport.areas.mfa.own import BY_DIRECTORY, NO_WEB_MAIL, ONLY_OIDC, Own
from sallyport.areas.mfa.provider import Answer, Code, Outcome
from sallyport.base.errors import Invalid
from tests.areas import Areas
from tests.areas.directory.world import imported, person
from tests.areas.mfa.own_bench import Mailbox, OwnBench

NOTHING = Code("")
OIDC = {
    "factors": "oidc",
    "binding": "address",
    "issuer": "https://id.example.com",
    "clientId": "sallyport",
    "clientSecret": "a secret",
    "userIs": "directory_id",
}


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        ("passkey", "passkey"),
        ("oidc", "sign-in at the identity provider"),
        ("totp", "code of the app"),
        ("mail", "code by mail"),
    ],
)
async def test_an_event_names_the_proved_factor(areas: Areas, factor: str, text: str) -> None:
    bench = OwnBench(areas, fields={"binding": "unbound", "factors": "passkey,oidc,totp,mail"})
    provider, asked = bench.make(), bench.question()
    handle = (await provider.start(asked)).handle
    await bench.prove(asked, factor)
    answer = await provider.verify(asked, NOTHING, handle)
    assert (answer.outcome, answer.detail) == (Outcome.APPROVED, f"{text}, any")


@pytest.mark.parametrize(("binding", "factor"), [("code", "bypass"), ("unbound", "bypass"), ("unbound", "totp")])
async def test_a_person_with_codes_only_gets_no_page(areas: Areas, binding: str, factor: str) -> None:
    """A bypass code is no second channel. A code of the app is, but only if the page shows digits."""
    fields = {"binding": binding, "factors": "passkey,totp,bypass"}
    bench = OwnBench(areas, factors=(factor,), fields=fields)
    assert await bench.make().start(bench.question()) == Answer(Outcome.CODE)


async def test_a_code_is_spent_for_its_person(areas: Areas) -> None:
    """A bypass code belongs to the user and the domain of the login."""
    bench = OwnBench(areas, factors=("bypass",), fields={"factors": "bypass"})
    spent = []

    async def spend(person: Person, code: Code) -> bool:
        spent.append((person, code.text))
        return True

    bench.stepups.accept_codes("bypass", spend)
    answer = await bench.make().verify(bench.question(), Code("12345678"), "")
    assert (answer.outcome, answer.detail) == (Outcome.APPROVED, "bypass code, any")
    assert spent == [(Person(areas.domain, "ann"), "12345678")]


async def test_a_device_that_shows_no_challenge_gets_one_without_mail(areas: Areas) -> None:
    """If the service sends no mail, the challenge is tried: a device that was wrong about it is not shut out."""
    bench = OwnBench(areas, fields={"binding": "unbound"})
    answer = await bench.make().start(bench.question(shows_challenges=False))
    assert (answer.outcome, "/mfa/" in answer.text) == (Outcome.CODE, True)


async def test_a_person_with_an_app_gets_mail(areas: Areas) -> None:
    """Nothing can be typed at the device, so the page of the mail takes the code of the app."""
    await imported(areas, person("ann", "mail: ann@corp.example"))
    fields = {"binding": "unbound", "pageByMail": True}
    bench = OwnBench(areas, factors=("totp",), mailbox=Mailbox(), fields=fields)
    answer = await bench.make().start(bench.question(takes_codes=False))
    assert (answer.outcome, len(bench.mails)) == (Outcome.WAITING, 1)
    assert await bench.make().start(bench.question(2)) == Answer(Outcome.CODE)


# --- the first factor `web` ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"factors": "oidc,passkey"}, ONLY_OIDC),
        ({"factors": "passkey"}, ONLY_OIDC),
        ({"pageByMail": True}, NO_WEB_MAIL),
        ({"userIs": "name"}, BY_DIRECTORY),
    ],
)
async def test_a_login_whose_password_nobody_has_checked(
    areas: Areas, changes: dict[str, object], problem: str
) -> None:
    """Everybody who knows a name can begin such a login. A configuration that is not fit for it refuses the login
    before there is a page, and the event says why."""
    bench = OwnBench(areas, factors=("passkey",), fields={**OIDC, **changes})
    bench.stepups.offer("oidc", bench._has)
    provider = bench.make()
    assert provider.web_problem == problem
    answer = await provider.start(bench.question(is_checked=False))
    if problem:
        assert answer == Answer(Outcome.DENIED, detail=problem)
    else:
        assert (answer.outcome, "/mfa/" in answer.text) == (Outcome.CODE, True)
    assert (await provider.start(bench.question(2))).outcome is Outcome.CODE


async def test_the_check_asks_the_identity_provider(areas: Areas) -> None:
    """The server of the company is asked only if people sign in there."""
    bench = OwnBench(areas, fields=OIDC)
    asked = []

    async def check(domain_id: int) -> str:
        asked.append(domain_id)
        return "the identity provider answers"

    bench.stepups.offer("oidc", bench._has)
    bench.stepups._checks["oidc"] = check
    assert (await bench.make().check()).endswith("; the identity provider answers")
    assert (await bench.make(factors="passkey").check()).endswith("; no server is asked")
    assert asked == [areas.domain]


# --- enrolment links ----------------------------------------------------------------------------------------------


class Links:
    """Enrolment links of a length that a test sets."""

    def __init__(self, length: int) -> None:
        self.address_length = length
        self.offered = list[str]()

    async def offer(self, question: object) -> str | None:
        """Return a link."""
        self.offered.append(str(question))
        return "https://vpn.example.org/me/enrol/ABCDE23456"


@pytest.mark.parametrize(
    ("shows", "changes", "is_offered"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"takes_codes": False}, False),
        (True, {"is_checked": False}, False),
    ],
)
async def test_who_gets_a_link(areas: Areas, shows: bool, changes: dict[str, object], is_offered: bool) -> None:
    """A person without a factor gets a link if the domain shows links, the device can return an answer, and the
    password was right."""
    bench = OwnBench(
        areas, factors=(), fields={**OIDC, "factors": "oidc", "binding": "code", "enrolByChallenge": shows}
    )
    links = Links(40)
    bench.host = replace(bench.host, enrolments=links)  # type: ignore[arg-type]
    provider = bench.make()
    assert provider.shows_links is shows
    answer = await provider.start(bench.question(**changes))
    assert len(links.offered) == is_offered
    if is_offered:
        assert (answer.outcome, answer.detail) == (Outcome.CODE, "the challenge has shown an enrolment link")
        assert "https://vpn.example.org/me/enrol/ABCDE23456 within 10 minutes" in answer.text
    else:
        assert answer == Answer(Outcome.NOT_ENROLLED)


@pytest.mark.parametrize(
    ("length", "factors", "message"),
    [
        (60, "passkey", ""),
        (61, "passkey", "a link would have 61 characters, and devices show at most 60"),
        (40, "bypass", "needs one of the factors that people add by a link: passkey, totp"),
        (40, "passkey,oidc", "must be false with the factor oidc"),
    ],
)
async def test_a_domain_that_cannot_show_links(areas: Areas, length: int, factors: str, message: str) -> None:
    """The configuration is refused when it is set, with the reason."""
    bench = OwnBench(areas)
    bench.stepups.offer("oidc", bench._has)
    host = replace(bench.host, enrolments=Links(length))  # type: ignore[arg-type]
    fields = OwnFields.model_validate({**OIDC, "binding": "code", "factors": factors, "enrolByChallenge": True})
    if not message:
        await Own.refuse(fields, host)
        return
    with pytest.raises(Invalid) as refused:
        await Own.refuse(fields, host)
    assert [(each.field, message in each.message) for each in refused.value.fields] == [("enrolByChallenge", True)]
