"""Login rules that name a provider and demand a strength of the second factor."""

import pytest

from sallyport.areas.domains.domain import Mode
from sallyport.areas.login.login import Decision
from sallyport.areas.mfa.provider import Enrolment, Outcome, Strength
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.radius.attributes import STATE, pull_attributes
from tests.areas import Areas
from tests.areas.login.conftest import FakeListener
from tests.areas.login.second.scripted import NAME, Script, attached
from tests.packets import attributes, pap
from tests.waiting import until

KEYS = "keys"
WEAK = "not strong enough"


@pytest.fixture
async def keys(areas: Areas, script: Script) -> Script:
    """Return the script of the provider `keys` beside the default one. It is phishing-resistant."""
    keys = Script(name=KEYS, strength=Strength.PHISHING_RESISTANT, strongest=Strength.PHISHING_RESISTANT)
    await keys.attach_beside(areas)
    return keys


async def rule(areas: Areas, **fields: object) -> int:
    """Add a rule for ann."""
    given = {"name": "admins", "action": "mfa_required", "users": ["ann"], **fields}
    return await areas.rules.add(areas.domain, RuleFields.model_validate(given))


async def ended(listener: FakeListener, password: str = "hello", user: str = "ann") -> tuple[str, str]:  # noqa: S107
    """Return the applied decision and the reason of a login."""
    decision: Decision = await listener.decide(listener.login(pap(user, password)))
    return decision.applied, decision.reason


async def test_the_rule_names_the_provider(listener: FakeListener, areas: Areas, script: Script, keys: Script) -> None:
    """The users of the rule are asked by its provider, the others by the default one. The factor of the event names
    it."""
    await rule(areas, provider=KEYS)
    await areas.add_user(areas.domain, "bob", b"hello")
    for each in (script, keys):
        each.begins = Outcome.CODE
    assert await ended(listener) == ("challenge", "second factor asked for")
    assert await ended(listener, user="bob") == ("challenge", "second factor asked for")
    assert [[each.user for each in asked.started] for asked in (keys, script)] == [["ann"], ["bob"]]


async def test_a_challenge_of_the_named_provider(
    listener: FakeListener, areas: Areas, script: Script, keys: Script
) -> None:
    """The provider that has asked for the code checks it."""
    await rule(areas, provider=KEYS, strength="phishing_resistant")
    keys.begins = Outcome.CODE
    state = await challenge(listener)
    decision = await answered(listener, state)
    assert (decision.applied, decision.reason) == ("accept", "")
    assert (len(keys.verified), script.disturbed) == (1, False)


async def challenge(listener: FakeListener) -> bytes:
    """Log in, and return the State of the challenge."""
    login = listener.login(pap("ann", "hello"))
    assert (await listener.decide(login)).applied == "challenge"
    return dict(pull_attributes(login.attributes))[STATE]


async def answered(listener: FakeListener, state: bytes) -> Decision:
    """Answer a challenge with the right code."""
    decision: Decision = await listener.decide(listener.login(pap("ann", "123456", attributes(STATE=state))))
    return decision


async def test_a_weak_answer_is_refused(listener: FakeListener, areas: Areas, script: Script, keys: Script) -> None:
    """The strength of the answer decides, not what the provider has said before. The event names both
    strengths."""
    number = await rule(areas, provider=KEYS, strength="two_channels")
    keys.begins = Outcome.CODE
    state = await challenge(listener)
    keys.strength = Strength.ANY
    login = listener.login(pap("ann", "123456", attributes(STATE=state)))
    decision = await listener.decide(login)
    assert (decision.applied, decision.reason) == ("reject", WEAK)
    assert login.detail == f"the answer is any, rule {number} demands two_channels"


async def test_a_user_with_a_weak_factor_gets_no_prompt(
    listener: FakeListener, areas: Areas, script: Script, keys: Script
) -> None:
    """If no factor of the user is strong enough, no prompt is sent. A user without a factor is not enrolled."""
    await rule(areas, provider=KEYS, strength="two_channels")
    keys.strength = Strength.ANY
    assert await ended(listener) == ("reject", WEAK)
    assert (keys.started, script.disturbed) == ([], False)
    keys.begins, keys.enrolment = Outcome.NOT_ENROLLED, Enrolment.NOT_ENROLLED
    assert await ended(listener) == ("reject", "not enrolled")


async def test_a_new_factor_counts_at_once(listener: FakeListener, areas: Areas, script: Script, keys: Script) -> None:
    """A user who enrols a stronger factor logs in without waiting for a cache."""
    await rule(areas, provider=KEYS, strength="two_channels")
    keys.strength = Strength.ANY
    assert await ended(listener) == ("reject", WEAK)
    keys.strength, keys.begins = Strength.TWO_CHANNELS, Outcome.CODE
    assert (await ended(listener))[0] == "challenge"


async def test_a_provider_that_has_become_weak(
    listener: FakeListener, areas: Areas, script: Script, keys: Script
) -> None:
    """If the provider no longer reaches the strength, it is not even asked about the user."""
    await rule(areas, provider=KEYS, strength="two_channels")
    keys.strongest = Strength.ANY
    await keys.attach_beside(areas)
    assert await ended(listener) == ("reject", WEAK)
    assert (keys.looked_up, keys.started) == ([], [])


async def test_a_rule_that_changes_during_the_login(
    listener: FakeListener, areas: Areas, script: Script, keys: Script
) -> None:
    """An answer of a provider counts only if the rule that decides at the end demands no other one, and nothing
    stronger."""
    script.begins = keys.begins = Outcome.CODE
    state = await challenge(listener)
    number = await rule(areas, provider=KEYS)
    decision = await answered(listener, state)
    assert (decision.applied, decision.reason) == ("reject", "the challenge is unknown, over or another's")
    state = await challenge(listener)
    keys.strength = Strength.TWO_CHANNELS
    await areas.rules.update(areas.domain, number, RuleFields.model_validate({"strength": "phishing_resistant"}))
    assert (await answered(listener, state)).reason == WEAK
    await areas.rules.update(areas.domain, number, RuleFields.model_validate({"strength": "any"}))
    keys.right.add("123456")
    state = await challenge(listener)
    await areas.rules.delete(areas.domain, [number])
    assert (await answered(listener, state)).applied == "accept"


async def test_a_rule_without_a_default_provider(listener: FakeListener, areas: Areas, keys: Script) -> None:
    """The provider that a rule names is asked also if the domain has no default one."""
    await areas.providers.delete(areas.domain)
    await rule(areas, provider=KEYS)
    await areas.add_user(areas.domain, "bob", b"hello")
    keys.begins = Outcome.CODE
    assert (await ended(listener))[0] == "challenge"
    assert await ended(listener, user="bob") == ("reject", "no provider")
    state = await challenge(listener)
    assert (await answered(listener, state)).applied == "accept"


async def test_a_code_after_the_password_for_the_named_provider(
    listener: FakeListener, areas: Areas, script: Script
) -> None:
    """A code may follow the password if only the provider of the rule takes codes."""
    script.takes_codes = False
    await script.attach(areas)
    keys = Script(name=KEYS)
    await keys.attach_beside(areas)
    assert await ended(listener, "hello123456") == ("reject", "wrong password")
    await rule(areas, provider=KEYS)
    assert await ended(listener, "hello123456") == ("accept", "")
    assert (keys.verified, keys.started, script.disturbed) == ([("123456", "")], [], False)


async def test_a_missing_fact_does_not_lower_the_strength(
    listener: FakeListener, areas: Areas, script: Script, keys: Script
) -> None:
    """A request that leaves out a fact of a strict rule is decided by this rule, not by a milder one after it."""
    keys.strength = Strength.ANY
    await rule(areas, provider=KEYS, strength="two_channels", stations=["02-00-00-00-00-01"], priority=1)
    await rule(areas, priority=2)
    assert await ended(listener) == ("reject", WEAK)
    other = attributes(CALLING_STATION_ID=b"02-00-00-00-00-02")
    script.begins = Outcome.CODE
    decision = await listener.decide(listener.login(pap("ann", "hello", other)))
    assert decision.applied == "challenge"


async def test_monitor_mode_knows_the_strength(
    listener: FakeListener, areas: Areas, script: Script, keys: Script
) -> None:
    """The recorded decision is that of the provider of the rule. A weak factor is recorded, and the login is
    accepted."""
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    await rule(areas, provider=KEYS, strength="two_channels")
    keys.strength = Strength.ANY
    await monitored(listener)
    await until(lambda: bool(keys.looked_up))
    found = areas.providers.of(areas.domain, KEYS)
    await areas.second.enrolments.find_out(found, areas.tenant, (areas.domain, "ann"), "ann")  # type: ignore[arg-type]
    assert await monitored(listener) == ("reject", WEAK)
    assert (script.looked_up, script.disturbed, keys.disturbed) == ([], False, False)


async def monitored(listener: FakeListener) -> tuple[str, str]:
    """Return the decision of enforce mode and its reason; the login is accepted."""
    decision = await listener.decide(listener.login(pap("ann", "hello")))
    assert decision.applied == "accept"
    return decision.would_have_been, decision.reason


async def test_enrolments_at_several_providers(areas: Areas, script: Script, keys: Script) -> None:
    """The enrolments of a user at several providers do not replace each other."""
    script.enrolment = Enrolment.NOT_ENROLLED
    enrolments, user = areas.second.enrolments, (areas.domain, "ann")
    found = areas.providers.of(areas.domain, KEYS)
    for each in (attached(areas), found):
        await enrolments.find_out(each, areas.tenant, user, "ann")  # type: ignore[arg-type]
    assert enrolments.known(attached(areas), user) == "not enrolled"
    assert enrolments.known(found, user, Strength.PHISHING_RESISTANT) == "second factor asked for"  # type: ignore[arg-type]
    assert (script.looked_up, keys.looked_up) == (["ann"], ["ann"])
    enrolments.forget(areas.domain, "ann")
    assert enrolments.known(attached(areas), user) is enrolments.known(found, user) is None  # type: ignore[arg-type]
    assert NAME != KEYS
