"""Monitoring: no user is prompted, no right first factor is rejected, and the decision of enforce mode is recorded."""

from collections.abc import Callable

import pytest

from sallyport.areas.domains.domain import Mode
from sallyport.areas.mfa.circuit import FAILURES
from sallyport.areas.mfa.provider import Enrolment, Outcome, ProviderError
from sallyport.areas.policy.rules.bodies import RuleFields
from tests.areas import Areas
from tests.areas.login.conftest import FakeListener
from tests.areas.login.second.scripted import Script, attached, provider
from tests.packets import chap, pap
from tests.waiting import until


@pytest.fixture
async def script(areas: Areas, listener: FakeListener) -> Script:
    """Return the provider's script, in a domain that monitors."""
    script = Script()
    await script.attach(areas, mode=Mode.MONITOR)
    return script


async def decided(
    listener: FakeListener, name: str = "ann", make: Callable[[str, str], bytes] = pap
) -> tuple[str, str]:
    """Decide a login without waiting. Return the decision of enforce mode and its reason; the login is accepted."""
    await listener.areas.users.load(listener.areas.domain, name)
    decision = listener.areas.pipeline.begin(listener.login(make(name, "hello")))
    assert decision is not None, "it waits"
    assert decision.applied == "accept"
    assert decision.decision == decision.would_have_been
    return decision.would_have_been, decision.reason


async def looked_up(areas: Areas, script: Script, name: str = "ann") -> None:
    """Wait until the look-up that a login started has ended."""
    user = (areas.domain, name)
    await until(lambda: areas.second.enrolments.known(attached(areas), user) is not None)
    assert script.looked_up


@pytest.mark.parametrize(
    ("enrolment", "expected"),
    [
        (Enrolment.ENROLLED, ("challenge", "second factor asked for")),
        (Enrolment.NOT_ENROLLED, ("reject", "not enrolled")),
        (Enrolment.UNKNOWN, ("challenge", "enrolment not known yet")),
    ],
)
async def test_monitor_mode_records_the_decision_of_enforce_mode(
    listener: FakeListener, areas: Areas, script: Script, enrolment: Enrolment, expected: tuple[str, str]
) -> None:
    """The recorded decision follows the enrolment. Before it is known the login does not wait, and records that. The
    user is looked up once."""
    script.enrolment = enrolment
    assert await decided(listener) == ("challenge", "enrolment not known yet")
    await looked_up(areas, script)
    for make in (pap, chap):
        assert await decided(listener, make=make) == expected
    assert await decided(listener, "ANN") == expected
    assert (script.looked_up, script.disturbed, script.cancelled) == (["ann"], False, [])


async def test_the_look_up_is_off_the_login_path(listener: FakeListener, areas: Areas, script: Script) -> None:
    """A login is decided before the look-up, and a hundred logins of one user make one look-up."""
    for _ in range(100):
        assert (await decided(listener))[0] == "challenge"
    await looked_up(areas, script)
    assert script.looked_up == ["ann"]


async def test_unreachable(listener: FakeListener, areas: Areas, script: Script) -> None:
    """A failed look-up is recorded with the next login."""
    script.fails = ProviderError("away")
    await decided(listener)
    await looked_up(areas, script)
    assert await decided(listener) == ("reject", "provider unreachable")


async def test_an_open_circuit_closes_without_a_restart(listener: FakeListener, areas: Areas, script: Script) -> None:
    """An open circuit is recorded. A login then starts a look-up that tries the provider again, although no user is
    prompted."""
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
    assert await decided(listener) == ("reject", "provider unreachable, circuit open")
    await until(
        lambda: (
            areas.sample(
                "sallyport_mfa_call_duration_seconds_count", provider="scripted", call="enrolled", result="refused"
            )
            > before
        )
    )


async def test_a_missing_and_an_unreadable_provider_are_distinguished(
    listener: FakeListener, areas: Areas, script: Script
) -> None:
    """A missing provider and an unreadable configuration have different reasons."""
    await areas.store.write(lambda tx: tx.execute("update mfa_providers set fields = :octets", octets=b"\0"))
    await areas.configuration.reload()
    assert await decided(listener) == ("reject", "provider configuration unreadable")
    await areas.providers.delete(areas.domain)
    assert await decided(listener) == ("reject", "no provider")


@pytest.mark.parametrize(
    ("action", "expected"),
    [("block", ("reject", "blocked by rule")), ("allow", ("accept", "")), ("mfa_required", None)],
)
async def test_rules(
    listener: FakeListener, areas: Areas, script: Script, action: str, expected: tuple[str, str] | None
) -> None:
    """A block is not applied, and a rule's attributes are. A user is looked up only if the second factor would be
    asked."""
    confirmed = {"everyone": True} if action != "mfa_required" else {}
    rule = {
        "name": "r",
        "action": action,
        **confirmed,
        "replyAttributes": [{"name": "Class", "value": "staff"}],
        "vlan": 20,
    }
    await areas.rules.add(areas.domain, RuleFields.model_validate(rule))
    assert await decided(listener) == (expected or ("challenge", "enrolment not known yet"))
    login = listener.login(pap("ann", "hello"))
    assert areas.pipeline.begin(login) is not None
    assert b"staff" in login.attributes
    if expected is None:
        await looked_up(areas, script)
    assert (script.disturbed, bool(script.looked_up)) == (False, expected is None)


async def test_a_wrong_password_is_rejected_without_a_look_up(listener: FakeListener, areas: Areas) -> None:
    """A wrong password is rejected in monitor mode too, without a look-up."""
    script = Script(takes_codes=False)
    await script.attach(areas, mode=Mode.MONITOR)
    login = listener.login(pap("ann", "wrong"))
    decision = await listener.decide(login)
    assert (decision.applied, decision.would_have_been, decision.reason) == ("reject", "reject", "wrong password")
    assert (script.looked_up, script.disturbed) == ([], False)


async def test_a_new_provider_is_asked_anew(listener: FakeListener, areas: Areas, script: Script) -> None:
    """Enrolments that one provider reported do not hold for its successor."""
    await decided(listener)
    await looked_up(areas, script)
    assert (await decided(listener))[1] == "second factor asked for"
    other = Script(enrolment=Enrolment.NOT_ENROLLED)
    await other.attach(areas, mode=Mode.MONITOR)
    assert (await decided(listener))[1] == "enrolment not known yet"
    await looked_up(areas, other)
    assert (await decided(listener))[1] == "not enrolled"


async def test_a_look_up_that_fails_in_our_store(listener: FakeListener, areas: Areas, script: Script) -> None:
    """After an exception of a provider the login continues, and so do look-ups of other users."""
    script.fails = RuntimeError("a plug-in")
    await decided(listener)
    await until(lambda: bool(script.looked_up))
    script.fails = None
    await areas.add_user(areas.domain, "bob", b"hello")
    await decided(listener, "bob")
    await until(lambda: len(script.looked_up) > 1)
    assert provider(script).name == "scripted"
    assert script.begins is Outcome.WAITING
