"""An import that writes several people together stores the same rows as one that writes each person alone."""

import random

from sallyport.areas.directory import repo
from sallyport.areas.directory.entry.entry import Person
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.imports.applier import FileEntry, _together
from sallyport.areas.directory.imports.job import ImportRun
from sallyport.areas.directory.imports.lines import PreparedPerson, keys_of, prepared_person
from sallyport.areas.directory.mappings.mapping import FieldMapping
from sallyport.areas.directory.stored import people
from sallyport.store.model import Tx, Value, among
from tests.areas import Areas
from tests.areas.directory.world import DN, group, imported

SEEDS = 40
IDENTIFIERS = [f"00000000-0000-4000-8000-{number:012x}" for number in range(5)]
NAMES = [DN.format(each) for each in ("ann", "ben", "cat", "dan")]
GROUPS = ["cn=ops,dc=x", "cn=vpn,dc=x"]


class Ignored:
    """The revocations of a domain without login rules."""

    def revoke(self, tx: Tx, domain_id: int, names: object, reason: str) -> None:
        """Do nothing."""

    def release(self, tx: Tx, domain_id: int, name: str) -> None:
        """Do nothing."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Return False."""
        return False

    def device_matters(self, domain_id: int) -> bool:
        """Return False."""
        return False


def drawn(chance: random.Random, place: int) -> FileEntry:
    """Return a person with an identifier and a name that other people may have too."""
    dn = chance.choice(NAMES)
    member_of = tuple(chance.sample(GROUPS, chance.randrange(3)))
    person = Person(
        external_id=chance.choice([*IDENTIFIERS, f"dn:{dn}"]),
        dn=dn,
        name=dn[4:7],
        aliases=tuple(chance.sample(["ann", "cy", "Ed"], chance.randrange(3))),
        status=chance.choice([*Status]),
        member_of=member_of,
        attributes={"title": (chance.choice("xyz"),)},
    )
    return FileEntry(place, prepared_person(person, keys_of(member_of)))


async def rows_after(areas: Areas, parts: list[list[FileEntry]], directory_id: int, domain_id: int) -> list[object]:
    """Write people in one transaction, and return the rows of their directory without the ids."""
    run = ImportRun(domain_id, directory_id, 7, False, True, FieldMapping({}), frozenset(), started_at=1)

    def write(tx: Tx) -> None:
        unindexed: people.Unindexed = []
        for part in parts:
            several = [item.entry for item in part if isinstance(item.entry, PreparedPerson)]
            if people.put(tx, run, several, Ignored(), 2, unindexed) is None:
                for each in several:
                    while people.put(tx, run, [each], Ignored(), 2, unindexed) is None:
                        pass
        people.index_added(tx, unindexed)

    await areas.store.write(write)
    return await areas.store.read(lambda tx: [*_rows(tx, directory_id)])


def _rows(tx: Tx, directory_id: int) -> list[tuple[Value, ...]]:
    """Return the stored rows of a directory. A row is named by its position, because ids differ."""
    order = "(select count(*) from directory_users o where o.directory_id = u.directory_id and o.id < u.id)"
    users = (
        f"select {order}, u.external_id, u.dn, u.dn_key, u.login, u.name, u.status, u.seen, a.attributes, n.name_key, "  # noqa: S608
        "n.is_alias from directory_users u join directory_attributes a on a.user_id = u.id "
        "join directory_names n on n.user_id = u.id where u.directory_id = :dir order by 1, n.name_key"
    )
    members = "select member_key, group_key, told from directory_members where directory_id = :dir order by 1, 2, 3"
    return [*tx.rows(users, dir=directory_id), *tx.rows(members, dir=directory_id)]


async def test_people_who_are_written_together(areas: Areas) -> None:
    """The rows are those that result if each person is written alone, whatever identifiers and names they share."""
    for seed in range(SEEDS):
        chance = random.Random(seed)
        items = [drawn(chance, place) for place in range(12)]
        results = []
        for parts in ([[item] for item in items], [*_together(items)]):
            domain_id = await areas.domains.add(areas.tenant, f"d{seed}-{len(results)}")
            directory_id = await areas.store.write(
                lambda tx, domain_id=domain_id: _directory(tx, domain_id)  # type: ignore[misc]
            )
            results.append(await rows_after(areas, parts, directory_id, domain_id))
        assert results[0] == results[1], seed


def _directory(tx: Tx, domain_id: int) -> int:
    return repo.add(tx, domain_id, "LDIF", "ldif", 1).id


async def test_many_people_and_their_groups(areas: Areas) -> None:
    """All people of a file are written, with their names and groups, if they need several statements."""
    members = [DN.format(f"u{number}") for number in range(120)]
    ldif = "".join(
        f"dn: {dn}\nobjectClass: inetOrgPerson\nuid: u{number}\nuid: U{number}-more\nmemberOf: cn=ops,dc=x\n\n"
        for number, dn in enumerate(members)
    )
    assert (await imported(areas, ldif + group("ops"))).added == 121
    names = await areas.store.read(lambda tx: tx.value(int, "select count(*) from directory_names"))
    told = await areas.store.read(lambda tx: tx.value(int, "select count(*) from directory_members where told = 1"))
    assert (names, told) == (240, 120)


async def test_a_set_of_values(areas: Areas) -> None:
    """`among` finds numbers and octets, and its SQL does not depend on how many there are."""
    for values in ([b"x"], [b"y", b"x"]):
        octets, parameters = among(values, 3)
        sql = f"select 1 from domains where :octets in {octets}"  # noqa: S608
        found = await areas.store.read(lambda tx, sql=sql, given=parameters: tx.value(int, sql, octets=b"x", **given))  # type: ignore[misc]
        assert found == 1
    assert among([1], 3)[0] == among([1, 2], 3)[0]
