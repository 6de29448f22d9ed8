"""Tests of the rule test, which shows the rule that decides a hypothetical login, and the reason."""

from typing import Any

import pytest
import trio

from sallyport.areas.domains.domain import Fallback, FirstFactor, Mode, UnknownStations
from sallyport.areas.domains.repo import Update
from sallyport.areas.login.login import Reason, Verdict
from sallyport.areas.login.second.session import ChallengeKind
from sallyport.areas.mfa import provider as mfa
from sallyport.areas.policy.bypass.station import StationChange
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.rule import Action
from sallyport.areas.preview.rule_test import Question, RuleTestResult
from sallyport.areas.sessions.report import Status
from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid, NotFound
from sallyport.radius.attributes import pull_attributes
from tests.areas import Areas
from tests.areas.login.conftest import Answers, FakeListener
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.limits import record, sends_interims
from tests.areas.preview.conftest import Keys, Scripted
from tests.packets import attributes, pap
from tests.waiting import until

MAC = "02:00:00:00:00:01"


async def rule(areas: Areas, name: str, action: str, **fields: Any) -> int:
    """Add a rule to the domain and return its ID."""
    body = {"name": name, "action": action, **fields}
    return await areas.rules.add(areas.domain, RuleFields.model_validate(body))


async def ask(areas: Areas, user: str = "ann", **facts: Any) -> RuleTestResult:
    """Return the result of a hypothetical login now."""
    return await areas.app.preview.rule_test.run(areas.domain, Question(user, areas.clock(), **facts))


def read(answer: RuleTestResult) -> list[tuple[str, str, str, str]]:
    """Return the evaluated rules in order. Each has its name, its result, the scope and the value of the login."""
    return [(each.rule.name, each.result, each.scope, each.has) for each in answer.rules]


@pytest.fixture
async def office(areas: Areas) -> Areas:
    """The areas with the user ann and the RADIUS client vpn, which is a Cisco ASA."""
    await areas.add_user(areas.domain, "ann", b"hello")
    await areas.client("192.0.2.1/32", name="vpn", product="Cisco ASA")
    return areas


async def test_the_provider_of_the_rule_is_named(office: Areas) -> None:
    """The answer has the provider that the rule names, and the result of asking it."""
    office.kinds.update(scripted=Scripted, keys=Keys)
    await office.providers.set(office.domain, "scripted", {"enrolled": "ann,bob"}, 60)
    await office.providers.set(office.domain, "keys", {"strong": "eve"}, 60, beside=True)
    await office.add_user(office.domain, "bob", b"hello")
    assert ((await ask(office)).provider, (await ask(office)).second) == ("scripted", Reason.ASKED)
    await rule(office, "keys", "mfa_required", users=["ann"], provider="keys", strength="phishing_resistant")
    answer = await ask(office)
    assert (answer.provider, answer.second, answer.decision.decision) == (
        "keys", Reason.NOT_STRONG_ENOUGH, Verdict.REJECT,
    )  # fmt: skip
    assert (await ask(office, "bob")).provider == "scripted"


async def test_each_rule_before_the_deciding_one_has_its_reason(office: Areas) -> None:
    """The reason has the scope that does not match and the value of the login.

    Rules after the deciding rule are not evaluated.
    """
    await rule(office, "bob's", "allow", users=["bob"])
    await rule(office, "admins", "block", groups=["admins"])
    await rule(office, "off", "block", enabled=False, everyone=True)
    await rule(office, "elsewhere", "block", clients=["198.51.100.0/24"])
    await rule(office, "at night", "block", time={"from": "01:00", "until": "02:00"})
    await rule(office, "switches", "block", products=["Cisco IOS"], kinds=["user"])
    decides = await rule(office, "vpn", "mfa_required", clients=["VPN"])
    await rule(office, "last", "block", everyone=True)
    answer = await ask(office, client="vpn")
    assert answer.rule is not None and answer.rule.id == decides
    assert read(answer) == [
        ("bob's", "differs", "users", "ann"),
        ("admins", "differs", "groups", "none"),
        ("off", "disabled", "", ""),
        ("elsewhere", "differs", "clients", "vpn, 192.0.2.1"),
        ("at night", "differs", "time", "2026-01-01T00:00:00.000000Z"),
        ("switches", "differs", "products", "Cisco ASA"),
        ("vpn", "decides", "", ""),
    ]


async def test_a_missing_fact_is_no_exemption(office: Areas) -> None:
    """If the client is not given, a rule that allows it is skipped, and a stricter rule that may match decides."""
    await rule(office, "let in", "allow", clients=["vpn"])
    blocks = await rule(office, "blocked", "block", clients=["vpn"], users=[])
    await rule(office, "rest", "mfa_required")
    answer = await ask(office)
    assert answer.rule is not None and answer.rule.id == blocks
    assert read(answer) == [
        ("let in", "may match", "clients", "not known"),
        ("blocked", "decides", "clients", "not known"),
        ("rest", "matches", "", ""),
    ]


async def test_the_given_time_is_used(office: Areas) -> None:
    """An hour later, the same login has another result."""
    await rule(office, "at night", "block", time={"from": "01:00", "until": "02:00"})
    office.clock.pass_by(1800)  # type: ignore[attr-defined]
    assert (await ask(office)).rule is None
    later = Question("ann", office.clock() + 3600 * SECOND)
    answer = await office.app.preview.rule_test.run(office.domain, later)
    assert read(answer) == [("at night", "decides", "", "")]
    assert (answer.decision.decision, answer.decision.applied) == (Verdict.REJECT, Verdict.ACCEPT)


async def test_facts_are_taken_from_the_inventory(office: Areas) -> None:
    """If product and medium are not given, they are those of the device at the client's address."""
    listener = FakeListener(office, office.client_named("vpn"), Answers())
    login = await listener.ready(pap("ann", "hello", attributes(NAS_PORT_TYPE=(19).to_bytes(4))))
    office.journal.add(login)
    office.journal.flush()
    await listener.answers.recorded.wait()
    await office.devices.flush()
    await rule(office, "wlan", "block", media=["Wireless"], products=["Cisco ASA"])
    assert (await ask(office, client="192.0.2.1")).rule is not None
    assert (await ask(office, client="vpn", medium="Ethernet")).rule is None


async def test_a_rule_test_writes_nothing(office: Areas) -> None:
    """The inventory, the log of logins and the lock-outs do not change, and no user gets a prompt."""
    office.kinds["scripted"] = Scripted
    await office.providers.set(office.domain, "scripted", {"enrolled": "ann"}, 60)
    changes = office.store.changes
    answer = await ask(office, client="vpn", station=MAC, nas="10.0.0.1", nas_identifier="x", service_type=2)
    assert (answer.second, answer.decision.decision) == (Reason.ASKED, Verdict.CHALLENGE)
    await office.devices.flush()
    assert office.store.changes == changes
    sql = "select id from devices union all select id from stations union all select id from events"
    assert await office.store.read(lambda tx: tx.rows(sql)) == []


async def test_enrolment_requests_are_rate_limited(office: Areas) -> None:
    """In a minute the provider is asked about at most ten users, once about each.

    The enrolments of other users are unknown.
    """
    office.kinds["scripted"] = Scripted
    await office.providers.set(office.domain, "scripted", {"enrolled": "user0"}, 60)
    Scripted.calls.clear()
    for number in range(12):
        await office.add_user(office.domain, f"user{number}", b"x")
    seconds = [(await ask(office, f"user{number}")).second for number in range(12)]
    assert seconds == [Reason.ASKED] + [Reason.NOT_ENROLLED] * 9 + [Reason.ENROLMENT_UNKNOWN] * 2
    assert (await ask(office, "user0")).second is Reason.ASKED
    assert len(Scripted.calls) == 10


async def test_a_listed_station_is_accepted_by_its_address(office: Areas) -> None:
    """A listed station needs neither a password nor a second factor. A rule can block it."""
    await office.bypass.add(office.domain, ["020000000001"])
    answer = await ask(office, MAC, station=MAC)
    assert (answer.bypass, answer.decision.decision) == (True, Verdict.ACCEPT)
    assert not (await ask(office, MAC, station="02:00:00:00:00:02")).bypass
    await rule(office, "no stations", "block", kinds=["station"])
    assert (await ask(office, MAC, station=MAC)).decision.decision is Verdict.REJECT


async def test_an_entry_gives_its_vlan(office: Areas) -> None:
    """The attributes of a listed station are those of its entry."""
    await office.bypass.put(office.domain, [StationChange("020000000001", vlan="30")])
    await rule(office, "stations", "allow", kinds=["station"], vlan="1")
    answer = await ask(office, MAC, station=MAC)
    assert [value for kind, value in pull_attributes(memoryview(answer.attributes)) if kind == 81] == [b"30"]


@pytest.mark.parametrize("mode", Mode)
async def test_an_unknown_station_needs_a_rule(office: Areas, mode: Mode) -> None:
    """If rules decide about unknown stations, the test decides as a login would, in both modes."""
    await office.domains.set_mode([office.domain], mode)
    await office.domains.update(office.domain, Update(settings={"unknown_stations": UnknownStations.RULES}))
    await rule(office, "all", "allow", everyone=True, vlan="1")
    answer = await ask(office, MAC, station=MAC)
    assert (answer.bypass, answer.first, answer.rules) == (False, Reason.UNKNOWN_STATION, [])
    assert (answer.action, answer.decision.applied) == (Action.BLOCK, Verdict.REJECT)
    await rule(office, "no network", "allow", kinds=["unknown"], priority=900)
    answer = await ask(office, MAC, station=MAC)
    assert (answer.action, answer.decision.reason) == (Action.BLOCK, Reason.UNKNOWN_STATION)
    assert "the rule gives no VLAN or role at this NAS, so it admits no unknown station" in answer.warnings
    await rule(office, "guests", "allow", kinds=["unknown"], vlan="99")
    answer = await ask(office, MAC, station=MAC)
    assert (answer.bypass, answer.decision.applied) == (True, Verdict.ACCEPT)
    assert answer.rule is not None and answer.rule.name == "guests"
    await rule(office, "out", "block", stations=[MAC], priority=1)
    answer = await ask(office, MAC, station=MAC)
    assert (answer.decision.applied, answer.decision.reason) == (Verdict.REJECT, Reason.BLOCKED)


async def test_rejections_of_the_first_factor(office: Areas) -> None:
    """An unknown user or an unknown realm is rejected.

    A login is also rejected if the first factor is not configured or does not trust the client.
    """
    assert (await ask(office, "bob")).first is Reason.UNKNOWN_USER
    assert (await ask(office, "ann@nowhere")).first is Reason.UNKNOWN_REALM
    assert (await ask(office, "ann@corp")).first is Reason.NONE
    unset = await office.domains.add(office.tenant, "unset", first_factor=FirstFactor.LDAP)
    asked = Question("ann", office.clock())
    assert (await office.app.preview.rule_test.run(unset, asked)).first is Reason.FIRST_FACTOR_UNAVAILABLE
    await office.first_settings.set(office.domains.table.by_id[office.domain], FirstFactor.NONE, {})
    assert (await ask(office, client="vpn")).first is Reason.MAY_NOT_VOUCH


async def test_the_fallback_decides_without_a_provider(office: Areas) -> None:
    """In a domain that enforces without a provider, the fallback decides."""
    await office.domains.set_mode([office.domain], Mode.ENFORCE, Fallback.ALLOW)
    answer = await ask(office)
    assert (answer.second, answer.decision.applied) == (Reason.NO_PROVIDER, Verdict.ACCEPT)
    await office.domains.set_mode([office.domain], Mode.ENFORCE, Fallback.DENY)
    assert (await ask(office)).decision.applied is Verdict.REJECT


class Waits(Scripted):
    """A provider whose users never answer."""

    async def start(self, question: mfa.Question) -> mfa.Answer:
        """Send a prompt to a phone."""
        return mfa.Answer(mfa.Outcome.WAITING, handle="prompt")

    async def poll(self, handle: str) -> mfa.Answer:
        """Wait on."""
        return mfa.Answer(mfa.Outcome.WAITING, handle=handle)


async def is_asked(areas: Areas, user: str) -> bool:
    """Return whether a prompt for an approval waits for the user."""
    return [each.kind for each in (await ask(areas, user)).prompts] == [ChallengeKind.APPROVAL]


async def test_open_prompts_of_the_user_are_listed(office: Areas) -> None:
    """A sent challenge waits for a code until it expires, and a prompt on a phone waits while its request does."""
    office.kinds |= {"scripted": Scripted, "waits": Waits}
    await office.providers.set(office.domain, "scripted", {"enrolled": "ann,bob"}, 60)
    await office.domains.set_mode([office.domain], Mode.ENFORCE)
    await office.add_user(office.domain, "bob", b"hello")
    listener = FakeListener(office, office.client_named("vpn"), Answers())
    login = await listener.ready(pap("ann", "hello", attributes(NAS_IDENTIFIER=b"vpn-1")))
    assert login.answer.decision.applied is Verdict.CHALLENGE
    office.journal.add(login)
    office.journal.flush()
    await office.journal.drained()
    (prompt,) = (await ask(office, "ANN")).prompts
    assert (prompt.kind, prompt.question.device) == (ChallengeKind.CODE, "vpn-1")
    assert (await ask(office, "bob")).prompts == []
    await office.wait(600)
    assert (await ask(office)).prompts == []
    await office.providers.set(office.domain, "waits", {"enrolled": "ann,bob"}, 60)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.decide, listener.login(pap("bob", "hello", identifier=7)))
        await until(lambda: is_asked(office, "bob"))
        nursery.cancel_scope.cancel()


async def test_a_client_of_another_domain_is_a_warning(office: Areas) -> None:
    """Logins of the client belong to the client's own domain. A client of another tenant is not found."""
    branch = await office.domains.add(office.tenant, "branch")
    await office.client("192.0.2.2/32", name="branch nas", domain_ids=(branch,))
    (warning,) = (await ask(office, client="branch nas")).warnings
    assert "does not serve this domain" in warning
    other = await office.tenancy.ensure_tenant(2, 1)
    await office.domains.add(other, "theirs")
    await office.client("203.0.113.9/32", name="foreign", tenant=other)
    for client in ("foreign", "203.0.113.9", "nothing"):
        with pytest.raises(NotFound):
            await ask(office, client=client)
    for facts in ({"station": "x" * 254}, {"nas_identifier": "é" * 200}):
        with pytest.raises(Invalid):
            await ask(office, **facts)
    with pytest.raises(Invalid):
        await ask(office, "x" * 129)


async def test_the_limit_of_parallel_sessions_is_shown(office: Areas) -> None:
    """The test counts the sessions at present, and decides as a login would. Without a device it cannot know."""
    await rule(office, "limited", "allow", users=["ann"], maxSessions=1)
    async with trio.open_nursery() as nursery:
        wire = Wire(office, nursery)
        await sends_interims(wire)
        await record(wire, Status.START, 1)
        nursery.cancel_scope.cancel()
    shown = await ask(office, client="vpn", nas_identifier="ap-1")
    assert shown.parallel is not None and (shown.parallel.count, shown.parallel.is_over) == (1, True)
    assert (shown.decision.decision, shown.decision.applied) == (Verdict.REJECT, Verdict.ACCEPT)
    assert shown.decision.reason is Reason.TOO_MANY_SESSIONS
    without = await ask(office)
    assert (without.parallel, without.decision.decision) == (None, Verdict.ACCEPT)
    assert any("limit of parallel sessions" in each for each in without.warnings)
