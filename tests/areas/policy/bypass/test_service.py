"""Tests of MAC authentication bypass: stations that are accepted by their address, and requests that never are."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from sallyport.areas.domains.domain import Mode
from sallyport.areas.domains.repo import Update
from sallyport.areas.login.login import Reason, Verdict
from sallyport.areas.policy.bypass import repo
from sallyport.areas.policy.bypass.station import Entry, StationChange
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.mac import mac_key
from sallyport.radius.attributes import pull_attributes
from sallyport.radius.password import Method
from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.model import Tx, Value
from tests.areas import Areas, only_sqlite
from tests.areas.login.conftest import FakeListener
from tests.areas.policy.lockouts.test_service import log_in
from tests.packets import access_request, attributes, chap, mschap2, pap

MAC = "aabbccddeeff"
STATION = "AA-BB-CC-DD-EE-FF"
LOGIN, FRAMED, CALL_CHECK, VIRTUAL, ETHERNET = 1, 2, 10, 5, 15


def body(station: str = STATION, service: int | None = CALL_CHECK, port: int | None = ETHERNET) -> bytes:
    """Return the attributes of a NAS, without name and password."""
    fields = {"CALLING_STATION_ID": station.encode()}
    if service is not None:
        fields["SERVICE_TYPE"] = service.to_bytes(4)
    if port is not None:
        fields["NAS_PORT_TYPE"] = port.to_bytes(4)
    return attributes(**fields)


LISTED = {
    "Cisco": pap(MAC, MAC, body()),
    "colons": pap("aa:bb:cc:dd:ee:ff", "aa:bb:cc:dd:ee:ff", body("aa:bb:cc:dd:ee:ff", FRAMED)),
    "dots, Wi-Fi": pap("AABB.CCDD.EEFF", MAC.upper(), body("aabb.ccdd.eeff", None, 19)),
    "no password": pap(MAC, "", body(service=None)),
    "no medium": pap(MAC, MAC, body(port=None)),
    "CHAP": chap(MAC, MAC, body=body()),
    "CHAP without a password": chap(MAC, "", b"0123456789abcdef", body=body()),
    "no password attribute": access_request(attributes(USER_NAME=MAC.encode()) + body()),
    "unsigned": pap(MAC, MAC, body(), signed=False),
}
OTHERS = {
    "another station": pap(MAC, MAC, body("AA-BB-CC-DD-EE-00")),
    "no station": pap(MAC, MAC, attributes(SERVICE_TYPE=CALL_CHECK.to_bytes(4))),
    "a password": pap(MAC, "hello", body()),
    "a wrong CHAP response": chap(MAC, "hello", body=body()),
    "a short CHAP response": chap(MAC, MAC, value=b"short", body=body()),
    "an admin at a switch": pap(MAC, MAC, body(service=LOGIN)),
    "a VPN": pap(MAC, MAC, body(port=VIRTUAL)),
    "MS-CHAPv2": mschap2(MAC, MAC, body=body()),
    "unsigned CHAP": chap(MAC, MAC, body=body(), signed=False),
    "unsigned, without a password": pap(MAC, "", body(), signed=False),
    "nothing but a name": access_request(attributes(USER_NAME=MAC.encode()) + body(service=FRAMED)),
    "a person": pap("ann", MAC, body()),
}


@pytest.mark.parametrize("request_", LISTED.values(), ids=LISTED)
async def test_a_listed_station_is_accepted(listener: FakeListener, request_: bytes) -> None:
    """A listed station is accepted in whatever form its product writes the address.

    The event has the method and the factor, and the device and the station are registered.
    """
    await listener.areas.bypass.add(listener.areas.domain, [MAC])
    login = listener.login(request_)
    decision = listener.areas.pipeline.begin(login)
    assert decision is not None, "it needs no I/O"
    assert (decision.applied, decision.reason) == (Verdict.ACCEPT, Reason.NONE)
    assert (login.method, login.factor, login.proven) == ("mab", "mac", True)
    assert mac_key(login.station) == MAC


@pytest.mark.parametrize("request_", OTHERS.values(), ids=OTHERS)
async def test_other_requests_are_ordinary_logins(listener: FakeListener, request_: bytes) -> None:
    """If the NAS does not authenticate the station itself, the request is an ordinary login, even if the station is
    listed."""
    await listener.areas.bypass.add(listener.areas.domain, [MAC])
    login = listener.login(request_)
    decision = await listener.decide(login)
    assert decision.applied is Verdict.REJECT
    assert login.method != "mab"


@pytest.mark.parametrize(
    ("method", "signed", "expected"), [(Method.EAP, True, MAC), (Method.EAP, False, ""), (Method.PAP, True, "")]
)
async def test_a_request_by_eap_is_signed(listener: FakeListener, method: str, signed: bool, expected: str) -> None:
    """EAP-MD5 proves only later that the address is also the password, so the request needs a signature."""
    areas = listener.areas
    await areas.bypass.add(areas.domain, [MAC])
    arrival = listener.login(pap(MAC, MAC, body(), signed=signed)).arrival
    assert areas.bypass.requested_by_eap(arrival, method, areas.domains.table.by_id[areas.domain]) == expected


async def test_only_the_list_of_the_domain_counts(listener: FakeListener) -> None:
    """A station that only another domain lists is rejected, and so is a station that is unlisted or was removed."""
    areas = listener.areas
    branch = await areas.domains.add(areas.tenant, "branch")
    assert not areas.bypass.lists_stations
    await areas.bypass.add(branch, [MAC])
    assert areas.bypass.lists_stations
    assert (await listener.decided(LISTED["Cisco"]))[:2] == ("reject", Reason.UNKNOWN_USER)
    await areas.bypass.add(areas.domain, [MAC])
    assert (await listener.decided(LISTED["Cisco"]))[0] == "accept"
    assert await areas.bypass.delete(areas.domain, [MAC]) == 1
    assert (await listener.decided(LISTED["Cisco"]))[:2] == ("reject", Reason.UNKNOWN_USER)
    assert await areas.bypass.delete(branch, [MAC]) == 1
    assert not areas.bypass.lists_stations


async def test_rules_apply_without_a_second_factor(listener: FakeListener) -> None:
    """A domain that enforces with a provider accepts the station and assigns its VLAN.

    A rule that blocks rejects the station.
    """
    areas = listener.areas
    await areas.bypass.add(areas.domain, [MAC])
    await areas.providers.set(areas.domain, "totp", {}, 60)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    vlan = RuleFields.model_validate({"name": "things", "action": "mfa_required", "kinds": ["station"], "vlan": "30"})
    await areas.rules.add(areas.domain, vlan)
    login = listener.login(LISTED["Cisco"])
    assert (await listener.decide(login)).applied is Verdict.ACCEPT
    assert (81, b"30") in list(pull_attributes(memoryview(login.attributes)))
    await areas.rules.add(
        areas.domain, RuleFields.model_validate({"name": "out", "action": "block", "priority": 1, "stations": [MAC]})
    )
    decision = await listener.decide(listener.login(LISTED["Cisco"]))
    assert (decision.applied, decision.reason) == (Verdict.REJECT, Reason.BLOCKED)


async def test_lock_outs_do_not_affect_the_bypass(listener: FakeListener) -> None:
    """A station that is locked out is accepted by its own address, which does not reset its count of failures."""
    areas, here = listener.areas, body() + attributes(NAS_IDENTIFIER=b"switch-1")
    other = body("02-00-00-00-00-02") + attributes(NAS_IDENTIFIER=b"switch-1")
    assert (
        await log_in(listener, "ann", "hello", other) is Reason.NONE
    )  # a second station: the first is not the NAS itself
    for number in range(10):
        await log_in(listener, f"user {number}", body=here)
    assert await log_in(listener, MAC, MAC, here) is Reason.STATION_LOCKED_OUT
    await areas.bypass.add(areas.domain, [MAC])
    assert await log_in(listener, MAC, MAC, here) is Reason.NONE
    assert await log_in(listener, "ann", "hello", here) is Reason.STATION_LOCKED_OUT


async def test_lists_are_all_or_none(areas: Areas) -> None:
    """A repeated station counts once.

    Adding a listed station sets its name. If a station is not listed, the whole removal is refused.
    """
    domain = areas.domain
    assert await areas.bypass.add(domain, [MAC, "000000000001", MAC], "printers") == 2
    await areas.bypass.add(domain, [MAC])
    await areas.bypass.add(domain, ["000000000001"], "Kamera Süd")
    rows, total = await areas.bypass.page(domain, "", offset=0, limit=10)
    assert [(row.station, row.name) for row in rows] == [(MAC, "printers"), ("000000000001", "Kamera Süd")]
    assert total == 2
    for search in ("SÜD", "00:00:01"):
        assert [row.station for row in (await areas.bypass.page(domain, search, offset=0, limit=1))[0]] == [
            "000000000001"
        ]
    with pytest.raises(NotFound, match="station not found"):
        await areas.bypass.delete(domain, [MAC, "000000000002"])
    assert (await areas.bypass.page(domain, "", offset=5, limit=1))[1] == 2


async def test_a_list_is_bounded(areas: Areas) -> None:
    """If one station of a call exceeds the limit, the whole call is refused."""

    def fill(tx: Tx) -> None:
        stations = [f"{number:012x}" for number in range(100_000)]
        columns = ("domain_id", "station", "name", "added_at")
        tx.insert("bypass_stations", columns, [(areas.domain, each, "", 1) for each in stations])

    await areas.store.write(fill)
    with pytest.raises(Conflict, match="at most 100000"):
        await areas.bypass.add(areas.domain, [MAC])
    assert (await areas.bypass.page(areas.domain, MAC, offset=0, limit=1)) == ([], 0)


async def test_lists_are_read_again_only_after_a_change(areas: Areas) -> None:
    """A change of another table keeps the lists; a station that was added or removed makes them new."""
    await areas.bypass.add(areas.domain, [MAC])
    first = await areas.store.read(lambda tx: repo.load(tx, repo.Listed()))
    await areas.domains.add(areas.tenant, "branch")
    assert await areas.store.read(lambda tx: repo.load(tx, first)) is first
    await areas.bypass.delete(areas.domain, [MAC])
    await areas.bypass.add(areas.domain, ["000000000001"])
    second = await areas.store.read(lambda tx: repo.load(tx, first))
    assert second.lists == {areas.domain: {"000000000001": Entry()}}


async def test_a_restored_list_replaces_another_of_the_same_extent(areas: Areas) -> None:
    """After a restore, the list is the restored one, also if it has as many rows and the same highest id as before."""
    await areas.bypass.add(areas.domain, [MAC])
    await areas.store.write(lambda tx: tx.execute("update bypass_stations set station = '000000000001'"))
    await areas.configuration.restored()
    assert areas.bypass.has(areas.domain, "000000000001")
    assert not areas.bypass.has(areas.domain, MAC)


async def test_removing_a_station_ends_its_sessions(areas: Areas) -> None:
    """In a domain with disconnect_on_revoke, removing a station ends its sessions under each notation of its
    address."""
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    await areas.bypass.add(areas.domain, [MAC])
    await areas.bypass.delete(areas.domain, [MAC])
    sql = "select count(*) from revocations where user_name in ('aabbccddeeff', 'aa-bb-cc-dd-ee-ff', 'aabb.ccdd.eeff')"
    assert await areas.store.read(lambda tx: tx.value(int, sql)) == 3


class CountingTx(SqliteTx):
    """A transaction that counts the statements that it executes."""

    executed = 0
    inserted: Sequence[str] = ()

    def execute(self, sql: str, /, **parameters: Value) -> int:
        """Count a statement and execute it."""
        self.executed += 1
        return super().execute(sql, **parameters)

    def insert(self, table: str, *given: Any, **settings: Any) -> None:
        """Note an insertion of many rows and run it."""
        self.inserted = [*self.inserted, table]
        super().insert(table, *given, **settings)


@only_sqlite
async def test_a_long_list_is_written_by_one_statement(areas: Areas) -> None:
    """Adding or deleting 1,000 stations takes as many statements as adding or deleting one."""
    stations = [f"02000000{number:04x}" for number in range(1000)]
    with closing(open_connection(areas.store.path)) as connection:
        tx = CountingTx(connection)
        repo.put(tx, areas.domain, [StationChange(each, "printers", "30") for each in stations], 1)
        repo.delete(tx, areas.domain, stations[1:])
        connection.rollback()
    assert tx.executed + len(tx.inserted) == 2
