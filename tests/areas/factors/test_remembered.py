"""Remembered stations in the store: their use, their end, their maximum, and the operator who removes them."""

from dataclasses import replace

import pytest

from sallyport.areas.factors.denials import Denial, DeniedAt
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.remembered.service import RememberedStations
from sallyport.areas.factors.remembered.station import MAX_STATIONS, RememberedStation, SeenStation, StationKind
from sallyport.base.answer import answer
from sallyport.base.errors import NotFound
from tests.areas import Areas

HOURS = 24


def seen(areas: Areas, **changes: object) -> SeenStation:
    """Return the station of a login of ann."""
    known = SeenStation(
        Person(areas.domain, "Ann"), StationKind.MAC, "001a2b3c4d5e", 1, "wifi", "own", "the stamp of a password"
    )
    return replace(known, **changes)  # type: ignore[arg-type]  # fields of the class


def node(areas: Areas) -> RememberedStations:
    """Return the stations as another node has them."""
    return RememberedStations(areas.store, areas.clock)


async def stations_of(areas: Areas, user: str = "") -> list[RememberedStation]:
    """Return the remembered stations of a user, or of all."""
    return (await node(areas).page(areas.domain, user, 0, 100))[0]


async def trail(areas: Areas) -> list[tuple[str, str]]:
    """Return (action, target) of the audit trail about stations."""
    sql = "select action, target from audit_trail where action like 'user.station.%' order by id"
    return [(str(action), str(target)) for action, target in await areas.store.read(lambda tx: tx.rows(sql))]


async def test_a_station_is_remembered_for_a_time(areas: Areas) -> None:
    """Another node knows it. Case of the name does not matter. It ends at its time."""
    await node(areas).keep(seen(areas), HOURS)
    areas.clock.pass_by(3600)
    used = await node(areas).use(seen(areas, person=Person(areas.domain, "ANN")), HOURS)
    assert used is not None and used.last_used_at == areas.clock()
    assert answer(used)["station"] == "00:1a:2b:3c:4d:5e"
    areas.clock.pass_by(23 * 3600)
    assert await node(areas).use(seen(areas), HOURS) is None
    assert await stations_of(areas) == []


async def test_a_shorter_setting_applies_at_once(areas: Areas) -> None:
    """An admin who lowers the hours ends the stations that are older."""
    await node(areas).keep(seen(areas), HOURS)
    areas.clock.pass_by(2 * 3600)
    assert await node(areas).use(seen(areas), 2) is None
    assert await node(areas).use(seen(areas), 3) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"station": "001a2b3c4d5f"},
        {"client_id": 2},
        {"provider": "duo"},
        {"password": "another stamp"},
        {"kind": StationKind.CERTIFICATE, "station": "00" * 32, "client_id": 0},
    ],
    ids=["another station", "another client", "another provider", "another password", "a certificate"],
)
async def test_another_station_is_not_remembered(areas: Areas, changes: dict[str, object]) -> None:
    """Each part of a station counts: a copied address at another client, and a new password, are asked."""
    await node(areas).keep(seen(areas), HOURS)
    assert await node(areas).use(seen(areas, **changes), HOURS) is None


async def test_another_person_and_another_domain(areas: Areas) -> None:
    """The same station of another person, and of the same name in another domain, is not remembered."""
    other = await areas.domains.add(areas.tenant, "branch")
    await node(areas).keep(seen(areas), HOURS)
    for person in (Person(areas.domain, "bob"), Person(other, "ann")):
        assert await node(areas).use(seen(areas, person=person), HOURS) is None


async def test_a_second_factor_begins_the_time_again(areas: Areas) -> None:
    """There is one row for a station. The new stamp of the password replaces the former one."""
    await node(areas).keep(seen(areas), HOURS)
    areas.clock.pass_by(3600)
    await node(areas).keep(seen(areas, password="another"), HOURS)
    (known,) = await stations_of(areas)
    assert (known.since, known.last_used_at) == (areas.clock(), None)
    assert await node(areas).use(seen(areas), HOURS) is None
    assert await node(areas).use(seen(areas, password="another"), HOURS) is not None


async def test_a_person_has_a_maximum(areas: Areas) -> None:
    """The station that was used longest ago makes room. Other people keep theirs."""
    await node(areas).keep(seen(areas, person=Person(areas.domain, "bob")), HOURS)
    for number in range(MAX_STATIONS):
        areas.clock.pass_by(1)
        await node(areas).keep(seen(areas, station=f"001a2b3c4d{number:02x}"), HOURS)
    areas.clock.pass_by(1)
    await node(areas).use(seen(areas, station="001a2b3c4d00"), HOURS)
    await node(areas).keep(seen(areas), HOURS)
    kept = {each.station for each in await stations_of(areas, "ann")}
    assert len(kept) == MAX_STATIONS
    assert {"001a2b3c4d00", "001a2b3c4d5e"} < kept and "001a2b3c4d01" not in kept
    assert len(await stations_of(areas, "bob")) == 1


async def test_what_ends_all_stations_of_a_person(areas: Areas) -> None:
    """These are "not me", a lost access, and the removal of the user. A restore ends those of all people."""
    factors = areas.app.factors

    async def lose() -> None:
        await areas.store.write(lambda tx: areas.revocations.revoke(tx, areas.domain, ["ANN"], "a test"))

    async def remove() -> None:
        await areas.add_user(areas.domain, "ann", b"password")
        await areas.remove_user(areas.domain, "ann")

    async def restore() -> None:
        await areas.store.write(lambda tx: areas.app.areas.void(tx, False))

    await node(areas).keep(seen(areas, person=Person(areas.domain, "bob")), HOURS)
    denial = Denial(areas.domain, "ANN", DeniedAt.OWN_PAGES)
    for end in (lambda: factors.denials.deny(denial), lose, remove, restore):
        await node(areas).keep(seen(areas), HOURS)
        assert len(await stations_of(areas, "ann")) == 1
        await end()
        assert await stations_of(areas, "ann") == []
        assert len(await stations_of(areas, "bob")) == (0 if end is restore else 1)


async def test_an_operator_removes_stations(areas: Areas) -> None:
    """One of them, or all of a user. The audit trail has each."""
    for station in ("001a2b3c4d01", "001a2b3c4d02", "001a2b3c4d03"):
        await node(areas).keep(seen(areas, station=station), HOURS)
    first, *_ = await stations_of(areas)
    for person, number in ((Person(areas.domain, "bob"), first.id), (Person(areas.domain, "ann"), first.id + 100)):
        with pytest.raises(NotFound, match="no such remembered station"):
            await node(areas).remove(person, number)
    assert await node(areas).remove(Person(areas.domain, "ann"), first.id) == 1
    assert await node(areas).remove(Person(areas.domain, "ANN")) == 2
    assert await stations_of(areas) == []
    assert await trail(areas) == [
        *(("user.station.remember", f"mac 001a2b3c4d0{number} of Ann") for number in (1, 2, 3)),
        ("user.station.forget", "1 remembered station of ann"),
        ("user.station.forget", "2 remembered stations of ANN"),
    ]


async def test_a_removed_domain_remembers_nothing(areas: Areas) -> None:
    """A login that ends during the removal stores nothing, and does not fail."""
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.removal.remove(other)
    await node(areas).keep(seen(areas, person=Person(other, "ann")), HOURS)
    assert (await node(areas).page(other, "", 0, 10))[1] == 0
