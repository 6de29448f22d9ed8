"""Tests of the values of entries: VLAN, end, and the time at which a station was last seen."""

import json

import pytest
from pydantic import ValidationError

from sallyport.areas.domains.domain import Mode
from sallyport.areas.domains.repo import Update
from sallyport.areas.login.login import Reason, Verdict
from sallyport.areas.policy.bypass import repo
from sallyport.areas.policy.bypass.bodies import ImportBypassStations
from sallyport.areas.policy.bypass.station import Entry, StationChange, StationRow
from sallyport.areas.policy.roles.role import ReplySet
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid
from sallyport.base.mac import is_random as is_random_address
from sallyport.radius.attributes import pull_attributes
from sallyport.store.model import Tx
from tests.areas import Areas, SetClock
from tests.areas.login.conftest import FakeListener
from tests.areas.policy.bypass.test_service import LISTED, MAC, body
from tests.packets import pap

REQUEST = LISTED["Cisco"]
VLAN = 81


async def entry(areas: Areas) -> StationRow:
    """Return the only entry of the domain."""
    rows, total = await areas.bypass.page(areas.domain, "", offset=0, limit=10)
    assert total == 1
    return rows[0]


async def vlans(listener: FakeListener, request: bytes = REQUEST) -> list[bytes]:
    """Return the VLANs in the answer to a request."""
    login = listener.login(request)
    assert (await listener.decide(login)).applied is Verdict.ACCEPT
    return [value for kind, value in pull_attributes(memoryview(login.attributes)) if kind == VLAN]


async def test_the_vlan_of_an_entry_replaces_that_of_a_rule(listener: FakeListener) -> None:
    """The entry says more about the station than a rule, whose other attributes stay. Without a VLAN in the entry, the
    rule decides."""
    areas = listener.areas
    filter_id = {"name": "Filter-Id", "value": "things"}
    fields = {"name": "r", "action": "allow", "kinds": ["station"], "vlan": "30", "replyAttributes": [filter_id]}
    await areas.rules.add(areas.domain, RuleFields.model_validate(fields))
    await areas.bypass.put(areas.domain, [StationChange(MAC, vlan="printers")])
    assert await vlans(listener) == [b"printers"]
    login = listener.login(REQUEST)
    await listener.decide(login)
    assert (11, b"things") in list(pull_attributes(memoryview(login.attributes)))
    await areas.bypass.put(areas.domain, [StationChange(MAC, vlan="")])
    assert await vlans(listener) == [b"30"]


async def test_a_rule_blocks_a_station_with_a_vlan(listener: FakeListener) -> None:
    """The VLAN of an entry does not admit a station that a rule blocks."""
    areas = listener.areas
    await areas.bypass.put(areas.domain, [StationChange(MAC, vlan="30")])
    block = RuleFields.model_validate({"name": "out", "action": "block", "kinds": ["station"]})
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    await areas.rules.add(areas.domain, block)
    decision = await listener.decide(listener.login(REQUEST))
    assert (decision.applied, decision.reason) == (Verdict.REJECT, Reason.BLOCKED)


@pytest.mark.parametrize("vlan", ["0", "4095", "99999"])
async def test_an_invalid_vlan_is_refused(areas: Areas, vlan: str) -> None:
    """A VLAN outside 1 to 4094 is refused, and no station is added."""
    with pytest.raises(Invalid) as refused:
        await areas.bypass.put(areas.domain, [StationChange("000000000001"), StationChange(MAC, vlan=vlan)])
    assert [each.field for each in refused.value.errors] == ["vlan"]
    assert (await areas.bypass.page(areas.domain, "", offset=0, limit=1))[1] == 0


async def test_a_role_is_looked_up_once(areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change with many spellings of one role looks it up once, because each look-up parses all its sets while other
    writes wait."""
    await areas.app.roles.service.set(areas.domain, "Staff", ReplySet(vlan="9"))
    asked = list[str]()

    def check(tx: Tx, domain_id: int, role: str) -> str:
        asked.append(role)
        return areas.app.roles.service.check(tx, domain_id, role)

    monkeypatch.setattr(areas.bypass, "_check_role", check)
    spellings = ["staff", "STAFF", "Staff", "sTAFF"]
    changes = [StationChange(f"{number:012x}", role=role) for number, role in enumerate(spellings)]
    await areas.bypass.put(areas.domain, changes)
    rows, _ = await areas.bypass.page(areas.domain, "", offset=0, limit=10)
    assert ({row.role for row in rows}, len(asked)) == ({"Staff"}, 1)


@pytest.mark.parametrize("end", ["1970-01-01", "1900-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_an_end_that_would_be_none_is_refused(end: str) -> None:
    """An end before 1970, as spreadsheets write an empty date, would let the station in for ever. A year that no list
    can show is refused too."""
    imported = {"orgId": 1, "tenantId": 1, "domainId": 1, "stations": [{"station": MAC, "until": end}]}
    with pytest.raises(ValidationError, match="until"):
        ImportBypassStations.model_validate(imported)


async def test_values_that_are_not_given_stay(areas: Areas, clock: SetClock) -> None:
    """A change keeps the values that it does not have. Of two changes of one station, the last counts."""
    end = clock() + 60 * SECOND
    await areas.bypass.put(areas.domain, [StationChange(MAC, "printer", "30", end)])
    await areas.bypass.put(areas.domain, [StationChange(MAC, vlan="1"), StationChange(MAC, vlan="31")])
    row = await entry(areas)
    assert (row.name, row.vlan, row.until_at) == ("printer", "31", end)
    assert areas.bypass.entry(areas.domain, MAC, clock()) == Entry("31", end)
    await areas.bypass.put(areas.domain, [StationChange(MAC, vlan="", until=0)])
    assert areas.bypass.entry(areas.domain, MAC, end) == Entry()


async def test_only_a_changed_list_is_read_again(areas: Areas) -> None:
    """A change of a list keeps the lists of other domains in memory. Each change of a value makes a list new."""
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.bypass.put(branch, [StationChange(MAC)])
    await areas.bypass.put(areas.domain, [StationChange(MAC)])
    first = await areas.store.read(lambda tx: repo.load(tx, repo.Listed()))
    for vlan in ("30", "31", ""):
        await areas.bypass.put(areas.domain, [StationChange(MAC, vlan=vlan)])
        now = await areas.store.read(lambda tx: repo.load(tx, first))
        assert now.lists[branch] is first.lists[branch]
        assert now.lists[areas.domain][MAC] == Entry(vlan)


async def test_an_entry_ends(listener: FakeListener, clock: SetClock) -> None:
    """From its end on, an entry does not admit its station. The audit trail has one record of the expiry, and the
    sessions of the station end as if the entry was removed. A new end starts a new life."""
    areas = listener.areas
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    await areas.bypass.put(areas.domain, [StationChange(MAC, "guest", until=clock() + 60 * SECOND)])
    assert (await listener.decided(REQUEST))[0] == "accept"
    await areas.bypass.expire(areas.store)
    assert await _expiries(areas) == []
    clock.now += 60 * SECOND
    assert (await listener.decided(REQUEST))[:2] == ("reject", Reason.UNKNOWN_USER)
    assert not areas.bypass.has(areas.domain, MAC)
    for _ in range(2):
        await areas.bypass.expire(areas.store)
    (changes,) = await _expiries(areas)
    assert json.loads(changes) == {"stations": [None, ["aa:bb:cc:dd:ee:ff"]], "name": ["guest", "guest"]}
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from revocations")) == 6
    await areas.bypass.put(areas.domain, [StationChange(MAC, until=clock() + SECOND)])
    assert (await listener.decided(REQUEST))[0] == "accept"
    clock.now += SECOND
    await areas.bypass.expire(areas.store)
    assert len(await _expiries(areas)) == 2


async def _expiries(areas: Areas) -> list[str]:
    sql = "select changes from audit_trail where action = 'bypass.expire' order by id"
    return [str(changes) for (changes,) in await areas.store.read(lambda tx: tx.rows(sql))]


async def test_the_last_request_is_stored(listener: FakeListener, clock: SetClock) -> None:
    """A request of a listed station sets the time at which it was last seen, and a request of another one sets
    nothing."""
    areas = listener.areas
    await areas.bypass.add(areas.domain, [MAC])
    await areas.bypass.flush()
    assert (await entry(areas)).last_seen == 0
    await listener.decide(listener.login(REQUEST))
    await listener.decide(listener.login(pap("020000000001", "020000000001", body("02-00-00-00-00-01"))))
    await areas.bypass.flush()
    assert (await entry(areas)).last_seen == clock()
    changed = areas.bypass.entry(areas.domain, MAC, clock())
    clock.now -= SECOND
    await listener.decide(listener.login(REQUEST))
    await areas.bypass.flush()
    assert (await entry(areas)).last_seen == clock() + SECOND, "a clock that was set back changes nothing"
    assert areas.bypass.entry(areas.domain, MAC, clock()) is changed


@pytest.mark.parametrize(
    ("station", "is_random"),
    [
        *((f"{first}0000000001", True) for first in ("02", "0a", "de", "f6")),
        *((f"{first}0000000001", False) for first in ("00", "01", "03", "a8")),
    ],
)
def test_a_randomised_address(station: str, is_random: bool) -> None:
    """An address whose second digit is 2, 6, a or e is made up by the station."""
    assert is_random_address(station) is is_random
