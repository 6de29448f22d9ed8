"""Tests of unknown stations: those that ask for admission by their MAC address and are not on the list."""

from functools import partial

import pytest
import trio
from structlog.testing import capture_logs

from sallyport.areas.devices.device import Device
from sallyport.areas.domains.domain import Mode, UnknownStations
from sallyport.areas.domains.repo import Update
from sallyport.areas.login.login import Login, Reason, Verdict
from sallyport.areas.policy.bypass import unknown_repo
from sallyport.areas.policy.bypass.station import StationChange
from sallyport.areas.policy.bypass.unknown import MAX_REQUESTS, MAX_UNKNOWN, Sighting, UnknownRow
from sallyport.areas.policy.roles.role import ReplySet
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.clock import SECOND
from sallyport.radius.attributes import pull_attributes
from sallyport.store.model import Tx
from tests.areas import Areas, SetClock
from tests.areas.login.conftest import FakeListener
from tests.areas.policy.bypass.test_service import LISTED, MAC, OTHERS, body
from tests.areas.policy.lockouts.test_service import log_in
from tests.packets import attributes, pap
from tests.waiting import until

REQUEST = LISTED["Cisco"]
GUESTS: dict[str, object] = {"name": "guests", "action": "allow", "kinds": ["unknown"], "vlan": "99"}


async def use_rules(areas: Areas, *rules: dict[str, object]) -> None:
    """Let login rules decide about the unknown stations of the domain."""
    await areas.domains.update(areas.domain, Update(settings={"unknown_stations": UnknownStations.RULES}))
    for fields in rules:
        await areas.rules.add(areas.domain, RuleFields.model_validate(fields))


async def unknown(areas: Areas, search: str = "") -> list[UnknownRow]:
    """Return the unknown stations of the domain."""
    await areas.bypass.unknown.flush()
    rows, total = await areas.bypass.unknown.page(areas.domain, search, offset=0, limit=100)
    assert total == len(rows)
    return rows


async def decided(listener: FakeListener, request: bytes = REQUEST) -> tuple[Login, Verdict, Reason]:
    """Decide a request."""
    login = listener.login(request)
    decision = await listener.decide(login)
    assert decision.applied is decision.decision, "monitor mode decides as enforce mode does"
    return login, decision.applied, decision.reason


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("request_", LISTED.values(), ids=LISTED)
async def test_a_rule_admits_an_unknown_station(listener: FakeListener, mode: Mode, request_: bytes) -> None:
    """A rule that names the kind gives each unknown station its VLAN, in both modes and in all forms. The station and
    its address do not get into the inventory; the network device does."""
    areas = listener.areas
    await areas.domains.set_mode([areas.domain], mode)
    await use_rules(areas, GUESTS)
    login, verdict, reason = await decided(listener, request_)
    assert (verdict, reason) == (Verdict.ACCEPT, Reason.NONE)
    assert (81, b"99") in list(pull_attributes(memoryview(login.attributes)))
    assert (login.method, login.factor, login.behind) == ("mab", "unknown mac", None)
    assert login.rule is not None and login.rule.name == "guests" and login.noted


@pytest.mark.parametrize("request_", OTHERS.values(), ids=OTHERS)
async def test_other_requests_are_ordinary_logins(listener: FakeListener, request_: bytes) -> None:
    """A request without the form of a station is never admitted by a rule for unknown stations."""
    await use_rules(listener.areas, GUESTS)
    login, verdict, _ = await decided(listener, request_)
    assert (verdict, login.method != "mab") == (Verdict.REJECT, True)
    assert await unknown(listener.areas) == []


EVERYONE: dict[str, object] = {"name": "all", "action": "allow", "vlan": "1", "everyone": True}
NOT_ADMITTED: dict[str, list[dict[str, object]]] = {
    "no rule": [],
    "everyone": [EVERYONE],
    "all stations": [{"name": "r", "action": "allow", "kinds": ["station", "user", "machine"], "vlan": "1"}],
    "its address, without the kind": [{"name": "r", "action": "allow", "stations": [MAC], "vlan": "1"}],
    "no VLAN": [{"name": "r", "action": "allow", "kinds": ["unknown"]}],
    "a second factor": [{**GUESTS, "action": "mfa_required"}],
    "another medium": [{**GUESTS, "media": ["Wireless"]}],
    "a product that is not known": [{**GUESTS, "products": ["Aruba"]}],
    "disabled": [{**GUESTS, "enabled": False}],
    "a second factor before": [{**GUESTS, "action": "mfa_required", "priority": 1}, GUESTS],
}


async def test_a_role_admits_an_unknown_station(listener: FakeListener) -> None:
    """A rule with a role admits an unknown station if the role has attributes for the product of the NAS."""
    areas = listener.areas
    await areas.app.roles.service.set(areas.domain, "guests", ReplySet(product="Aruba", vlan="9"))
    await use_rules(areas, {"name": "r", "action": "allow", "kinds": ["unknown"], "role": "guests"})
    assert (await decided(listener))[1:] == (Verdict.REJECT, Reason.UNKNOWN_STATION)
    await areas.app.roles.service.set(areas.domain, "guests", ReplySet(vlan="10"))
    login, verdict, _ = await decided(listener)
    assert verdict is Verdict.ACCEPT
    assert (81, b"10") in list(pull_attributes(memoryview(login.attributes)))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("rules", NOT_ADMITTED.values(), ids=NOT_ADMITTED)
async def test_not_admitted(listener: FakeListener, mode: Mode, rules: list[dict[str, object]]) -> None:
    """Without an `allow` rule that surely matches, names the kind and has a VLAN, an unknown station is refused in both
    modes. A fact that is missing admits no station."""
    areas = listener.areas
    await areas.domains.set_mode([areas.domain], mode)
    await use_rules(areas, *rules)
    login, verdict, reason = await decided(listener)
    assert (verdict, reason) == (Verdict.REJECT, Reason.UNKNOWN_STATION)
    assert (login.method, login.rule, login.behind) == ("mab", None, None)


async def test_a_rule_for_everyone_does_not_hide_the_rule(listener: FakeListener) -> None:
    """A rule without the kind, though it is read first for others, is not read for an unknown station."""
    await use_rules(listener.areas, {**EVERYONE, "priority": 1}, GUESTS)
    login, verdict, _ = await decided(listener)
    assert verdict is Verdict.ACCEPT
    assert login.rule is not None and login.rule.name == "guests"


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "block",
    [
        {"stations": ["aabbccddeeff"]},
        {"kinds": ["unknown"]},
        {"everyone": True},
        {"products": ["Aruba"]},
    ],
    ids=["station", "kind", "everyone", "a product that is not known"],
)
async def test_a_rule_blocks_an_unknown_station(listener: FakeListener, mode: Mode, block: dict[str, object]) -> None:
    """A block before the rule that admits blocks in both modes, also if it only may match."""
    areas = listener.areas
    await areas.domains.set_mode([areas.domain], mode)
    await use_rules(areas, {"name": "out", "action": "block", "priority": 1, **block}, GUESTS)
    login, verdict, reason = await decided(listener)
    assert (verdict, reason) == (Verdict.REJECT, Reason.BLOCKED)
    assert login.rule is not None and login.rule.name == "out"


async def test_a_listed_station_is_no_unknown_station(listener: FakeListener, clock: SetClock) -> None:
    """The rule for unknown stations does not reach a listed station, until its entry ends. An entry that is added takes
    the station from the table of unknown stations."""
    areas = listener.areas
    await use_rules(areas, GUESTS)
    await decided(listener)
    assert [each.station for each in await unknown(areas)] == [MAC]
    await areas.bypass.put(areas.domain, [StationChange(MAC, until=clock() + SECOND)])
    assert await unknown(areas) == []
    login, verdict, _ = await decided(listener)
    assert (verdict, login.factor, login.rule) == (Verdict.ACCEPT, "mac", None)
    assert await unknown(areas) == []
    clock.pass_by(1)
    login, verdict, _ = await decided(listener)
    assert (verdict, login.factor) == (Verdict.ACCEPT, "unknown mac")
    assert [each.station for each in await unknown(areas)] == [MAC]


@pytest.mark.parametrize("setting", UnknownStations)
async def test_a_refused_station_is_noted(listener: FakeListener, clock: SetClock, setting: UnknownStations) -> None:
    """An unknown station is noted with its place and its requests, whatever the setting of the domain is. It gets no
    row among the stations of the inventory."""
    areas = listener.areas
    await areas.domains.update(areas.domain, Update(settings={"unknown_stations": setting}))
    place = attributes(NAS_PORT_ID=b"Gi1/0/5", NAS_IDENTIFIER=b"switch")
    for _ in range(2):
        login, verdict, _ = await decided(listener, pap(MAC, MAC, body() + place))
        assert (verdict, login.behind) == (Verdict.REJECT, None)
        clock.pass_by(1)
        await areas.bypass.unknown.flush()
    (row,) = await unknown(areas)
    assert (row.station, row.port, row.ssid, row.outcome, row.request_count) == (MAC, "Gi1/0/5", "", "reject", 2)
    assert (row.last_seen - row.first_seen, row.randomised()) == (SECOND, True)
    wireless = attributes(CALLED_STATION_ID=b"00-11-22-33-44-55:guests") + body(port=19)
    await decided(listener, pap(MAC, MAC, wireless))
    (row,) = await unknown(areas, "GUESTS")
    assert (row.ssid, row.port, row.request_count) == ("guests", "", 3)
    assert await unknown(areas, "nothing") == []
    assert len(await unknown(areas, "cc:dd")) == 1


@pytest.mark.parametrize("request_", LISTED.values(), ids=LISTED)
async def test_a_refusal_for_any_reason_notes_the_station(listener: FakeListener, request_: bytes) -> None:
    """If the first factor cannot check the request of an unknown station, because it has no password, the station is
    noted too, and its address does not get into the inventory of stations."""
    login = await listener.ready(request_)
    assert (login.answer.decision.applied, login.behind) == (Verdict.REJECT, None)
    assert [each.station for each in await unknown(listener.areas)] == [MAC]


async def test_a_failing_store_is_logged(listener: FakeListener) -> None:
    """The log says that the unknown stations are not written, and the task continues."""
    areas = listener.areas
    await decided(listener)
    await areas.store.write(lambda tx: tx.execute("alter table unknown_stations rename to moved"))
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(areas.bypass.unknown.run)
            await until(lambda: bool(logs))
            nursery.cancel_scope.cancel()
    assert [(each["event"], each["log_level"]) for each in logs] == [("unknown_stations_not_written", "warning")]


async def test_a_station_that_moves_is_noted_where_it_is(listener: FakeListener) -> None:
    """Of several requests between two flushes, the last one says where the station is."""
    for port in (b"1", b"2"):
        await decided(listener, pap(MAC, MAC, body() + attributes(NAS_PORT_ID=port)))
    (row,) = await unknown(listener.areas)
    assert (row.port, row.request_count) == ("2", 2)


@pytest.mark.parametrize("setting", UnknownStations)
async def test_invented_addresses_lock_out_nobody(listener: FakeListener, setting: UnknownStations) -> None:
    """Refused requests of unknown stations do not count as failures, neither of a user with the name of the address nor
    of a station. An ordinary login with the same name counts."""
    areas = listener.areas
    await areas.domains.update(areas.domain, Update(settings={"unknown_stations": setting}))
    switch = attributes(NAS_IDENTIFIER=b"switch")
    here, other = body() + switch, body("02-00-00-00-00-02") + switch
    assert await log_in(listener, "ann", "hello", other) is Reason.NONE  # the station is not the NAS itself
    for number in range(9):
        await log_in(listener, f"user {number}", body=here)
    for _ in range(20):
        login, _, _ = await decided(listener, pap(MAC, MAC, here))
        assert not login.locks
    assert await log_in(listener, "user 9", body=here) is Reason.UNKNOWN_USER
    assert await log_in(listener, "ann", "hello", here) is Reason.STATION_LOCKED_OUT


@pytest.mark.parametrize(
    ("user", "station", "expected"),
    [
        (MAC, "AA-BB-CC-DD-EE-FF", True),
        ("ann", "AA-BB-CC-DD-EE-FF", False),
        (MAC, "020000000001", False),
        ("", "", False),
    ],
    ids=["station", "person", "another station", "none"],
)
async def test_the_session_of_an_unknown_station(
    areas: Areas, clock: SetClock, user: str, station: str, expected: bool
) -> None:
    """Accounting with the address as the name is that of an unknown station, if rules decide about them, and until the
    station is listed."""

    def is_unknown() -> bool:
        return areas.bypass.is_unknown(areas.domains.table.by_id[areas.domain], user, station, clock())

    assert not is_unknown()
    await use_rules(areas)
    assert is_unknown() is expected
    await areas.bypass.put(areas.domain, [StationChange(MAC, until=clock() + SECOND)])
    assert not is_unknown()
    clock.pass_by(1)
    assert is_unknown() is expected


async def test_without_the_setting_it_is_an_ordinary_login(listener: FakeListener) -> None:
    """With the setting `reject`, no rule reaches an unknown station, because its request is an ordinary login."""
    await use_rules(listener.areas, GUESTS)
    settings = {"unknown_stations": UnknownStations.REJECT}
    await listener.areas.domains.update(listener.areas.domain, Update(settings=settings))
    login, verdict, reason = await decided(listener)
    assert (verdict, reason, login.method) == (Verdict.REJECT, Reason.UNKNOWN_USER, "pap")


async def test_the_table_is_bounded(areas: Areas) -> None:
    """A tenant keeps the stations that were seen last. Another tenant keeps its own. The number of requests is capped,
    and a station that was listed meanwhile is left out."""
    other = await areas.domains.add(await areas.tenancy.ensure_tenant(2, 1), "other")
    device = Device(areas.domain, "192.0.2.1", "192.0.2.1", "", 1)
    write = partial(unknown_repo.write, sightings=[Sighting(other, MAC, 1, device, "", "", "reject")])
    await areas.store.write(write)

    def fill(tx: Tx) -> None:
        columns = ("station", "first_seen", "last_seen")
        rows = [(f"{number:012x}", number, number) for number in range(1, MAX_UNKNOWN + 1)]
        same = {"domain_id": areas.domain, "request_count": 1, "device_id": 0, "ssid": "", "port": "", "outcome": ""}
        tx.insert("unknown_stations", columns, rows, same=same)

    await areas.store.write(fill)
    await areas.bypass.add(areas.domain, ["00000000ffff"])
    new = [Sighting(areas.domain, f"0000000f000{n}", MAX_UNKNOWN + 1 + n, device, "", "", "reject") for n in range(3)]
    new += [Sighting(areas.domain, "00000000ffff", 1, device, "", "", "reject")]
    new[0].requests = MAX_REQUESTS + 5
    await areas.store.write(partial(unknown_repo.write, sightings=new))
    rows, total = await areas.bypass.unknown.page(areas.domain, "", offset=0, limit=3)
    assert total == MAX_UNKNOWN
    assert [row.station for row in rows] == ["0000000f0002", "0000000f0001", "0000000f0000"]
    oldest, _ = await areas.bypass.unknown.page(areas.domain, "", offset=MAX_UNKNOWN - 1, limit=1)
    assert [row.station for row in oldest] == [f"{4:012x}"]
    (first,), _ = await areas.bypass.unknown.page(areas.domain, "0f0000", offset=0, limit=1)
    assert first.request_count == MAX_REQUESTS
    assert (await areas.bypass.unknown.page(other, "", offset=0, limit=1))[1] == 1
