"""Monitoring: nobody is prompted, nobody is kept out after the first factor, and what enforcing would do is noted."""

from collections.abc import Callable

import pytest

from sallyport.domains.domain import Mode
from sallyport.mfa.circuit import FAILURES
from sallyport.mfa.provider import Enrolment, Outcome, ProviderError
from sallyport.policy.rules.bodies import RuleFields
from tests.areas import Areas
from tests.login.conftest import Desk
from tests.login.second.scripted import Script, attached, provider
from tests.packets import chap, pap
from tests.waiting import until


@pytest.fixture
async def script(areas: Areas, desk: Desk) -> Script:
    """The provider's part, in a domain that monitors."""
    script = Script()
    await script.attach(areas, mode=Mode.MONITOR)
    return script


async def noted(desk: Desk, name: str = "ann", make: Callable[[str, str], bytes] = pap) -> tuple[str, str]:
    """What would have been, and why; the login is let in without waiting."""
    await desk.areas.users.load(desk.areas.domain, name)
    decision = desk.areas.pipeline.begin(desk.login(make(name, "hello")))
    assert decision is not None, "it waits"
    assert decision.applied == "accept"
    assert decision.decision == decision.would_have_been
    return decision.would_have_been, decision.reason


async def known(areas: Areas, script: Script, name: str = "ann") -> None:
    """Let the look-up that a login has begun come to its end."""
    await until(lambda: bool(script.looked_up))
    await areas.second.enrolments.find_out(attached(areas), areas.tenant, (areas.domain, name), name)


@pytest.mark.parametrize(
    ("enrolment", "expected"),
    [
        (Enrolment.ENROLLED, ("challenge", "second factor asked for")),
        (Enrolment.NOT_ENROLLED, ("reject", "not enrolled")),
        (Enrolment.UNKNOWN, ("challenge", "enrolment not known yet")),
    ],
)
async def test_what_would_have_been(
    desk: Desk, areas: Areas, script: Script, enrolment: Enrolment, expected: tuple[str, str]
) -> None:
    """By enrolment; before it is known the login does not wait for it, and says so. It is looked up once."""
    script.enrolment = enrolment
    assert await noted(desk) == ("challenge", "enrolment not known yet")
    await known(areas, script)
    for make in (pap, chap):
        assert await noted(desk, make=make) == expected
    assert await noted(desk, "ANN") == expected
    assert (script.looked_up, script.disturbed, script.cancelled) == (["ann"], False, [])


async def test_the_look_up_is_off_the_login_path(desk: Desk, areas: Areas, script: Script) -> None:
    """A login asks nobody anything before it is decided; a hundred of one user make one look-up."""
    for _ in range(100):
        assert (await noted(desk))[0] == "challenge"
    await known(areas, script)
    assert script.looked_up == ["ann"]


async def test_unreachable(desk: Desk, areas: Areas, script: Script) -> None:
    """What the look-up comes to is noted of the next login."""
    script.fails = ProviderError("away")
    await noted(desk)
    await known(areas, script)
    assert await noted(desk) == ("reject", "provider unreachable")


async def test_an_open_circuit_closes_without_a_restart(desk: Desk, areas: Areas, script: Script) -> None:
    """It is noted; and a login makes a look-up that tries the provider again, though nobody is ever prompted."""
    script.fails = ProviderError("away")
    guarded = attached(areas).provider
    for number in range(FAILURES):
        await areas.second.enrolments.find_out(
            attached(areas), areas.tenant, (areas.domain, f"u{number}"), f"u{number}"
        )
    assert guarded.is_open
    before = areas.sample(
        "sallyport_mfa_call_duration_seconds_count", provider="scripted", call="enrolled", result="refused"
    )
    assert await noted(desk) == ("reject", "provider unreachable, circuit open")
    await until(
        lambda: (
            areas.sample(
                "sallyport_mfa_call_duration_seconds_count", provider="scripted", call="enrolled", result="refused"
            )
            > before
        )
    )


async def test_nobody_to_ask(desk: Desk, areas: Areas, script: Script) -> None:
    """No provider, and a configuration that cannot be read, are told apart."""
    await areas.store.write(lambda tx: tx.execute("update mfa_providers set fields = x'00'"))
    await areas.configuration.reload()
    assert await noted(desk) == ("reject", "provider configuration unreadable")
    await areas.providers.delete(areas.domain)
    assert await noted(desk) == ("reject", "no provider")


@pytest.mark.parametrize(
    ("action", "expected"),
    [("block", ("reject", "blocked by rule")), ("allow", ("accept", "")), ("mfa_required", None)],
)
async def test_rules(desk: Desk, areas: Areas, script: Script, action: str, expected: tuple[str, str] | None) -> None:
    """A block does not apply, and its attributes do; nobody is looked up who would not be asked."""
    confirmed = {"everyone": True} if action == "allow" else {}
    rule = {
        "name": "r",
        "action": action,
        **confirmed,
        "replyAttributes": [{"name": "Class", "value": "staff"}],
        "vlan": 20,
    }
    await areas.rules.add(areas.domain, RuleFields.model_validate(rule))
    assert await noted(desk) == (expected or ("challenge", "enrolment not known yet"))
    login = desk.login(pap("ann", "hello"))
    assert areas.pipeline.begin(login) is not None
    assert b"staff" in login.attributes
    if expected is None:
        await known(areas, script)
    assert (script.disturbed, bool(script.looked_up)) == (False, expected is None)


async def test_a_wrong_password_is_rejected_and_nobody_is_looked_up(desk: Desk, areas: Areas) -> None:
    """The first factor holds in both modes."""
    script = Script(takes_codes=False)
    await script.attach(areas, mode=Mode.MONITOR)
    login = desk.login(pap("ann", "wrong"))
    decision = await desk.decide(login)
    assert (decision.applied, decision.would_have_been, decision.reason) == ("reject", "reject", "wrong password")
    assert (script.looked_up, script.disturbed) == ([], False)


async def test_a_new_provider_is_asked_anew(desk: Desk, areas: Areas, script: Script) -> None:
    """What was known of the one before is not what is known of it."""
    await noted(desk)
    await known(areas, script)
    assert (await noted(desk))[1] == "second factor asked for"
    other = Script(enrolment=Enrolment.NOT_ENROLLED)
    await other.attach(areas, mode=Mode.MONITOR)
    assert (await noted(desk))[1] == "enrolment not known yet"
    await known(areas, other)
    assert (await noted(desk))[1] == "not enrolled"


async def test_a_look_up_that_fails_in_our_store(desk: Desk, areas: Areas, script: Script) -> None:
    """Whatever a plug-in raises, the login goes on, and the look-ups of others too."""
    script.fails = RuntimeError("a plug-in")
    await noted(desk)
    await until(lambda: bool(script.looked_up))
    script.fails = None
    await areas.add_user(areas.domain, "bob", b"hello")
    await noted(desk, "bob")
    await until(lambda: len(script.looked_up) > 1)
    assert provider(script).name == "scripted"
    assert script.begins is Outcome.WAITING
