"""Tests of the report: the results of recorded logins, by cause."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from sallyport.areas.domains.domain import FirstFactor, Mode, UnknownStations
from sallyport.areas.domains.repo import Update
from sallyport.areas.shadow.comparing import NO_CAUSE, NO_CLIENT
from sallyport.areas.shadow.logs.record import OldLogin
from sallyport.areas.shadow.shadow_login import ACCEPT, KEPT_DAYS, REJECT, Comparison
from sallyport.base.clock import SECOND
from sallyport.base.errors import NotFound
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.areas.shadow.conftest import Office
from tests.areas.shadow.files import START, Packet, several

MAC = "020000000005"


async def test_the_results(office: Office) -> None:
    """Each login has its result and the rule that decides. A wrong password stays wrong. A refusal by a policy is
    compared as if the password were right."""
    await office.users("ann", "bob", "dan", "eve", "fay")
    await office.rule("staff", "allow", users=["ann", "eve", "dan"])
    await office.rule("rest", "block", everyone=True)
    await office.log(
        *several(
            [
                Packet("ann"),
                Packet("bob"),
                Packet("eve", reason=16),
                Packet("dan", reason=65, policy="No dial-in"),
                Packet("fay", reason=48),
                Packet("old"),
                Packet("x@else.where"),
                Packet("gil", nas="198.51.100.9"),
            ]
        )
    )
    assert await office.results() == {
        "ann": ("same", "accept", "", "staff"),
        "bob": ("stricter", "reject", "blocked by rule", "rest"),
        "eve": ("same", "reject", "wrong password", ""),
        "dan": ("laxer", "accept", "", "staff"),
        "fay": ("same", "reject", "blocked by rule", "rest"),
        "old": ("stricter", "reject", "unknown user", ""),
        "x@else.where": ("stricter", "reject", "unknown realm", ""),
        "gil": ("stricter", "reject", NO_CLIENT, ""),
    }


async def test_the_report_counts_by_cause_user_and_device(office: Office) -> None:
    """A cause has its number of logins, users and devices, and examples with the place in the log."""
    await office.users("ann", "bob")
    await office.rule("rest", "block", everyone=True)
    await office.log(*several([Packet("ann"), Packet("ann"), Packet("bob", policy="VPN", reason=48), Packet("bob")]))
    found = await office.report()
    assert (found.logins, found.differing, found.counts[Comparison.SAME]) == (4, 3, 1)
    ((key, group),) = found.ordered_groups()
    assert key == (Comparison.STRICTER, "blocked by rule", "rest", "", "Staff VPN")
    assert (group.logins, group.users, group.devices) == (3, {"ann", "bob"}, {"192.0.2.1"})
    assert [each.place for each in group.examples] == ["IN2601.log:7", "IN2601.log:3", "IN2601.log:1"]
    assert found.users["ann"] == {Comparison.STRICTER: 2}
    assert found.devices["192.0.2.1"] == {Comparison.STRICTER: 3, Comparison.SAME: 1}


async def test_a_report_that_ran_during_a_deletion_is_not_kept(office: Office) -> None:
    """The report has names that were deleted meanwhile, so it is not found again. Neither is one that misses new
    logins. Logins that are recorded again change nothing."""
    service, domain = office.areas.app.shadow.service, office.areas.domain
    await office.log(*several([Packet("ann")]))

    async def found_after(act: Callable[[], Awaitable[int]]) -> bool:
        generation = await service.generation(domain)
        assert (await office.report()).logins
        await act()
        service.last.keep(domain, "asked", {}, office.areas.tenant, generation, is_new=False)
        return service.last.find(domain, "asked", await service.generation(domain)) is not None

    assert await found_after(lambda: office.log(*several([Packet("ann")])))
    assert not await found_after(lambda: office.log(*several([Packet("ann"), Packet("bob")])))
    assert not await found_after(lambda: service.clear(domain))


async def test_a_report_of_one_device_or_user(office: Office) -> None:
    """The report before the switch of a NAS has only its logins, and finds it by its address or that of its client."""
    await office.areas.client("192.0.2.2/32", name="switch")
    await office.users("ann", "bob")
    await office.log(*several([Packet("ann"), Packet("bob", nas="192.0.2.2"), Packet("bob")]))
    assert (await office.report(device="192.0.2.2")).logins == 1
    assert (await office.report(user="BOB")).logins == 2
    assert (await office.report(device="192.0.2.2", user="ann")).logins == 0


async def test_a_report_of_a_client_by_its_name(office: Office) -> None:
    """The name of a RADIUS client selects the logins from all of its addresses."""
    await office.areas.client("198.51.100.0/24", name="Switches")
    await office.log(*several([Packet("ann"), Packet("bob", nas="198.51.100.4"), Packet("bob", nas="198.51.100.5")]))
    assert set((await office.report(device="switches")).devices) == {"198.51.100.4", "198.51.100.5"}
    assert (await office.report(device="vpn")).logins == 1


async def test_the_listed_logins_can_be_chosen(office: Office) -> None:
    """A caller sees the logins behind each number."""
    await office.users("ann", "bob")
    await office.rule("no ann", "block", users=["ann"])
    await office.rule("rest", "allow", everyone=True)
    await office.log(*several([Packet("ann"), Packet("bob"), Packet("zoe")]))
    wanted = {"result": "stricter", "reason": "unknown user"}
    assert [each.user for each in (await office.report(**wanted)).cases] == ["zoe"]
    assert [each.user for each in (await office.report(rule="no ann")).cases] == ["ann"]
    assert [each.user for each in (await office.report(result="same")).cases] == ["bob"]
    assert len((await office.report(cases=0)).cases) == 0


async def test_the_same_log_again_adds_nothing(office: Office) -> None:
    """After a change of the rules, the next report shows its effect without the log."""
    await office.users("ann")
    rule = await office.rule("rest", "block", everyone=True)
    packets = several([Packet("ann"), Packet("ann")])
    assert [await office.log(*packets), await office.log(*packets)] == [2, 0]
    assert (await office.report()).differing == 2
    await office.areas.rules.delete(office.areas.domain, [rule])
    await office.rule("all", "allow", everyone=True)
    assert (await office.report()).differing == 0


async def test_facts_of_the_request_decide(office: Office) -> None:
    """Rules compare the SSID, the station, the medium and the method of the record."""
    await office.users("ann", "bob", "dan", "eve")
    await office.rule("corp", "allow", ssids=["corp"], media=["Wireless"], methods=["peap-mschapv2", "mschapv2"])
    await office.rule("rest", "block", everyone=True)
    await office.log(
        *several(
            [
                Packet("ann"),
                Packet("bob", called="02-AA-00-00-00-01:guest"),
                Packet("dan", port_type=15),
                Packet("eve", method=1),
            ]
        )
    )
    found = await office.results()
    assert {name: result[0] for name, result in found.items()} == {
        "ann": "same", "bob": "stricter", "dan": "stricter", "eve": "stricter",
    }  # fmt: skip


async def test_stations_are_admitted_by_the_list(office: Office) -> None:
    """A MAC address in the place of the user is a request for MAC authentication bypass."""
    await office.areas.bypass.add(office.areas.domain, [MAC])
    known = Packet("020000000005", station="02-00-00-00-00-05", method=1)
    unknown = Packet("020000000006", station="02-00-00-00-00-06", method=1)
    await office.log(*several([known, unknown]))
    assert await office.results() == {
        "020000000005": ("same", "accept", "", ""),
        "020000000006": ("stricter", "reject", "unknown station", ""),
    }


async def test_unknown_stations_by_rules(office: Office) -> None:
    """A domain can admit unknown stations by a rule with a VLAN."""
    await office.areas.domains.update(office.areas.domain, Update(settings={"unknown_stations": UnknownStations.RULES}))
    await office.rule("guests", "allow", kinds=["unknown"], vlan="99")
    await office.log(Packet("020000000006", station="02-00-00-00-00-06", method=1))
    assert await office.results() == {"020000000006": ("same", "accept", "", "guests")}


async def test_a_second_factor_is_stricter(office: Office) -> None:
    """A login that would be asked for a second factor differs, and the reason says so."""
    await office.users("ann")
    await office.log(Packet("ann"))
    assert await office.results() == {"ann": ("stricter", "reject", "no provider", "")}


@pytest.mark.parametrize("mode", Mode)
async def test_enforce_mode_is_assumed(office: Office, mode: Mode) -> None:
    """Monitor mode blocks nothing, so it would hide what the rules do."""
    await office.areas.domains.set_mode([office.areas.domain], mode, None)
    await office.users("ann")
    await office.rule("rest", "block", everyone=True)
    await office.log(Packet("ann"))
    assert (await office.results())["ann"][0] == "stricter"


async def test_a_refusal_without_a_cause(office: Office) -> None:
    """If this service would refuse too, the result is the same. Otherwise the password may have been wrong."""
    await office.users("ann", "bob")
    await office.rule("ann", "allow", users=["ann"])
    await office.rule("rest", "block", everyone=True)
    logins = [
        OldLogin(1_767_254_400 * SECOND, name, REJECT, "vpn", ("NAS-IP-Address=10.0.0.1",)) for name in ("ann", "bob")
    ]
    await office.record(logins)
    assert await office.results() == {
        "ann": ("unknown", "accept", NO_CAUSE, "ann"),
        "bob": ("same", "reject", "blocked by rule", "rest"),
    }


async def test_the_first_factor_none_needs_a_client_that_vouches(office: Office) -> None:
    """A client that may not vouch for passwords is refused, as in a live login."""
    domain = office.areas.domains.table.present(office.areas.domain)
    await office.areas.first_settings.set(domain, FirstFactor.NONE, {})
    await office.rule("all", "allow", everyone=True)
    await office.log(Packet("ann"))
    assert (await office.results())["ann"][2] == "the RADIUS client may not vouch for passwords"


async def test_a_shadow_login_leaves_no_trace(office: Office) -> None:
    """A report writes no event, device, station, lock-out or unknown station, and asks nobody."""
    areas = office.areas
    await office.users("ann")
    before = await _counts(areas)
    await office.log(*several([Packet("ann", reason=16)] * 30 + [Packet("ann"), Packet("020000000006")]))
    await office.report()
    areas.journal.flush_soon()
    assert await _counts(areas) == {**before, "shadow_logins": 32}


async def _counts(areas: Areas) -> dict[str, int]:
    tables = (
        "shadow_logins",
        "events",
        "devices",
        "stations",
        "lockouts",
        "unknown_stations",
        "sessions",
        "challenges",
    )

    def work(tx: Tx) -> dict[str, int]:
        return {table: tx.value(int, f"select count(*) from {table}") or 0 for table in tables}  # noqa: S608

    return await areas.store.read(work)


async def test_old_shadow_logins_are_deleted(office: Office) -> None:
    """Their age counts from the time when they were recorded, because a log may be old."""
    areas, service = office.areas, office.areas.app.shadow.service
    await office.log(*several([Packet("ann", at=START - timedelta(days=400))] * 3))
    await service.purge(areas.store)
    assert (await office.report()).logins == 3
    areas.clock.pass_by(KEPT_DAYS * 86_400 + 1)
    await areas.parts.settled.look()
    await office.log(*several([Packet("bob")]))
    await service.purge(areas.store)
    assert [each.user for each in (await office.report(result="")).cases] == ["bob"]
    assert await service.clear(areas.domain) == 1
    assert (await office.report()).logins == 0


async def test_a_tenant_has_a_limited_number(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of the domain are deleted."""
    monkeypatch.setattr("sallyport.areas.shadow.repo.MAX_KEPT", 250)
    await office.log(*several([Packet(f"user{number}") for number in range(400)]))
    found = await office.report()
    assert found.logins == 250
    assert "user0" not in found.users
    assert "user399" in found.users


async def test_a_removed_domain_keeps_none(office: Office) -> None:
    """The rows are erased with the domain, and a removed domain gets no new ones."""
    await office.log(Packet("ann"))
    await office.areas.clients.delete(office.areas.tenant, office.areas.client_named("vpn").id)
    await office.areas.removal.remove(office.areas.domain)
    with pytest.raises(NotFound):
        await office.log(Packet("bob"))
    with pytest.raises(NotFound):
        await office.report()


async def test_credentials_of_a_record_are_not_stored(office: Office) -> None:
    """An attribute with a secret, or an unknown one, is left out."""
    secret = ("User-Password=hunter2", "CHAP-Password=0x0011", "Cisco-AVPair=psk=hunter2", "No-Such-Attribute=1")
    await office.record([OldLogin(SECOND, "ann", ACCEPT, "vpn", (*secret, "NAS-Port-Id=Gi1/0/1"))])
    rows = await office.areas.store.read(lambda tx: tx.rows("select attributes from shadow_logins"))
    assert rows == [(b"\x57\x09Gi1/0/1",)]
