"""Live sessions are decided again after a change, shown as a list, and then ended or changed at the device."""

import json
from dataclasses import replace

import pytest
import trio
import trio.testing

from sallyport.areas.domains.domain import Mode
from sallyport.areas.policy.roles.role import ReplySet
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.rule import Reply
from sallyport.areas.reauthorization import repo
from sallyport.areas.reauthorization.deciding import (
    FEWER_ATTRIBUTES,
    MISSING_FACT,
    NOT_RECORDED,
    OTHER_ATTRIBUTES,
)
from sallyport.areas.reauthorization.reauthorization import MAX_KEPT
from sallyport.areas.reauthorization.repo import Live, PastLogin, login_of
from sallyport.areas.sessions.report import Status
from sallyport.base.errors import Conflict, NotFound
from sallyport.radius.dynamic import RequestKind
from sallyport.store.model import Tx
from tests.areas.dynamic.nas import nak
from tests.areas.dynamic.world import session, trail
from tests.areas.reauthorization.conftest import Office

FILTER_ID = 11
CHANGE, DISCONNECT = RequestKind.CHANGE, RequestKind.DISCONNECT


async def test_nothing_has_changed(office: Office) -> None:
    """Sessions whose logins would get the same answer do not change."""
    await office.rule("staff", "allow", users=["ann", "bob"], vlan="20")
    await office.log_in("ann")
    assert await office.preview() == {}
    found = await office.service.preview(office.areas.domain)
    assert (found.examined, found.counts.total()) == (1, 0)


async def test_each_way_to_change(office: Office) -> None:
    """A session changes if its user is blocked, needs a second factor, gets other attributes or fewer of them, or does
    not exist any more."""
    rule = await office.rule("staff", "allow", users=["ann", "bob", "cy"], vlan="20")
    ann, bob, cy = [await office.log_in(user) for user in ("ann", "bob", "cy")]
    await office.change(rule, vlan="30")
    assert await office.preview() == dict.fromkeys((ann, bob, cy), ("change", OTHER_ATTRIBUTES))
    await office.change(rule, vlan="")
    assert await office.preview() == dict.fromkeys((ann, bob, cy), ("disconnect", FEWER_ATTRIBUTES))
    await office.change(rule, vlan="20", action="mfa_required")
    assert await office.preview() == dict.fromkeys((ann, bob, cy), ("disconnect", "no provider"))
    await office.change(rule, action="allow")
    await office.rule("no ann", "block", users=["ann"], priority=1)
    await office.areas.remove_user(office.areas.domain, "cy")
    assert await office.preview() == {ann: ("disconnect", "blocked by rule"), cy: ("disconnect", "unknown user")}


async def test_monitor_mode_ends_no_session(office: Office) -> None:
    """In monitor mode a rule that blocks changes no session, but other attributes do."""
    rule = await office.rule("staff", "allow", users=["ann"], vlan="20")
    ann = await office.log_in("ann")
    await office.areas.domains.set_mode([office.areas.domain], Mode.MONITOR)
    await office.change(rule, action="block")
    assert await office.preview() == {}
    await office.change(rule, vlan="30")
    assert await office.preview() == {ann: ("change", OTHER_ATTRIBUTES)}


async def test_an_uncertain_session_stays(office: Office) -> None:
    """A session is not changed if its login is not recorded, or if a rule needs a fact that is not known."""
    await office.rule("staff", "allow", users=["ann", "bob"])
    ann = await office.log_in("ann")
    device = await office.areas.store.read(lambda tx: tx.value(int, "select id from devices")) or 0
    bob = await session(office.areas, (office.areas.domain, device), "x", Status.START, USER_NAME="bob")
    await office.rule("wired", "block", serviceTypes=["Framed"], users=["ann"], priority=1)
    assert await office.preview() == {ann: ("undecided", MISSING_FACT), bob: ("undecided", NOT_RECORDED)}
    run = await office.carried_out(await office.service.start(office.areas.domain))
    assert (run.state, run.examined, run.undecided, run.changed) == ("done", 2, 2, 0)
    assert office.nas.requests == []


async def test_facts_of_the_session_are_used(office: Office) -> None:
    """The facts of the login come from its event and from its session."""
    await office.rule("rest", "allow", users=["ann"])
    framed = await office.log_in("ann", SERVICE_TYPE=(2).to_bytes(4), NAS_PORT_TYPE=(19).to_bytes(4))
    await office.log_in("ann", SERVICE_TYPE=(1).to_bytes(4), NAS_PORT_TYPE=(15).to_bytes(4))
    rule = {"users": ["ann"], "serviceTypes": ["Framed"], "media": ["Wireless"], "clients": ["nas"]}
    await office.rule("no framed", "block", priority=1, **rule)
    assert await office.preview() == {framed: ("disconnect", "blocked by rule")}


async def test_an_ssid_and_a_role(office: Office) -> None:
    """The SSID of the login is a fact, and a changed role changes the sessions of its rules."""
    areas, domain = office.areas, office.areas.domain
    await areas.app.roles.service.set(domain, "staff", ReplySet(reply_attributes=(Reply("Filter-Id", "a"),)))
    await office.rule("guests", "allow", users=["ann"], ssids=["guests"], role="staff")
    await office.rule("rest", "allow", users=["ann"])
    guest = await office.log_in("ann", CALLED_STATION_ID=b"02-00-00-00-00-aa:guests")
    other = await office.log_in("ann", CALLED_STATION_ID=b"02-00-00-00-00-aa:staff")
    assert await office.preview() == {}
    await areas.app.roles.service.set(domain, "staff", ReplySet(reply_attributes=(Reply("Filter-Id", "b"),)))
    assert await office.preview() == {guest: ("change", OTHER_ATTRIBUTES)}
    await office.rule("no staff", "block", users=["ann"], ssids=["staff"], priority=1)
    assert (await office.preview())[other] == ("disconnect", "blocked by rule")


async def test_an_attribute_that_only_the_event_has(office: Office) -> None:
    """An attribute that rules compare is taken from the event of the login. If the event lacks it, because no rule
    compared it then, the session is undecided."""
    await office.rule("rest", "allow", users=["ann"])
    before = await office.log_in("ann", CONNECT_INFO=b"old")
    rule = await office.rule("new", "allow", users=["ann"], attributes=["Connect-Info=new"], priority=1)
    after = await office.log_in("ann", CONNECT_INFO=b"new")
    await office.change(rule, action="block")
    found = await office.preview()
    assert found[after] == ("disconnect", "blocked by rule")
    assert found[before] == ("undecided", MISSING_FACT)


async def test_a_rule_about_certificates(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login by password surely has no certificate: a rule that allows by one does not match, and a rule that blocks
    by one matches, as for a new login. If the method may have a certificate that was not recorded, or if another fact
    is missing too, the session is undecided."""
    methods = {"ann": "pap", "bob": "eap-tls", "cy": "eap"}

    def of_method(tx: Tx, domain_id: int, user_key: str, session: Live) -> PastLogin | None:
        past = login_of(tx, domain_id, user_key, session)
        return None if past is None else replace(past, method=methods[user_key])

    monkeypatch.setattr(repo, "login_of", of_method)
    await office.rule("rest", "allow", users=["ann", "bob", "cy"])
    ann, bob, cy = [await office.log_in(user) for user in methods]
    laptops = await office.rule("laptops", "allow", users=[*methods], certificates=["issuer=Corp CA"], priority=1)
    undecided = dict.fromkeys((bob, cy), ("undecided", MISSING_FACT))
    assert await office.preview() == undecided
    await office.change(laptops, action="block")
    assert await office.preview() == {ann: ("disconnect", "blocked by rule"), **undecided}
    await office.change(laptops, action="allow", attributes=["Connect-Info=x"])
    assert await office.preview() == {ann: ("undecided", MISSING_FACT), **undecided}


async def test_a_resumed_session_has_the_method_of_its_full_login(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event of a login that has resumed a TLS session names the method of the full login, if rules compared it.
    Otherwise the session is undecided."""

    def resumed(tx: Tx, domain_id: int, user_key: str, session: Live) -> PastLogin | None:
        past = login_of(tx, domain_id, user_key, session)
        facts = json.dumps({"method": "peap-mschapv2"}) if user_key == "ann" else None
        return None if past is None else replace(past, method="eap-peap-resumed", facts=facts)

    monkeypatch.setattr(repo, "login_of", resumed)
    await office.rule("rest", "allow", users=["ann", "bob"])
    ann, bob = await office.log_in("ann"), await office.log_in("bob")
    await office.rule("no peap", "block", users=["ann", "bob"], methods=["peap-mschapv2"], priority=1)
    assert await office.preview() == {ann: ("disconnect", "blocked by rule"), bob: ("undecided", MISSING_FACT)}


async def test_a_station_of_the_bypass_list(office: Office) -> None:
    """The session of a listed station changes with its entry, and ends if the station is no longer listed."""
    mac, domain = "020000000001", office.areas.domain
    await office.areas.bypass.add(domain, [mac])
    found = await office.log_in(mac, mac)
    assert await office.preview() == {}
    await office.rule("stations", "allow", kinds=["station"], vlan="40")
    assert await office.preview() == {found: ("change", OTHER_ATTRIBUTES)}
    await office.areas.bypass.delete(domain, [mac])
    assert await office.preview() == {found: ("disconnect", "unknown station")}


async def test_a_run_asks_the_devices(office: Office) -> None:
    """A run sends a CoA-Request with the new attributes, or a Disconnect-Request, and stores the answers. The audit
    trail has each request."""
    rule = await office.rule(
        "staff", "allow", users=["ann", "bob"], replyAttributes=[{"name": "Filter-Id", "value": "a"}]
    )
    ann, bob = await office.log_in("ann"), await office.log_in("bob")
    await office.change(rule, replyAttributes=[{"name": "Filter-Id", "value": "b"}])
    await office.rule("no bob", "block", users=["bob"], priority=1)
    run_id = await office.service.start(office.areas.domain)
    with pytest.raises(Conflict):
        await office.service.start(office.areas.domain)
    run = await office.carried_out(run_id)
    assert (run.state, run.examined, run.changed, run.done, run.waiting) == ("done", 2, 2, 2, 0)
    requests = {each[0]: office.nas.values(place) for place, each in enumerate(office.nas.requests)}
    assert requests.keys() == {CHANGE, DISCONNECT}
    assert requests[CHANGE][FILTER_ID] == b"b"
    rows, total = await office.service.changes(office.areas.domain, run_id, offset=0, limit=10)
    assert total == 2
    assert [(each.session_id, each.effect, each.outcome) for each in rows] == [
        (ann, "change", "ack"), (bob, "disconnect", "ack"),
    ]  # fmt: skip
    assert (rows[0].before, rows[0].shown) == ("Filter-Id = a", "Filter-Id = b")
    reasons = [json.loads(changes)["reason"][1] for _, _, changes in await trail(office.areas)]
    assert sorted(reasons) == [
        f"re-authorization {run_id}: blocked by rule",
        f"re-authorization {run_id}: other attributes",
    ]


async def test_sessions_end_instead_of_being_changed(office: Office) -> None:
    """If the admin wishes it, sessions with other attributes end."""
    rule = await office.rule("staff", "allow", users=["ann"], vlan="20")
    await office.log_in("ann")
    await office.change(rule, vlan="30")
    await office.carried_out(await office.service.start(office.areas.domain, by_disconnect=True))
    assert [each[0] for each in office.nas.requests] == [DISCONNECT]


async def test_a_refusal_of_the_device_is_a_result(office: Office) -> None:
    """A NAK and its Error-Cause are stored."""
    office.nas.script = nak(401)
    rule = await office.rule("staff", "allow", users=["ann"], vlan="20")
    await office.log_in("ann")
    await office.change(rule, vlan="30")
    run_id = await office.service.start(office.areas.domain)
    await office.carried_out(run_id)
    (row,), _ = await office.service.changes(office.areas.domain, run_id, offset=0, limit=10)
    assert (row.outcome, row.error) == ("nak", "Unsupported-Attribute")


async def test_a_run_continues_after_a_restart(office: Office) -> None:
    """Stored changes without a result are sent by the next leader. Sessions that were examined are not examined
    again."""
    rule = await office.rule("staff", "allow", users=["ann", "bob"], vlan="20")
    for user in ("ann", "bob"):
        await office.log_in(user)
    await office.change(rule, vlan="30")
    run_id = await office.service.start(office.areas.domain)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(office.service.run)
        while not (await office.found(run_id)).changed:
            await trio.sleep(0.001)
        nursery.cancel_scope.cancel()
    run = await office.carried_out(run_id)
    assert (run.state, run.examined, run.changed, run.done) == ("done", 2, 2, 2)


async def test_a_stopped_run_sends_nothing_more(office: Office) -> None:
    """A stopped run ends, and a new one can start. Older runs are deleted."""
    domain = office.areas.domain
    rule = await office.rule("staff", "allow", users=["ann"], vlan="20")
    await office.log_in("ann")
    await office.change(rule, vlan="30")
    for _ in range(MAX_KEPT + 2):
        run_id = await office.service.start(domain)
        await office.service.stop(domain, run_id)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(office.service.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert office.nas.requests == []
    assert len(await office.service.page(domain)) == MAX_KEPT
    with pytest.raises(NotFound):
        await office.service.stop(domain, 99999)


async def test_users_of_another_domain_are_left_out(office: Office) -> None:
    """The sessions of a user count for the domain of the user, wherever the device is."""
    areas = office.areas
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.configuration.reload()
    await areas.add_user(other, "dan", b"hello")
    await areas.domains.set_mode([other], Mode.ENFORCE)
    await areas.rules.add(other, RuleFields.model_validate({"name": "r", "action": "allow", "users": ["dan"]}))
    dan = await office.log_in("dan@branch")
    await areas.rules.add(
        other, RuleFields.model_validate({"name": "b", "action": "block", "users": ["dan"], "priority": 1})
    )
    assert await office.preview() == {}
    found = await office.service.preview(other)
    assert [(each.session_id, each.reason) for each in found.changes] == [(dan, "blocked by rule")]
