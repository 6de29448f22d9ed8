"""Tests of the impact preview. It computes from recorded logins which users would be challenged or denied."""

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from sallyport.areas.domains.bodies import Survey, Tally
from sallyport.areas.domains.domain import Domain, Effect, FirstFactor
from sallyport.areas.login.login import Reason
from sallyport.areas.login.second.forecast import Standing
from sallyport.areas.mfa.circuit import Guarded
from sallyport.areas.policy.roles.role import ReplySet
from sallyport.areas.policy.rules.rule import Reply
from sallyport.areas.preview.bodies import ProposedRule
from sallyport.areas.preview.enrolled import SecondFactors
from sallyport.areas.preview.repo import PASSED
from sallyport.areas.preview.service import NO_CHALLENGES, Preview
from sallyport.areas.preview.traffic import TrafficReader
from sallyport.areas.sessions.report import Status
from sallyport.areas.sessions.service import Record, write_records
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.membership import Action as AssignmentAction
from sallyport.base.errors import Invalid, NotFound
from sallyport.metrics import MfaMetrics
from sallyport.radius.password import Method
from tests.areas import Areas
from tests.areas.directory.world import group, imported, person
from tests.areas.login.test_decision import FIRST
from tests.areas.preview.conftest import DAY, HOUR, Book, OnlyCodes, Scripted
from tests.areas.sessions.records import report


def test_each_reason_is_of_the_first_factor_or_later() -> None:
    """For each reason the preview knows whether the first factor was right."""
    assert set(Reason) == set(PASSED) | set(FIRST)
    assert not set(PASSED) & set(FIRST)


async def test_a_domain_without_logins(book: Book) -> None:
    """Without recorded logins no user is listed. The answer still has the time of the preview."""
    impact = await book.impact(days=2)
    assert (impact.users, impact.devices, impact.logins, impact.counts.denied) == ([], [], 0, 0)
    assert (impact.since, impact.until) == ("2025-12-30T00:00:00.000000Z", "2026-01-01T00:00:00.000000Z")
    assert impact.policyVersion == book.areas.configuration.version


async def test_outcomes_of_users(book: Book) -> None:
    """The outcome depends on enrolment and rules.

    Users with the worst outcome come first, then users with the most logins. Each name is listed once, regardless of
    case.
    """
    await book.provider(enrolled="ann,cy")
    await book.users("ann", "bob", "cy", "dan", "eve")
    await book.rule(action="allow", users=["dan"])
    await book.rule(action="block", users=["eve"])
    await book.events(["ann", "ANN", "cy", "bob", "dan", "eve", "eve", "ann"])
    assert await book.outcomes() == {
        "eve": ("reject", "blocked by rule", 2),
        "bob": ("reject", "not enrolled", 1),
        "ann": ("challenge", "second factor asked for", 3),
        "cy": ("challenge", "second factor asked for", 1),
        "dan": ("accept", "", 1),
    }
    impact = await book.impact()
    assert [each.user for each in impact.users] == ["eve", "bob", "ann", "cy", "dan"]
    assert impact.counts.users.model_dump() == {"accept": 1, "challenge": 2, "reject": 2, "unknown": 0}
    assert (impact.counts.denied, impact.logins) == (2, 8)
    assert {each.lastSeen for each in impact.users} == {"2025-12-31T23:00:00.000000Z"}


async def test_a_user_who_can_enrol_at_the_challenge(book: Book) -> None:
    """The reason says that a login gets an enrolment link. The login is refused all the same."""
    await book.provider(enrolled="ann", shows=True)
    await book.users("ann", "bob")
    await book.events(["ann", "bob"])
    assert await book.outcomes() == {
        "bob": ("reject", "not enrolled: the challenge shows an enrolment link", 1),
        "ann": ("challenge", "second factor asked for", 1),
    }


async def test_rules_choose_the_provider_and_the_strength(book: Book) -> None:
    """Each user is looked up at the provider of the rule that decides the user's logins. A factor that is too weak has
    its reason."""
    await book.provider(enrolled="ann,cy")
    await book.keys(strong="cy,dan")
    await book.users("ann", "bob", "cy", "dan", "eve")
    await book.rule(action="mfa_required", users=["cy", "eve"], provider="keys", strength="phishing_resistant")
    await book.rule(action="mfa_required", users=["dan"], provider="keys")
    await book.events(["ann", "bob", "cy", "dan", "eve"])
    Scripted.calls.clear()
    survey = await book.areas.preview.survey(book.areas.domain)
    assert (survey.users, survey.left) == (5, 0)
    assert sorted(Scripted.calls) == ["ann", "bob", "cy", "dan", "eve"]
    asked = "second factor asked for"
    assert {name: reason for name, (_, reason, _) in (await book.outcomes()).items()} == {
        "ann": asked, "bob": "not enrolled", "cy": asked, "dan": asked, "eve": "not strong enough",
    }  # fmt: skip
    assert sorted(Scripted.calls) == ["ann", "bob", "cy", "dan", "eve"]


async def test_the_effect_of_a_rule_that_names_a_provider(book: Book) -> None:
    """A proposed rule is decided with its own provider, also before it is stored. A provider that the domain does not
    have is refused."""
    await book.provider(enrolled="ann,bob")
    await book.keys(strong="ann")
    await book.users("ann", "bob")
    await book.events(["ann", "bob"])
    fields = {"name": "keys", "action": "mfa_required", "users": ["ann", "bob"], "strength": "phishing_resistant"}
    proposed = ProposedRule.model_validate({**fields, "provider": "keys"})
    impact = await book.impact(proposed=proposed)
    assert {each.user: each.reason for each in impact.users} == {
        "ann": "second factor asked for", "bob": "not strong enough",
    }  # fmt: skip
    for wrong, field in (({"provider": "duo", "strength": "any"}, "provider"), ({}, "strength")):
        with pytest.raises(Invalid) as raised:
            await book.impact(proposed=ProposedRule.model_validate({**fields, **wrong}))
        assert raised.value.fields[0].field == field


async def test_logins_with_a_wrong_first_factor_are_ignored(book: Book) -> None:
    """Logins of another domain and older logins are ignored, whatever their mode was."""
    await book.provider(enrolled="ann")
    await book.users("ann", "bob", "cy")
    other = await book.areas.domains.add(book.areas.tenant, "branch")
    for reason in FIRST:
        await book.events(["bob"], reason=reason.value, decision="reject", applied_decision="reject")
    for domain in (other, 0):
        await book.events(["bob"], domain_id=domain)
    await book.events(["bob"], at=book.areas.clock() - 2 * DAY - 1)
    await book.events(["bob"], at=book.areas.clock() + HOUR)
    await book.events(["ann"], at=book.areas.clock() - 2 * DAY)
    await book.events(["ann"], at=book.areas.clock(), reason="not enrolled", decision="reject")
    assert await book.outcomes(days=2) == {"ann": ("challenge", "second factor asked for", 2)}
    assert (await book.outcomes(days=3))["bob"][2] == 1


async def test_a_removed_user(book: Book) -> None:
    """A removed user is rejected as unknown, and is not counted among the users that enforce mode would deny."""
    await book.provider(enrolled="ann")
    await book.events(["ann"])
    impact = await book.impact()
    outcomes = [(each.user, each.outcome, each.reason, each.gone) for each in impact.users]
    assert outcomes == [("ann", "reject", "unknown user", True)]
    assert (impact.counts.users.reject, impact.counts.denied) == (1, 0)


async def test_a_user_who_has_left_another_first_factor(book: Book) -> None:
    """Only local users are known to be removed. With another first factor, a user who has left is refused as not
    enrolled, and counts as denied.
    """
    areas = book.areas
    await book.provider(enrolled="bob")
    await areas.first_settings.set(areas.domains.table.by_id[areas.domain], FirstFactor.NONE, {})
    await book.events(["ann"])
    impact = await book.impact()
    outcomes = [(each.user, each.outcome, each.reason, each.gone) for each in impact.users]
    assert outcomes == [("ann", "reject", "not enrolled", False)]
    assert impact.counts.denied == 1


@pytest.mark.parametrize(("fallback", "outcome", "denied"), [("deny", "reject", 1), ("allow", "accept", 0)])
async def test_without_a_provider_the_fallback_decides(book: Book, fallback: str, outcome: str, denied: int) -> None:
    """If the provider is missing or unreachable, the fallback decides: the given one, or else the one of the domain."""
    await book.users("ann")
    device = await book.device()
    await book.events(["ann"], device_id=device)
    for reason in ("no provider", "provider unreachable"):
        impact = await book.impact(fallback=fallback)
        assert [(each.outcome, each.reason) for each in impact.users] == [(outcome, reason)]
        assert impact.counts.users.reject == denied
        await book.provider(away=True)


async def test_logins_that_cannot_carry_a_code_are_denied(book: Book) -> None:
    """If a code is always needed, a user is denied when the login method cannot carry a code.

    A device that uses only such methods is denied too. With another method the same user is challenged.
    """
    await book.users("ann", "bob", "eve")
    switch, gateway = await book.device("switch"), await book.device("gateway")
    book.areas.kinds["scripted"] = OnlyCodes
    await book.areas.providers.set(book.areas.domain, "scripted", {"enrolled": "ann,bob,eve"}, 60)
    await book.events(["ann"], device_id=switch, method="eap-peap-mschapv2")
    await book.events(["bob"], device_id=gateway, device_name="gateway", method=Method.PAP)
    await book.events(["eve"], device_id=gateway, device_name="gateway", method=Method.PEAP_GTC)
    await book.events(["eve"], device_id=switch, method=Method.MSCHAP2)
    impact = await book.impact()
    no_code = "this kind of login cannot ask for a code"
    assert sorted((each.user, each.outcome, each.reason) for each in impact.users) == [
        ("ann", "reject", no_code),
        ("bob", "challenge", "second factor asked for"),
        ("eve", "reject", no_code),
    ]
    assert sorted((each.device_name, each.outcome, each.reason) for each in impact.devices) == [
        ("gateway", "challenge", "second factor asked for"),
        ("switch", "reject", no_code),
    ]
    assert impact.counts.denied == 3


async def test_an_unknown_enrolment_is_listed_as_unknown(book: Book) -> None:
    """A user whose enrolment is unknown is not counted as denied."""
    await book.provider(unsure=True)
    await book.users("ann")
    await book.events(["ann"])
    impact = await book.impact()
    outcomes = [(each.user, each.outcome, each.reason) for each in impact.users]
    assert outcomes == [("ann", "unknown", "enrolment not known yet")]
    assert (impact.counts.users.unknown, impact.counts.denied) == (1, 0)


async def test_the_provider_is_asked_about_the_most_active_users(book: Book) -> None:
    """The provider is not asked about a user again within a minute. The enrolments of less active users are unknown."""
    names = [f"u{number:02}" for number in range(60)]
    await book.provider(enrolled=",".join(names))
    await book.users(*names)
    await book.events(names + names[10:])
    for _ in range(2):
        counts = (await book.impact()).counts.users
        assert (counts.challenge, counts.unknown) == (50, 10)
    assert sorted(Scripted.calls) == names[10:]


async def test_an_enormous_number_of_users(book: Book) -> None:
    """All users are counted and a thousand are listed. Users with the worst outcome are always among these."""
    names = [f"user{number}" for number in range(1500)]
    await book.rule(action="block", users=["user1400"])
    await book.rule(action="allow", users=["user1401"])
    await book.areas.store.write(
        lambda tx: tx.insert(
            "endpoint_users",
            ("domain_id", "name", "name_key", "user_type", "credential_type", "created_at", "updated_at"),
            [(book.areas.domain, name, name, "Local", "Password", 0, 0) for name in names],
        )
    )
    await book.events(names)
    impact = await book.impact(fallback="allow")
    assert impact.counts.users.model_dump() == {"accept": 1499, "challenge": 0, "reject": 1, "unknown": 0}
    assert (len(impact.users), impact.users[0].user, impact.logins) == (1000, "user1400", 1500)


async def test_outcomes_of_devices(book: Book) -> None:
    """The outcome of a device is that of its logins, as if all their users were enrolled.

    A device that never answered a challenge is marked. A device that is not in the inventory is left out, and a device
    that registered again has its new ID.
    """
    await book.provider(enrolled="ann")
    await book.users("ann", "bob")
    vpn, wifi = await book.device("vpn"), await book.device("wifi", unanswered=9, challenged_at=book.areas.clock())
    await book.rule(action="block", clients=["192.0.2.99"])
    await book.events(["ann", "bob"], device_id=vpn, device_name="vpn")
    await book.events(["ann"], device_id=wifi, device_name="wifi")
    await book.events(["ann"], device_id=9999, device_name="gone")
    blocked = await book.device("lobby")
    await book.events(["ann"], device_id=9998, device_name="lobby", ip_address="192.0.2.99")
    await book.events(["ann"], device_id=blocked, device_name="lobby", ip_address="192.0.2.99")
    await book.events(["ann"], device_id=9997, device_name="vpn")
    impact = await book.impact()
    outcomes = {each.device_id: (each.device_name, each.outcome.value, each.reason) for each in impact.devices}
    assert outcomes == {
        blocked: ("lobby", "reject", "blocked by rule"),
        vpn: ("vpn", "challenge", "second factor asked for"),
        wifi: ("wifi", "challenge", NO_CHALLENGES),
    }
    assert impact.counts.devices.model_dump() == {"accept": 0, "challenge": 2, "reject": 1, "unknown": 0}
    assert impact.counts.denied == 3


class HalfAMinute(Guarded):
    """A provider whose users take half a minute to answer."""

    def p95_s(self) -> float | None:
        return 30.0


class Slow(SecondFactors):
    """A view of the providers in which users take half a minute to answer."""

    def of(self, domain: Domain, provider: str = "") -> Standing:
        found = super().of(domain)
        assert found.attached is not None
        provider = HalfAMinute(found.attached.provider.provider, MfaMetrics(CollectorRegistry()))
        return replace(found, attached=replace(found.attached, provider=provider))


async def test_users_of_an_impatient_device_are_denied(book: Book) -> None:
    """A device is impatient if it gives up before users answer, unless it answers challenges."""
    areas = book.areas
    await book.provider(enrolled="ann,bob,cy,dan")
    await book.users("ann", "bob", "cy", "dan", "eve")
    short, long = await book.device("short", give_up_ms=20_000), await book.device("long", give_up_ms=60_000)
    able = await book.device("able", give_up_ms=20_000, answered_at=areas.clock(), challenged_at=areas.clock())
    for user, device in (("ann", short), ("bob", long), ("cy", able), ("dan", 0), ("eve", short)):
        await book.events([user], device_id=device)
    slow = Slow(areas.providers, areas.second.enrolments)
    traffic = TrafficReader(areas.store, areas.roles, areas.clients.table.find, areas.devices.tags)
    preview = Preview(traffic, areas.configuration, areas.domains, areas.rules, slow, areas.clock)
    impact = await preview.impact(areas.domain)
    gives_up = "device gives up sooner than the provider answers"
    assert {each.user: each.reason for each in impact.users if each.outcome is Effect.REJECT} == {
        "ann": gives_up, "eve": "not enrolled",
    }  # fmt: skip
    assert {each.device_name: each.reason for each in impact.devices if each.outcome is Effect.REJECT} == {
        "short": gives_up
    }


async def test_logins_are_distinguished_by_the_facts_of_rules(book: Book) -> None:
    """Logins of a user are judged separately by station, Service-Type and time of day if a rule has these scopes."""
    await book.users("ann", "bob", "cy", "dan")
    await book.rule(action="allow", stations=["02-00-00-00-00-01"], serviceTypes=["Login-User"])
    await book.rule(action="block", time={"from": "22:00", "until": "23:30", "timezone": "UTC"})
    night = book.areas.clock() - HOUR
    for name, fields in {
        "ann": {"station": "0200.0000.0001", "service_type": 1, "at": night},
        "bob": {"station": "0200.0000.0001", "service_type": 2, "at": night},
        "cy": {"at": night - 2 * HOUR},
        "dan": {"station": "02-00-00-00-00-02", "service_type": 1, "at": night - 2 * HOUR},
    }.items():
        await book.events([name], **fields)
    assert await book.outcomes() == {
        "bob": ("reject", "blocked by rule", 1),
        "cy": ("reject", "no provider", 1),
        "dan": ("reject", "no provider", 1),
        "ann": ("accept", "", 1),
    }


async def test_a_rule_on_a_group_applies_to_its_present_members(book: Book) -> None:
    """The members of a group may be endpoint users or imported people."""
    areas = book.areas
    await book.users("ann", "bob", "cy")
    ann = await areas.users.load(areas.domain, "ann")
    assert ann is not None
    group_id = await areas.groups.add(areas.domain, Group("Guests"))
    await areas.groups.assign_users(areas.domain, group_id, [ann.id], AssignmentAction.ADD)
    await imported(areas, person("bob", ou="Visitors") + group("other"))
    await book.rule(action="block", groups=["guests"])
    await book.rule(action="block", ous=["visitors"])
    await book.events(["ann", "bob", "cy"])
    assert {name: reason for name, (_, reason, _) in (await book.outcomes()).items()} == {
        "ann": "blocked by rule", "bob": "blocked by rule", "cy": "no provider",
    }  # fmt: skip


def sliced(areas: Areas, slice_events: int) -> Preview:
    """Return a preview that reads only a few events at a time."""
    second = SecondFactors(areas.providers, areas.second.enrolments)
    traffic = TrafficReader(
        areas.store, areas.roles, areas.clients.table.find, areas.devices.tags, slice_events=slice_events
    )
    return Preview(traffic, areas.configuration, areas.domains, areas.rules, second, areas.clock)


async def test_a_preview_in_slices_has_the_same_result(areas: Areas, book: Book) -> None:
    """If a domain has many events, the preview reads a few of them at a time."""
    await book.users("ann", "bob")
    await book.rule(action="block", time={"days": ["mon"], "timezone": "Europe/Berlin"})
    for hours in range(1, 700, 7):
        await book.events(["ann", "bob"][: 1 + hours % 2], at=areas.clock() - hours * HOUR)
    whole = await book.impact()
    assert await sliced(areas, 3).impact(areas.domain) == whole
    assert whole.logins == 150
    await book.events(["ann"] * 9, at=areas.clock() - 8 * HOUR)  # more events of one time than a slice has
    assert await sliced(areas, 3).impact(areas.domain) == await book.impact()


async def test_a_preview_is_limited_to_the_newest_pairs(areas: Areas, book: Book) -> None:
    """A limited preview stops after the slice that has reached the number of pairs. It says so, with the time of the
    oldest entry that it has read.
    """
    await book.users("ann", "bob")
    await book.events(["bob"], at=areas.clock() - 3 * HOUR)
    await book.events(["ann", "ann"], at=areas.clock() - 2 * HOUR)
    await book.events(["ann"], at=areas.clock() - HOUR)
    preview = sliced(areas, 2)
    limited = await preview.impact(areas.domain, pairs=1)
    assert [each.user for each in limited.users] == ["ann"]
    assert (limited.logins, limited.isWhole, limited.since) == (3, False, "2025-12-31T22:00:00.000000Z")
    for whole in (await preview.impact(areas.domain, pairs=2), await preview.impact(areas.domain)):
        assert (whole.logins, whole.isWhole) == (4, True)
        assert whole.since < "2025-12-03"


async def test_computers_by_certificate(book: Book) -> None:
    """A computer that has the name of a user is recognized by its certificate.

    A rule for users does not apply to it, and the logins of the user and of the computer are judged separately.
    """
    await book.users("pc1", "ann")
    await book.provider(enrolled="ann,pc1")
    await book.rule(action="allow", kinds=["machine"])
    await book.events(["pc1"], method="eap-tls", machine=1)
    await book.events(["ann"])
    outcomes = await book.outcomes()
    assert (outcomes["pc1"][0], outcomes["ann"][0]) == ("accept", "challenge")
    await book.events(["pc1"], method="eap-tls")
    assert (await book.outcomes())["pc1"] == ("unknown", "enrolment not known yet", 2)


async def test_a_survey_asks_about_all_users(book: Book) -> None:
    """A survey asks about more users than a preview, once about each.

    The next preview uses the results. Another survey can be started on request.
    """
    names = [f"u{number}" for number in range(80)]
    await book.users(*names)
    await book.events([*names, "stranger"])
    await book.provider(enrolled="u0")
    preview, domain = book.areas.preview, book.areas.domain
    assert await preview.survey(domain) == Survey(users=80, left=0)
    assert sorted(Scripted.calls) == sorted(names)
    assert await preview.survey(domain) == Survey(users=80, left=0)
    assert len(Scripted.calls) == 80
    assert (await book.impact()).counts.users == Tally(challenge=1, reject=80)
    assert await preview.survey(domain, again=True) == Survey(users=80, left=0)
    assert len(Scripted.calls) == 160


async def test_a_survey_of_an_unreachable_provider(book: Book) -> None:
    """A survey of an unreachable provider has no results. It stops when the circuit is open."""
    names = [f"u{number}" for number in range(30)]
    await book.users(*names)
    await book.events(names)
    await book.provider(away=True)
    assert await book.areas.preview.survey(book.areas.domain) == Survey(users=30, left=30)
    assert len(Scripted.calls) < 10


async def test_the_rules_that_decide(book: Book) -> None:
    """Each rule is listed with the logins and users that it decides; a disabled rule and an unused rule are not."""
    await book.users("ann", "bob", "cy")
    await book.rule(name="printers", action="allow", users=["ann"])
    await book.rule(name="unused", action="block", users=["dan"])
    await book.rule(name="off", action="block", enabled=False, everyone=True)
    await book.events(["ann", "ANN", "bob", "cy", "ann", "cy"])
    rules = [(each.name, each.action, each.logins, each.users) for each in (await book.impact()).rules]
    assert rules == [("", "mfa_required", 3, 2), ("printers", "allow", 3, 1)]


async def test_a_proposed_rule(book: Book) -> None:
    """A rule that is not stored decides in the preview only: as a new rule, or as a change of a stored rule."""
    await book.provider(enrolled="ann")
    await book.users("ann", "bob")
    await book.rule(action="block", users=["bob"])
    await book.events(["ann", "bob"])
    (stored,) = book.areas.rules.all_of(book.areas.domain)
    new = await book.impact(proposed=ProposedRule.model_validate({"name": "x", "action": "block", "users": ["ann"]}))
    assert {each.user: each.outcome for each in new.users} == {"ann": Effect.REJECT, "bob": Effect.REJECT}
    assert [each.name for each in new.rules] == ["r", "x"]
    changed = await book.impact(proposed=ProposedRule.model_validate({"ruleId": stored.id, "action": "allow"}))
    assert {each.user: each.outcome for each in changed.users} == {"ann": Effect.CHALLENGE, "bob": Effect.ACCEPT}
    assert list(book.areas.rules.all_of(book.areas.domain)) == [stored]
    with pytest.raises(NotFound):
        await book.impact(proposed=ProposedRule.model_validate({"ruleId": stored.id + 1, "action": "allow"}))


async def test_a_proposed_rule_with_a_missing_role_is_refused(book: Book) -> None:
    """AddLoginRule would refuse it too. A wrong reply attribute is an error of its field."""
    await book.users("ann")
    await book.areas.roles.set(book.areas.domain, "staff", ReplySet(vlan="20"))
    given = {"name": "x", "action": "allow", "users": ["ann"]}
    assert (await book.impact(proposed=ProposedRule.model_validate({**given, "role": "STAFF"}))).logins == 0
    with pytest.raises(Invalid, match="role"):
        await book.impact(proposed=ProposedRule.model_validate({**given, "role": "staf"}))
    wrong = [{"name": "No-Such", "value": "1"}]
    with pytest.raises(Invalid):
        await book.impact(proposed=ProposedRule.model_validate({**given, "replyAttributes": wrong}))


@pytest.mark.parametrize("by_role", [True, False], ids=["of the role", "of a proposed rule"])
async def test_an_interval_that_the_answer_sends_counts(book: Book, *, by_role: bool) -> None:
    """A device that sends no interim updates by itself does so with Acct-Interim-Interval. If it has had sessions
    before, the limit is applied there."""
    await book.users("ann")
    sent = (Reply("Acct-Interim-Interval", "300"),)
    await book.areas.roles.set(book.areas.domain, "staff", ReplySet(reply_attributes=sent))
    await book.rule(action="allow", users=["ann"], maxSessions=2)
    (stored,) = book.areas.rules.all_of(book.areas.domain)
    device = await book.device("ap-7")
    await book.events(["ann"], device_id=device)
    for number, status in enumerate((Status.START, Status.STOP)):
        accounted = Record(book.areas.domain, device, report(status, 300 * number, b"s", USER_NAME="bob"))
        await book.areas.store.write(lambda tx, accounted=accounted: write_records(tx, [accounted]))  # type: ignore[misc]
    (shown,) = (await book.impact()).rules
    assert shown.unlimitedDevices == ["ap-7"]
    reply = {"replyAttributes": [{"name": "Acct-Interim-Interval", "value": "300"}]}
    change = {"ruleId": stored.id, **({"role": "staff"} if by_role else reply)}
    (shown,) = (await book.impact(proposed=ProposedRule.model_validate(change))).rules
    assert (shown.maxSessions, shown.unlimitedDevices) == (2, [])


async def test_devices_without_interim_updates_are_named(book: Book) -> None:
    """For a rule with a limit of parallel sessions, the preview names the devices at which it is not applied."""
    await book.users("ann")
    await book.rule(action="allow", users=["ann"], maxSessions=2)
    device = await book.device("ap-7")
    await book.events(["ann"], device_id=device)
    (shown,) = (await book.impact()).rules
    assert (shown.maxSessions, shown.unlimitedDevices) == (2, ["ap-7"])
    for number, status in enumerate((Status.START, Status.INTERIM)):
        accounted = Record(book.areas.domain, device, report(status, 300 * number, b"s", USER_NAME="bob"))
        await book.areas.store.write(lambda tx, accounted=accounted: write_records(tx, [accounted]))  # type: ignore[misc]
    (shown,) = (await book.impact()).rules
    assert shown.unlimitedDevices == []
