"""Tests of the privacyIDEA provider with a real privacyIDEA server, and with a phone that answers like the real app."""

from base64 import b32encode
from collections.abc import AsyncIterator, Iterator

import pyotp
import pytest
import trio

from sallyport.areas.mfa.fields import PrivacyIdeaFields
from sallyport.areas.mfa.privacyidea import PrivacyIdea as Provider
from sallyport.areas.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError, Question
from tests.areas.mfa.host import make_host, question
from tests.peers.privacyidea import REALM, PrivacyIdea, running_privacyidea

pytestmark = [pytest.mark.peer, pytest.mark.system]

SEED = b"12345678901234567890"
USERS = (
    "alice", "bernd", "carla", "david", "emma", "frida", "georg", "hanna", "igor", "jana", "karl", "lena", "mona",
    "nora", "olaf", "nobody-yet",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivacyIdea]:
    """Yield one server for all tests. Each test has its own users."""
    with running_privacyidea(tmp_path_factory.mktemp("privacyidea"), USERS) as server:
        yield server


def made(server: PrivacyIdea, **fields: str) -> Provider:
    """Return a provider for the server."""
    fields = {"url": server.url, "realm": REALM, **fields}
    return Provider(PrivacyIdeaFields.model_validate(fields), make_host())


@pytest.fixture
async def provider(server: PrivacyIdea) -> AsyncIterator[Provider]:
    """Yield a provider with an admin's token."""
    provider = made(server, adminToken=server.admin_token)
    yield provider
    await provider.aclose()


@pytest.fixture
async def tokenless(server: PrivacyIdea) -> AsyncIterator[Provider]:
    """Yield a provider without an admin's token."""
    provider = made(server)
    yield provider
    await provider.aclose()


def login(user: str, number: int = 1) -> Question:
    """Return a login of the user."""
    return question(f"{user.encode().hex():0>30}{number:02}", user=user)


def otp() -> str:
    """Return the current code of SEED."""
    return pyotp.TOTP(b32encode(SEED).decode()).now()


def wrong() -> str:
    """Return a code that differs from the codes near the current time."""
    return f"{(int(otp()) + 500_000) % 1_000_000:06}"


async def polled(provider: Provider, answer: Answer) -> Outcome:
    """Return the outcome after the phone has answered."""
    with trio.fail_after(60):
        return (await provider.poll(answer.handle)).outcome


async def test_a_code_appended_to_the_password(server: PrivacyIdea, provider: Provider) -> None:
    """A wrong code is refused, and the right code is accepted once."""
    server.add_totp("alice", SEED)
    code = otp()
    assert await provider.verify(login("alice"), Code(wrong()), "") == Answer(Outcome.WRONG_CODE)
    assert await provider.verify(login("alice"), Code(code), "") == Answer(Outcome.APPROVED)
    assert await provider.verify(login("alice"), Code(code), "") == Answer(Outcome.WRONG_CODE)


async def test_a_code_that_is_asked_for(server: PrivacyIdea, provider: Provider) -> None:
    """The code answers the challenge without the PIN of the token, because the first factor was already checked."""
    server.add_totp("bernd", SEED, pin="geheim")
    asked = await provider.start(login("bernd"))
    assert (asked.outcome, asked.text) == (Outcome.CODE, "please enter otp:")
    assert asked.handle.isalnum()
    assert (await provider.verify(login("bernd"), Code(wrong()), asked.handle)).outcome is Outcome.WRONG_CODE
    assert (await provider.verify(login("bernd"), Code(otp()), asked.handle)).outcome is Outcome.APPROVED


async def test_pin_and_code(server: PrivacyIdea, provider: Provider) -> None:
    """If the PIN precedes the code, both are accepted, with and without a challenge.

    Without a challenge the code alone is wrong.
    """
    server.add_totp("carla", SEED, pin="geheim")
    asked = await provider.start(login("carla"))
    assert (await provider.verify(login("carla"), Code("falsch" + otp()), asked.handle)).outcome is Outcome.WRONG_CODE
    assert (await provider.verify(login("carla"), Code(otp()), "")).outcome is Outcome.WRONG_CODE
    assert (await provider.verify(login("carla"), Code("geheim" + otp()), asked.handle)).outcome is Outcome.APPROVED


async def test_the_pin_triggers_a_challenge(server: PrivacyIdea, provider: Provider) -> None:
    """If the server's policy answers a PIN with a challenge, the user is asked for the code."""
    server.policy("challenges", "authentication", "challenge_response=totp", user="david")
    server.add_totp("david", SEED, pin="geheim")
    asked = await provider.verify(login("david"), Code("geheim"), "")
    assert (asked.outcome, bool(asked.handle)) == (Outcome.CODE, True)
    assert (await provider.verify(login("david"), Code(otp()), asked.handle)).outcome is Outcome.APPROVED


@pytest.mark.parametrize(("user", "as_admin"), [("emma", True), ("frida", False)])
async def test_push_approved(
    server: PrivacyIdea, provider: Provider, tokenless: Provider, user: str, as_admin: bool
) -> None:
    """One login sends one challenge to the phone, and the approval counts once."""
    asking = provider if as_admin else tokenless
    phone = server.add_push(user)
    waiting = await asking.start(login(user))
    assert waiting.outcome is Outcome.WAITING
    assert "confirm" in waiting.text
    assert await asking.start(login(user)) == waiting
    assert await polled(asking, waiting) is Outcome.WAITING
    phone.approve()
    assert await polled(asking, waiting) is Outcome.APPROVED
    assert await polled(tokenless if as_admin else provider, waiting) is Outcome.WAITING


@pytest.mark.parametrize(("user", "reason"), [("georg", ""), ("hanna", "cancelled"), ("igor", "unknown_trigger")])
async def test_push_declined(server: PrivacyIdea, provider: Provider, user: str, reason: str) -> None:
    """If the user declines the push, the login is denied. It counts as "not me", unless the user says that the login
    was cancelled."""
    phone = server.add_push(user)
    waiting = await provider.start(login(user))
    phone.decline(reason)
    assert await polled(provider, waiting) is (Outcome.DENIED if reason == "cancelled" else Outcome.NOT_ME)
    assert (await provider.verify(login(user), Code("000000"), waiting.handle)).outcome is not Outcome.APPROVED


async def test_push_beside_a_code(server: PrivacyIdea, provider: Provider) -> None:
    """A user with a push token and a code token gets a push.

    Its approval counts once, and the user may type the code instead.
    """
    server.add_totp("jana", SEED)
    phone = server.add_push("jana")
    waiting = await provider.start(login("jana"))
    assert waiting.outcome is Outcome.WAITING
    phone.approve()
    assert await polled(provider, waiting) is Outcome.APPROVED
    assert (await provider.verify(login("jana"), Code(otp()), "")).outcome is Outcome.APPROVED


async def test_the_code_is_on_the_phone(server: PrivacyIdea, provider: Provider) -> None:
    """If the phone shows a code after the approval, the user is asked for that code, and the code is accepted."""
    server.policy("code", "authentication", "push_code_to_phone", user="karl")
    phone = server.add_push("karl")
    asked = await provider.start(login("karl"))
    assert (asked.outcome, bool(asked.handle)) == (Outcome.CODE, True)
    code = phone.approve()
    assert (await provider.verify(login("karl"), Code(code), asked.handle)).outcome is Outcome.APPROVED


async def test_the_choice_to_confirm_is_shown(server: PrivacyIdea, provider: Provider) -> None:
    """If the phone asks the user to confirm a choice, the text of the prompt contains the choice."""
    server.policy("presence", "authentication", "push_require_presence", user="lena")
    server.add_push("lena")
    waiting = await provider.start(login("lena"))
    assert waiting.outcome is Outcome.WAITING
    assert "Please press:" in waiting.text


async def test_a_cancelled_push_is_taken_back(server: PrivacyIdea, provider: Provider, tokenless: Provider) -> None:
    """After a cancel the phone finds no challenge.

    Without an admin's token the challenge stays, and there is no error.
    """
    phone = server.add_push("mona")
    waiting = await provider.start(login("mona"))
    await tokenless.cancel(waiting.handle)
    assert len(phone.waiting()) == 1
    await provider.cancel(waiting.handle)
    await provider.cancel(waiting.handle)
    assert phone.waiting() == []


@pytest.mark.parametrize("user", ["nobody-yet", "stranger"])
async def test_without_a_token(provider: Provider, tokenless: Provider, user: str) -> None:
    """A user without a token is not enrolled, and neither is an unknown user. No code is accepted for them."""
    assert await provider.enrolled(user) is Enrolment.NOT_ENROLLED
    assert await provider.start(login(user)) == Answer(Outcome.NOT_ENROLLED)
    for asking in (provider, tokenless):
        answer = await asking.verify(login(user), Code("000000"), "")
        assert answer.outcome in {Outcome.NOT_ENROLLED, Outcome.WRONG_CODE}


async def test_tokens_out_of_use(server: PrivacyIdea, provider: Provider) -> None:
    """A disabled token is ignored.

    A revoked token denies the login, because a failure could let the fallback accept the user.
    """
    serial = server.add_totp("nora", SEED)
    assert await provider.enrolled("nora") is Enrolment.ENROLLED
    server.post(f"/token/disable/{serial}", {})
    assert await provider.enrolled("nora") is Enrolment.NOT_ENROLLED
    assert (await provider.start(login("nora"))).outcome is Outcome.NOT_ENROLLED
    server.post(f"/token/revoke/{serial}", {})
    assert await provider.enrolled("nora") is Enrolment.NOT_ENROLLED
    assert (await provider.verify(login("nora"), Code(otp()), "")).outcome is Outcome.DENIED


async def test_enrolment_has_no_effects(server: PrivacyIdea, provider: Provider, tokenless: Provider) -> None:
    """A request for an enrolment triggers no challenge, counts no failure and checks nothing.

    The audit of the server proves this.
    """
    server.add_totp("olaf", SEED, pin="geheim")
    phone = server.add_push("olaf")
    challenges, asked = server.challenges(), server.asked("olaf")
    assert await provider.enrolled("olaf") is Enrolment.ENROLLED
    assert await tokenless.enrolled("olaf") is Enrolment.UNKNOWN
    new = server.asked("olaf")[: -len(asked)]
    assert {action for action in new if "validate" in action} == set()
    assert server.challenges() == challenges
    assert server.failures("olaf") == 0
    assert phone.waiting() == []


@pytest.mark.parametrize("token", ["not-a-token", "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYWRtaW4ifQ.c2lnbmF0dXJl"])
async def test_a_wrong_admin_token(server: PrivacyIdea, token: str) -> None:
    """The error for a wrong admin token names the field, and does not contain the token."""
    provider = made(server, adminToken=token)
    for ask in (lambda: provider.enrolled("alice"), lambda: provider.start(login("alice"))):
        with pytest.raises(ProviderError, match="does not accept the adminToken") as caught:
            await ask()
        assert token not in str(caught.value)
    await provider.aclose()


@pytest.mark.usefixtures("server")  # a machine without the server skips this test too
async def test_the_server_dies(tmp_path_factory: pytest.TempPathFactory) -> None:
    """If the server is killed during a push, each later poll raises ProviderError."""
    with running_privacyidea(tmp_path_factory.mktemp("dies"), ["paula"]) as doomed:
        doomed.add_push("paula").waiting()
        provider = made(doomed, adminToken=doomed.admin_token)
        waiting = await provider.start(login("paula"))
        assert await polled(provider, waiting) is Outcome.WAITING
        doomed.stop()
        with pytest.raises(ProviderError):
            await provider.poll(waiting.handle)
        with pytest.raises(ProviderError):
            await provider.enrolled("paula")
        with pytest.raises(ProviderError):
            await provider.start(login("paula", 2))
        with pytest.raises(ProviderError):
            await provider.verify(login("paula"), Code("000000"), "")
        await provider.aclose()
