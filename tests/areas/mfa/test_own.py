"""The provider of the service's own factors: how a page is brought, its bindings, and the typed answers."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from sallyport.areas.factors.stepup.stepup import KEPT_US, MAX_MAILS_OF_PERSON, MAX_WRONG
from sallyport.areas.mfa.fields import Binding, OwnFields
from sallyport.areas.mfa.host import StepUpState
from sallyport.areas.mfa.own import ENTER_DIGITS, Own
from sallyport.areas.mfa.provider import Answer, Code, Enrolled, Enrolment, Outcome, Strength
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, Invalid
from sallyport.radius.password import chap_response
from tests.areas import Areas
from tests.areas.directory.world import imported, person
from tests.areas.factors.stepups import ELSEWHERE, LAPTOP, STATION, STRANGER
from tests.areas.mfa.host import make_host
from tests.areas.mfa.own_bench import Mailbox, OwnBench

NOTHING = Code("")
MAX_REPLY = 253


@pytest.fixture
def bench(areas: Areas) -> OwnBench:
    """Ann, with a passkey and an app."""
    return OwnBench(areas)


def brief(answer: Answer) -> tuple[Outcome, Strength]:
    """Return the outcome and the strength of an answer."""
    return answer.outcome, answer.strength


async def test_the_challenge_has_the_address_and_the_code(bench: OwnBench) -> None:
    """A Reply-Message holds the whole text. The handle is the id of the login."""
    answer = await bench.make().start(bench.question())
    assert (answer.outcome, answer.handle) == (Outcome.CODE, bench.question().challenge_id)
    assert answer.text.startswith("Open https://vpn.example.org/mfa/")
    assert "at vpn.example.org/mfa), then type its digits here. Or type a code of your app" in answer.text
    assert len(answer.text.encode()) <= MAX_REPLY


async def test_the_longest_address_fits(bench: OwnBench) -> None:
    """A challenge with the longest accepted host fits into a Reply-Message, even after a wrong answer."""
    site = "https://" + "h" * (60 - len("https://") - len("/mfa/ABCDE23456"))
    bench.host = replace(bench.host, own=_with_site(bench, site))
    provider = bench.make()
    asked = await provider.start(bench.question())
    wrong = await provider.verify(bench.question(), Code("123456"), asked.handle)
    assert (wrong.outcome, len(wrong.text.encode()) <= MAX_REPLY) == (Outcome.WRONG_CODE, True)


async def test_a_factor_that_the_service_lacks(bench: OwnBench) -> None:
    """A factor that nothing can check is refused when the provider is set."""
    with pytest.raises(Invalid) as refused:
        await bench.set(factors="passkey,oidc")
    assert refused.value.fields[0].message == "this service does not have oidc, only: passkey, totp, bypass"


def _with_site(bench: OwnBench, site: str):  # type: ignore[no-untyped-def]
    found = bench.node()
    found._site = site
    return found


async def test_digits_of_the_page_admit(bench: OwnBench) -> None:
    """With the binding `code`, a proof alone does not admit: the digits of the page do."""
    provider, asked = bench.make(), bench.question()
    first = await provider.start(asked)
    proof = await bench.prove(asked)
    empty = await provider.verify(asked, NOTHING, first.handle)
    assert (empty.outcome, empty.handle, empty.text) == (Outcome.CODE, first.handle, ENTER_DIGITS)
    spaced = f"{proof.digits[:3]} {proof.digits[3:]}"
    assert brief(await provider.verify(asked, Code(spaced), first.handle)) == (Outcome.APPROVED, Strength.TWO_CHANNELS)


async def test_digits_by_chap(bench: OwnBench) -> None:
    """A CHAP response to the digits is right, and one to other digits is not."""
    provider, asked = bench.make(), bench.question()
    handle, proof = (await provider.start(asked)).handle, await bench.prove(asked)
    challenge = bytes(range(16))

    def typed(text: str) -> Code:
        return Code(None, chap_response(7, text.encode(), challenge), challenge)

    assert (await provider.verify(asked, typed(""), handle)).outcome is Outcome.CODE
    assert (await provider.verify(asked, typed("1" + proof.digits), handle)).outcome is Outcome.WRONG_CODE
    assert (await provider.verify(asked, typed(proof.digits), handle)).outcome is Outcome.APPROVED


async def test_wrong_digits_end_the_login(bench: OwnBench) -> None:
    """Three wrong answers end the login, over new challenges, restarts and nodes. Then the right digits do not help."""
    asked = bench.question()
    handle, proof = (await bench.make().start(asked)).handle, await bench.prove(asked)
    wrong = "1" * 6 if proof.digits != "1" * 6 else "2" * 6
    outcomes = [(await bench.make().verify(asked, Code(wrong), handle)).outcome for _ in range(MAX_WRONG + 1)]
    assert outcomes == [Outcome.WRONG_CODE, Outcome.WRONG_CODE, Outcome.NO_TRIES_LEFT, Outcome.NO_TRIES_LEFT]
    assert (await bench.make().verify(asked, Code(proof.digits), handle)).outcome is Outcome.NO_TRIES_LEFT


async def test_simultaneous_guesses_are_three_together(bench: OwnBench) -> None:
    """While three answers are being checked, at any nodes, a fourth one is not checked, even if it is right."""
    asked = bench.question()
    handle, proof = (await bench.make().start(asked)).handle, await bench.prove(asked)
    for _ in range(MAX_WRONG):
        assert await bench.stepups.take_answer(asked.challenge_id)
    assert (await bench.make().verify(asked, Code(proof.digits), handle)).outcome is Outcome.NO_TRIES_LEFT


async def test_digits_of_another_login_are_wrong(bench: OwnBench) -> None:
    """An attacker cannot type the digits that the victim's own login shows."""
    victims, attackers = bench.question(1), bench.question(2)
    provider = bench.make()
    await provider.start(victims)
    handle = (await provider.start(attackers)).handle
    proof = await bench.prove(victims)
    assert (await provider.verify(attackers, Code(proof.digits), handle)).outcome is Outcome.WRONG_CODE


@pytest.mark.parametrize("typed", ["", " ", "ok", "yes\n"])
async def test_nothing_typed_only_asks(bench: OwnBench, typed: str) -> None:
    """An answer without digits costs no try, and shows the same page again."""
    provider, asked = bench.make(binding="unbound"), bench.question()
    first = await provider.start(asked)
    for _ in range(MAX_WRONG + 1):
        again = await provider.verify(asked, Code(typed), first.handle)
        assert (again.outcome, again.text) == (Outcome.CODE, first.text)
    await bench.prove(asked)
    assert brief(await provider.verify(asked, Code(typed), first.handle)) == (Outcome.APPROVED, Strength.ANY)


async def test_a_code_of_the_app_needs_no_page(bench: OwnBench) -> None:
    """A code of the app at the prompt admits, and the page of the login takes no proof any more."""
    provider, asked = bench.make(), bench.question()
    handle = (await provider.start(asked)).handle
    shown = await bench.open_page(asked)
    assert brief(await provider.verify(asked, Code(bench.right_code), handle)) == (Outcome.APPROVED, Strength.ANY)
    proof = await bench.stepups.prove(shown.id, LAPTOP, "passkey", Strength.PHISHING_RESISTANT, STATION)
    assert (proof.accepted, "over" in proof.text) == (False, True)


async def test_a_code_of_the_app_is_stronger_on_the_page(areas: Areas) -> None:
    """A person with an app only gets the page too, if it shows digits. Proved there, the app is a second channel."""
    bench = OwnBench(areas, factors=("totp",), fields={"factors": "passkey,totp"})
    provider, asked = bench.make(), bench.question()
    assert await provider.enrolled("ann") == Enrolled(Enrolment.ENROLLED, Strength.TWO_CHANNELS)
    handle = (await provider.start(asked)).handle
    proof = await bench.prove(asked, "totp")
    assert brief(await provider.verify(asked, Code(proof.digits), handle)) == (Outcome.APPROVED, Strength.TWO_CHANNELS)
    unbound = bench.make(binding="unbound")
    assert await unbound.start(bench.question(2)) == Answer(Outcome.CODE)


async def test_a_domain_with_codes_only_opens_no_pages(areas: Areas) -> None:
    """If the domain accepts codes only, people type them at the prompt."""
    bench = OwnBench(areas, factors=("totp",), fields={"factors": "totp,bypass"})
    assert await bench.make().start(bench.question()) == Answer(Outcome.CODE)
    assert await bench.make().enrolled("ann") == Enrolled(Enrolment.ENROLLED, Strength.ANY)


async def test_a_code_is_used_once(bench: OwnBench) -> None:
    """A code of the app at two prompts admits one login."""
    provider = bench.make()
    handles = [(await provider.start(bench.question(number))).handle for number in (1, 2)]
    code = Code(bench.right_code)
    outcomes = [(await provider.verify(bench.question(n), code, handles[n - 1])).outcome for n in (1, 2)]
    assert outcomes == [Outcome.APPROVED, Outcome.WRONG_CODE]


async def test_a_factor_that_is_not_accepted(bench: OwnBench) -> None:
    """A code of the app does not count in a domain that accepts passkeys only."""
    bench.fields = {"factors": "passkey"}
    provider, asked = bench.make(), bench.question()
    first = await provider.start(asked)
    assert "app" not in first.text
    assert (await provider.verify(asked, Code(bench.right_code), first.handle)).outcome is Outcome.WRONG_CODE
    assert (await provider.verify(asked, Code(bench.right_code), "")).outcome is Outcome.WRONG_CODE


async def test_a_bypass_code(bench: OwnBench) -> None:
    """A bypass code admits at the prompt and after the password, and the event says so."""
    bench.fields = {"factors": "passkey,bypass"}
    bench.stepups.offer("bypass", bench._has)
    codes = ["12345678", "87654321"]

    async def spend(_person: object, code: Code) -> bool:
        return code.text in codes and not codes.remove(str(code.text))  # type: ignore[func-returns-value]

    bench.stepups.accept_codes("bypass", spend)
    provider, asked = bench.make(), bench.question()
    handle = (await provider.start(asked)).handle
    for each, typed, at in ((asked, "12345678", handle), (bench.question(2), "87654321", "")):
        answer = await provider.verify(each, Code(typed), at)
        assert (answer.outcome, answer.detail) == (Outcome.APPROVED, "bypass code, any")
    assert (await provider.verify(bench.question(2), Code("87654321"), "")).outcome is Outcome.WRONG_CODE


async def test_the_address_binds(bench: OwnBench) -> None:
    """A passkey at the address of the station admits without digits, and is phishing-resistant."""
    bench.fields = {"binding": "address", "factors": "passkey"}
    provider, asked = bench.make(), bench.question()
    handle = (await provider.start(asked)).handle
    await bench.prove(asked)
    assert brief(await provider.verify(asked, NOTHING, handle)) == (Outcome.APPROVED, Strength.PHISHING_RESISTANT)


async def test_a_proof_from_elsewhere_refuses(bench: OwnBench) -> None:
    """The login ends as unbound if the browser has moved before the proof."""
    bench.fields = {"binding": "address"}
    provider, asked = bench.make(), bench.question()
    handle = (await provider.start(asked)).handle
    await bench.prove(asked, source=ELSEWHERE)
    assert (await provider.verify(asked, NOTHING, handle)).outcome is Outcome.UNBOUND


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param({"signed": False, "address": ""}, "no Message-Authenticator", id="unsigned"),
        pytest.param({"address": ""}, "no IP address", id="no address"),
        pytest.param({"address": "10.1.2.3"}, "not a global address", id="private"),
    ],
)
async def test_an_address_that_cannot_be_compared(bench: OwnBench, changes: dict[str, object], why: str) -> None:
    """Such a login is refused before there is a page."""
    bench.fields = {"binding": "address"}
    answer = await bench.make().start(bench.question(**changes))
    assert (answer.outcome, why in answer.detail) == (Outcome.UNBOUND, True)
    assert (await bench.stepups.state_of(bench.question().challenge_id, within_s=0))[0] is StepUpState.OVER


async def test_a_login_without_a_prompt_cannot_return_digits(bench: OwnBench) -> None:
    """The binding `code` refuses a login that cannot type anything, before there is a page."""
    answer = await bench.make().start(bench.question(takes_codes=False))
    assert answer.outcome is Outcome.NOT_RETURNED
    assert await bench.areas.store.read(lambda tx: tx.value(int, "select count(*) from stepups")) == 0


async def test_not_me(bench: OwnBench) -> None:
    """A denial on the page refuses the login, even after the proof."""
    provider, asked = bench.make(binding="unbound"), bench.question()
    bench.fields = {"binding": "unbound"}
    handle = (await provider.start(asked)).handle
    await bench.prove(asked)
    await bench.stepups.deny(handle, LAPTOP)
    assert (await provider.verify(asked, NOTHING, handle)).outcome is Outcome.NOT_ME
    assert (await provider.poll(handle)).outcome is Outcome.NOT_ME


async def test_a_second_browser_admits_nobody(bench: OwnBench) -> None:
    """A stolen link that another browser opens first keeps ann out of the page, and does not admit."""
    bench.fields = {"binding": "unbound"}
    provider, asked = bench.make(), bench.question()
    handle = (await provider.start(asked)).handle
    shown = await bench.open_page(asked, STRANGER)
    assert not (await bench.stepups.prove(shown.id, LAPTOP, "passkey", Strength.ANY, STATION)).accepted
    assert (await provider.verify(asked, NOTHING, handle)).outcome is Outcome.CODE


async def test_an_expired_page(bench: OwnBench) -> None:
    """After its time, a login is over, and counts as not answered."""
    provider, asked = bench.make(), bench.question()
    handle = (await provider.start(asked)).handle
    bench.areas.clock.pass_by(90)
    assert (await provider.verify(asked, NOTHING, handle)).outcome is Outcome.UNANSWERED


async def test_a_waiting_login_is_approved(bench: OwnBench) -> None:
    """A login that waits at its device continues with the proof, and stays approved for another node."""
    bench.fields = {"binding": "unbound"}
    asked = bench.question()
    handle = (await bench.make().start(asked)).handle
    await bench.prove(asked)
    for _ in range(2):
        assert (await bench.make().poll(handle)).outcome is Outcome.APPROVED


async def test_too_many_pages(bench: OwnBench) -> None:
    """A third open login of a person gets no page."""
    provider = bench.make()
    outcomes = [(await provider.start(bench.question(number))).outcome for number in range(3)]
    assert outcomes == [Outcome.CODE, Outcome.CODE, Outcome.TOO_MANY]


async def test_after_not_me_there_is_no_page(bench: OwnBench) -> None:
    """An attacker with the password gets no other page. Ann can still type a code of her app, and later gets a page."""
    provider = bench.make()
    asked = bench.question()
    shown = await bench.open_page(asked)
    await bench.stepups.deny(shown.id, LAPTOP)
    paused = await provider.start(bench.question(2))
    assert (paused.outcome, paused.handle, paused.text) == (Outcome.CODE, "", "")
    assert (await provider.verify(bench.question(2), Code(bench.right_code), "")).outcome is Outcome.APPROVED
    only_passkey = bench.make(factors="passkey")
    refused = await only_passkey.start(bench.question(3))
    assert refused.outcome is Outcome.TOO_MANY
    assert refused.detail.startswith("no page until 2026-01-01T") and refused.detail.endswith(": not me")
    bench.areas.clock.pass_by(600)
    assert (await provider.start(bench.question(4))).handle


@pytest.mark.parametrize(("opens", "gets_page"), [(True, False), (False, True)], ids=["opened", "not opened"])
async def test_pages_without_a_proof_begin_a_pause(bench: OwnBench, opens: bool, gets_page: bool) -> None:
    """Two pages in a row that a browser has opened, and that expire without a proof, begin a pause."""
    provider = bench.make(factors="passkey")
    for number in range(2):
        asked = bench.question(number)
        await (bench.open_page(asked) if opens else provider.start(asked))
        bench.areas.clock.pass_by(91)
    assert (await provider.start(bench.question(3))).outcome is (Outcome.CODE if gets_page else Outcome.TOO_MANY)


async def test_a_proof_forgets_the_pages_without_one(bench: OwnBench) -> None:
    """A login with a proof between two others shows that ann answers."""
    bench.fields = {"binding": "unbound"}
    provider = bench.make()
    for number in range(3):
        asked = bench.question(number)
        if number == 1:
            handle = (await provider.start(asked)).handle
            await bench.prove(asked)
            assert (await provider.verify(asked, NOTHING, handle)).outcome is Outcome.APPROVED
        else:
            await bench.open_page(asked)
        bench.areas.clock.pass_by(91)
    assert (await provider.start(bench.question(9))).handle


async def test_a_person_without_a_factor(bench: OwnBench) -> None:
    """A person with none of the accepted factors is not enrolled."""
    provider = Own(OwnFields(factors="oidc"), bench.host)
    assert await provider.enrolled("ann") == Enrolled(Enrolment.NOT_ENROLLED, Strength.ANY)
    assert (await provider.start(bench.question())).outcome is Outcome.NOT_ENROLLED


@pytest.mark.parametrize(
    ("fields", "strength"),
    [
        ({"binding": "address", "factors": "passkey,totp"}, Strength.PHISHING_RESISTANT),
        ({"binding": "address", "factors": "totp"}, Strength.ANY),
        ({"binding": "code", "factors": "passkey"}, Strength.TWO_CHANNELS),
        ({"binding": "code", "factors": "bypass"}, Strength.ANY),
        ({"binding": "unbound", "factors": "passkey"}, Strength.ANY),
    ],
)
async def test_the_strongest_answer(bench: OwnBench, fields: dict[str, object], strength: Strength) -> None:
    """The provider says how strong an answer can be, by its configuration and by the factors of a person."""
    provider = Own(OwnFields.model_validate(fields), bench.host)
    assert provider.strongest == strength
    assert bool(provider.hints) == (fields["binding"] == "unbound")
    if fields["factors"] != "bypass":
        assert await provider.enrolled("ann") == Enrolled(Enrolment.ENROLLED, strength)


async def test_without_pages_only_codes(bench: OwnBench) -> None:
    """A service without pages uses codes only, and refuses a configuration that needs pages."""
    host = replace(bench.host, own=_with_site(bench, ""))
    with pytest.raises(Conflict, match="people_bind"):
        await Own.refuse(OwnFields(), host)
    await Own.refuse(OwnFields(factors="totp,bypass"), host)
    provider = Own(OwnFields(), host)
    assert (provider.strongest, provider.binds_by_code) == (Strength.ANY, False)
    answer = await provider.start(bench.question())
    assert (answer.outcome, answer.text) == (Outcome.CODE, "")
    assert (await provider.verify(bench.question(), Code(bench.right_code), "")).outcome is Outcome.APPROVED


async def test_a_long_host_is_refused(bench: OwnBench) -> None:
    """An address that devices do not show is refused when the provider is set."""
    host = replace(bench.host, own=_with_site(bench, f"https://{'h' * 48}.example"))
    with pytest.raises(Invalid, match="invalid factors") as refused:
        await Own.refuse(OwnFields(), host)
    assert "would have 79 characters" in refused.value.fields[0].message


@pytest.mark.parametrize("factors", ["", "passkey,", "password", "passkey totp"])
def test_unknown_factors_are_refused(factors: str) -> None:
    """A list of factors has known names only."""
    with pytest.raises(ValidationError, match="must be one or more of"):
        OwnFields(factors=factors)


def test_factors_have_one_order() -> None:
    """The names are stored in lower case, each once, in the order of the page."""
    assert OwnFields(factors="TOTP, passkey,totp").factors == "passkey,totp"


@pytest.fixture
async def mailed(areas: Areas) -> OwnBench:
    """Ann with a mail address in the directory, and a service that sends mail."""
    await imported(areas, person("ann", "mail: ann@corp.example") + person("bob"))
    return OwnBench(areas, mailbox=Mailbox(), fields={"binding": "unbound", "pageByMail": True})


async def test_mail_brings_the_page(mailed: OwnBench) -> None:
    """The address of the page goes to a login that waits at its device, once. The proof continues the login."""
    provider, asked = mailed.make(), mailed.question(takes_codes=False)
    for _ in range(2):  # the second call is that of another node
        answer = await provider.start(asked)
        assert (answer.outcome, answer.handle, answer.again_s) == (Outcome.WAITING, asked.challenge_id, 0.0)
    ((to, text),) = mailed.mails
    page = await mailed.stepups.open(asked, OwnFields(binding=Binding.UNBOUND))
    assert page is not None
    assert (to, page.address in text, asked.device in text) == ("ann@corp.example", True, False)
    assert not provider.only_codes
    await mailed.prove(asked)
    assert (await provider.poll(asked.challenge_id)).outcome is Outcome.APPROVED


@pytest.mark.parametrize(("user", "is_full"), [("bob", False), ("nobody", False), ("ann", True)])
async def test_a_person_who_gets_no_mail(mailed: OwnBench, user: str, is_full: bool) -> None:
    """Without a known address, or with a full queue, the login is refused, and its page is over."""
    mailed.user = user
    mailed.mailbox = Mailbox(is_full=is_full)
    mailed.__post_init__()
    asked = mailed.question(takes_codes=False)
    answer = await mailed.make().start(asked)
    assert (answer.outcome, "no mail" in answer.detail) == (Outcome.DENIED, True)
    assert (await mailed.stepups.state_of(asked.challenge_id, within_s=0))[0] is StepUpState.OVER


async def test_a_crash_before_the_mail_loses_no_page(mailed: OwnBench) -> None:
    """A login that asks again sends the mail if it was not sent, and sends no second one."""
    asked = mailed.question(takes_codes=False)
    await mailed.stepups.open(asked, OwnFields(binding=Binding.UNBOUND))  # here the service stops
    for _ in range(2):
        assert (await mailed.make().start(asked)).outcome is Outcome.WAITING
    assert len(mailed.mails) == 1


async def test_a_person_gets_few_pages_by_mail(mailed: OwnBench) -> None:
    """An attacker with the password does not fill the mailbox. Some minutes later, there are mails again."""
    outcomes = []
    for number in range(MAX_MAILS_OF_PERSON + 1):
        asked = mailed.question(number, takes_codes=False)
        outcomes.append((await mailed.make().start(asked)).outcome)
        await mailed.stepups.end(asked.challenge_id)
    assert outcomes == [Outcome.WAITING] * MAX_MAILS_OF_PERSON + [Outcome.DENIED]
    mailed.areas.clock.pass_by(90 + KEPT_US / SECOND + 1)
    await mailed.stepups.delete_old()
    assert (await mailed.make().start(mailed.question(99, takes_codes=False))).outcome is Outcome.WAITING
    assert len(mailed.mails) == MAX_MAILS_OF_PERSON + 1


async def test_digits_never_go_with_mail(mailed: OwnBench) -> None:
    """The binding `code` sends no mail: nothing could be typed. A device with a prompt gets the challenge."""
    provider = mailed.make(binding="code")
    assert (await provider.start(mailed.question(takes_codes=False))).outcome is Outcome.NOT_RETURNED
    assert (await provider.start(mailed.question(2))).outcome is Outcome.CODE
    assert (mailed.mails, provider.only_codes) == ([], True)


async def test_a_page_by_mail_needs_mail(mailed: OwnBench) -> None:
    """Without an SMTP server, and for digits, the page cannot be brought by mail. On Wi-Fi there is no other way."""
    await mailed.set("hostapd")
    for fields, mailbox in (({"binding": "code"}, Mailbox()), ({}, Mailbox(is_on=False))):
        mailed.mailbox = mailbox
        mailed.__post_init__()
        with pytest.raises(Invalid, match="invalid pageByMail"):
            await mailed.set("hostapd", **fields)


@pytest.mark.parametrize(
    ("products", "binding", "is_refused"),
    [
        pytest.param(("Cisco Meraki", "hostapd"), "code", True, id="Wi-Fi"),
        pytest.param(("hostapd",), "unbound", True, id="Wi-Fi without mail"),
        pytest.param(("strongSwan",), "address", True, id="no challenge"),
        pytest.param(("hostapd", "Cisco ASA"), "code", False, id="one can"),
        pytest.param(("hostapd", "SonicWall"), "code", False, id="one is not known"),
        pytest.param(("Cisco ASA",), "address", False, id="ASA"),
        pytest.param((), "address", False, id="no device"),
    ],
)
async def test_a_binding_that_no_device_has(
    bench: OwnBench, products: tuple[str, ...], binding: str, is_refused: bool
) -> None:
    """A binding is refused if no device of the domain can have it, and the check names those that cannot."""
    if is_refused:
        with pytest.raises(Invalid, match="invalid binding"):
            await bench.set(*products, binding=binding)
    else:
        await bench.set(*products, binding=binding)
    text = await bench.make(binding=binding).check()
    assert ("not possible with" in text) == ("hostapd" in products or is_refused)
    await bench.set(*products, binding=binding, factors="totp")  # codes need no page


async def test_the_check_says_what_is_used(bench: OwnBench) -> None:
    """The check names factors, binding and pages. Nothing is asked."""
    assert await bench.make(factors="passkey").check() == (
        "passkey with binding code; people prove a factor on pages of this service; no server is asked"
    )
    without = Own(OwnFields(factors="totp"), make_host())
    assert "the pages of people are off" in await without.check()


@pytest.mark.parametrize("missing", ["issuer", "clientId", "clientSecret"])
async def test_the_company_sign_in_needs_its_fields(bench: OwnBench, missing: str) -> None:
    """The error names the field."""
    whole = {"issuer": "https://id.example.com", "clientId": "sallyport", "clientSecret": "a secret"}
    fields = OwnFields.model_validate({"factors": "oidc", **whole, missing: ""})
    bench.stepups.offer("oidc", bench._has)
    with pytest.raises(Invalid) as refused:
        await Own.refuse(fields, bench.host)
    assert refused.value.fields[0].field == missing


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("issuer", "http://id.example.com"),
        ("issuer", "https://id.example.com/?x"),
        ("userClaim", "email"),
        ("amr", "a,,b"),
        ("acr", "a b"),
        ("userSuffix", "@exämple.org"),
    ],
)
def test_fields_of_the_company_sign_in_are_checked(field: str, value: str) -> None:
    """No issuer without TLS, and no claim that people choose themselves."""
    with pytest.raises(ValidationError):
        OwnFields.model_validate({"factors": "oidc", field: value})


@pytest.mark.parametrize(("amr", "strongest"), [("", Strength.ANY), ("hwk", Strength.PHISHING_RESISTANT)])
async def test_only_named_methods_resist_phishing(bench: OwnBench, amr: str, strongest: Strength) -> None:
    """With the binding `address`, a sign-in without a named method is like any other factor."""
    bench.stepups.offer("oidc", bench._has)
    whole = {"issuer": "https://id.example.com", "clientId": "sallyport", "clientSecret": "a secret"}
    assert bench.make(factors="oidc", binding="address", resistantAmr=amr, **whole).strongest is strongest
