"""Imports of files with replication data, and with parts of attributes."""

from base64 import b64encode

import pytest

from sallyport.store.model import ListQuery
from tests.areas import Areas
from tests.areas.directory.world import DN, counts, group, groups_of, imported, members, names, person

ID = "4d2f8c3c-1dd211b2-8a8bbf5a-c0a80001"
OTHER_ID = "4d2f8c3c-1dd211b2-8a8bbf5a-c0a80002"
GUID = "objectGUID:: AAECAwQFBgcICQoLDA0ODw=="
CSN = "4d2f8c3c000000010000"
DELETED = f"vucsn-{CSN};vdcsn-{CSN};deleted"


async def status_of(areas: Areas, name: str = "ann") -> str:
    """Return the status of a person."""
    users, _ = await areas.directory.directories.users(ListQuery(areas.domain, 0, 100), "")
    return next(user.status for user in users if user.name == name)


async def email_of(areas: Areas) -> str:
    """Return the mail address of the only person."""
    users, _ = await areas.directory.directories.users(ListQuery(areas.domain, 0, 100), "")
    return users[0].email


async def test_a_deleted_member_is_no_member(areas: Areas) -> None:
    """A member that was deleted, and that the directory keeps only for replication, is in no group."""
    everybody = person("ann") + person("bob")
    ops = group("ops").replace("groupOfNames", "groupOfUniqueNames").rstrip("\n")
    ops += f"\nuniqueMember;vucsn-{CSN}: {DN.format('ann')}\nuniqueMember;{DELETED}: {DN.format('bob')}\n\n"
    await imported(areas, everybody + ops)
    assert (await groups_of(areas, "ann"), await groups_of(areas, "bob")) == ({"ops"}, frozenset())


async def test_deleted_values_of_a_person_are_ignored(areas: Areas) -> None:
    """A deleted lock does not disable an account, and a deleted address is not the address."""
    lines = (
        f"nsAccountLock;adcsn-{CSN};{DELETED}: TRUE", f"mail;{DELETED}: old@corp.example", f"uid;{DELETED}: bob",
        f"mail;vucsn-{CSN}: ann@corp.example", f"memberOf;{DELETED}: cn=ops,dc=x",
    )  # fmt: skip
    await imported(areas, person("ann", *lines) + group("ops"))
    assert (await status_of(areas), await email_of(areas)) == ("active", "ann@corp.example")
    assert (await groups_of(areas, "bob"), await groups_of(areas, "ann")) == (frozenset(), frozenset())


async def test_a_lock_with_replication_data_disables(areas: Areas) -> None:
    await imported(areas, person("ann", f"nsAccountLock;adcsn-{CSN};vucsn-{CSN}: TRUE"))
    assert await status_of(areas) == "disabled"


IDENTIFIERS = ("ipaUniqueID", "nsUniqueId", "entryUUID", "objectGUID")
GONE = {
    "tombstone of 389 DS": (f"nsuniqueid={ID},uid=ann,ou=People,dc=x", "objectClass: nsTombstone", f"nsUniqueId: {ID}"),
    "conflict of 389 DS": (
        f"nsuniqueid={ID}+uid=ann,ou=People,dc=x", "objectClass: ldapsubentry", f"nsUniqueId: {ID}",
        "nsds5ReplConflict: namingConflict (ADD) uid=ann,ou=people,dc=x",
    ),
    "old conflict of 389 DS": (f"uid=ann+nsuniqueid={ID},ou=People,dc=x", f"nsUniqueId: {ID}"),
    "conflict of OpenDJ": (f"entryuuid={ID}+uid=ann,ou=People,dc=x", f"entryUUID: {ID}", "ds-sync-conflict: uid=ann"),
    "deleted in Active Directory": ("cn=ann,cn=Deleted Objects,dc=x", "isDeleted: TRUE", GUID),
    "recycled in Active Directory": ("cn=ann,cn=Deleted Objects,dc=x", "isRecycled: true ", GUID),
    "name of a deleted entry": (r"cn=ann\0ADEL:a93e,cn=Deleted Objects,dc=x", GUID),
    "conflict of Active Directory": (r"cn=ann\0ACNF:a93e,ou=People,dc=x", GUID),
    "name of a deleted entry in base64": (
        ": " + b64encode(b"cn=ann\nDEL:a93e,cn=Deleted Objects,dc=x").decode(), GUID,
    ),
    "preserved user of FreeIPA": (
        "uid=ann,cn=deleted users, cn=accounts,cn=provisioning,dc=x", f"ipaUniqueID: {ID}", f"nsUniqueId: {OTHER_ID}",
    ),
    "subentry": ("uid=ann,ou=People,dc=x", "objectClass: subentry"),
}  # fmt: skip


def entry(dn: str, *lines: str) -> str:
    """Return the record of an entry that has the attributes of a person."""
    first = f"dn:{dn}" if dn.startswith(":") else f"dn: {dn}"
    return "\n".join((first, "objectClass: inetOrgPerson", "objectClass: posixGroup", "uid: ann", *lines)) + "\n\n"


@pytest.mark.parametrize("lines", GONE.values(), ids=GONE)
async def test_a_deleted_entry_is_no_person(areas: Areas, lines: tuple[str, ...]) -> None:
    """Entries that a directory keeps only for replication become neither people nor groups."""
    job = await imported(areas, person("ben") + entry(*lines))
    assert (await names(areas), await members(areas)) == (["ben"], {})
    assert counts(job) == (2, 1, 0, 0, 1, 0)


@pytest.mark.parametrize(
    "lines",
    [lines for name, lines in GONE.items() if name != "subentry"],
    ids=[name for name in GONE if name != "subentry"],
)
async def test_a_deleted_entry_removes_the_person(areas: Areas, lines: tuple[str, ...]) -> None:
    """An import removes a person that the file has as deleted. The entry is found by its permanent identifier."""
    known = next(line for line in lines if line.partition(":")[0] in IDENTIFIERS)
    await imported(areas, person("ann", known) + person("ben"))
    job = await imported(areas, entry(*lines))
    assert (await names(areas), counts(job)) == (["ben"], (1, 0, 0, 1, 0, 0))


async def test_a_conflict_entry_makes_room_for_the_winner(areas: Areas) -> None:
    """If two entries have the same name, the name belongs to the one without a conflict."""
    loser = entry(f"nsuniqueid={ID}+uid=ann,ou=People,dc=x", f"nsUniqueId: {ID}", "nsds5ReplConflict: namingConflict")
    await imported(areas, person("ann", f"nsUniqueId: {ID}") + group("ops", DN.format("ann")))
    await imported(areas, person("ann", f"nsUniqueId: {OTHER_ID}") + loser)
    assert (await names(areas), await groups_of(areas, "ann")) == (["ann"], {"ops"})


@pytest.mark.parametrize(
    "change",
    [
        "add: objectClass\nobjectClass: nsTombstone", "replace: isDeleted\nisDeleted: TRUE",
        "add: nsds5ReplConflict\nnsds5ReplConflict: namingConflict uid=ann",
    ],
)  # fmt: skip
async def test_a_change_that_deletes_an_entry_removes_the_person(areas: Areas, change: str) -> None:
    """A change record that marks an entry as deleted removes the person."""
    await imported(areas, person("ann") + f"dn: {DN.format('ann')}\nchangetype: modify\n{change}\n-\n")
    assert await names(areas) == []


async def test_a_renaming_to_a_conflict_removes_the_person(areas: Areas) -> None:
    """A change record that gives an entry the name of a conflict entry removes the person."""
    change = f"dn: {DN.format('ann')}\nchangetype: modrdn\nnewrdn: nsuniqueid={ID}+uid=ann\ndeleteoldrdn: 0\n\n"
    await imported(areas, person("ann") + change)
    assert await names(areas) == []


async def test_an_entry_with_only_nsuniqueid_keeps_its_identity(areas: Areas) -> None:
    """After a renaming, an entry of 389 DS is the same person."""
    await imported(areas, person("ann", f"nsUniqueId: {ID}"))
    job = await imported(areas, person("anna", f"nsUniqueId: {ID}"))
    assert (await names(areas), counts(job)) == (["anna"], (1, 0, 1, 0, 0, 0))


@pytest.mark.parametrize("identifier", ["nsUniqueId", "ibm-entryUUID", "orclGUID", "ipaUniqueID"])
async def test_permanent_identifiers_of_other_servers(areas: Areas, identifier: str) -> None:
    await imported(areas, person("ann", f"{identifier}: {ID}"))
    await imported(areas, person("anna", f"{identifier}: {ID}"))
    assert await names(areas) == ["anna"]


async def test_the_identifier_of_edirectory(areas: Areas) -> None:
    """The GUID of eDirectory has 16 octets."""
    await imported(areas, person("ann", GUID.replace("objectGUID", "GUID")))
    await imported(areas, person("anna", GUID.replace("objectGUID", "GUID")))
    assert await names(areas) == ["anna"]


# --- parts of attributes --------------------------------------------------------------------------------------------

EVERYBODY = person("ann") + person("bob") + group("ops", DN.format("ann"), DN.format("bob"))


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("given", ["member;range=0-0", "uniqueMember;range=0-0", "member;range=0-0;lang-en"])
async def test_a_part_of_the_members_does_not_shorten_a_group(areas: Areas, complete: bool, given: str) -> None:
    """A group with only a part of its members is refused, and the stored group keeps its members. A complete import
    does not remove the group either.
    """
    await imported(areas, EVERYBODY)
    people = person("ann") + person("bob")
    part = group("ops").rstrip("\n") + f"\n{given}: {DN.format('ann')}\n\n"
    job = await imported(areas, people + part, complete=complete)
    assert job.failed == 1 and "a part of the values" in job.errors
    assert await members(areas) == {"ops": 2}
    assert await groups_of(areas, "bob") == {"ops"}


async def test_all_parts_of_the_members_are_the_members(areas: Areas) -> None:
    """Members in several ranges are all read if no range is missing."""
    parts = f"\nmember;range=0-0: {DN.format('ann')}\nmember;range=1-*: {DN.format('bob')}\n\n"
    await imported(areas, person("ann") + person("bob") + group("ops").rstrip("\n") + parts)
    assert await members(areas) == {"ops": 2}


async def test_a_part_of_the_groups_does_not_take_a_group_away(areas: Areas) -> None:
    """A person with only a part of the groups is refused, and keeps the groups. If the file says that the account is
    disabled, the account is disabled all the same.
    """
    await imported(areas, person("ann", "memberOf: cn=ops,dc=x", "memberOf: cn=vpn,dc=x") + group("ops") + group("vpn"))
    job = await imported(areas, person("ann", "memberOf;range=0-0: cn=ops,dc=x"))
    assert job.failed == 1 and await groups_of(areas, "ann") == {"ops", "vpn"}
    assert await status_of(areas) == "active"
    await imported(areas, person("ann", "memberOf;range=0-0: cn=ops,dc=x", "userAccountControl: 514"))
    assert (await status_of(areas), await groups_of(areas, "ann")) == ("disabled", {"ops", "vpn"})


@pytest.mark.parametrize("step", ["replace", "add", "delete"])
async def test_a_change_with_a_part_of_the_members_is_refused(areas: Areas, step: str) -> None:
    """A change record with only a part of the members changes nothing. The other records are applied."""
    change = (
        f"dn: cn=ops,dc=x\nchangetype: modify\n{step}: member;range=0-0\nmember;range=0-0: {DN.format('ann')}\n-\n\n"
    )
    job = await imported(areas, EVERYBODY + change + person("cid"))
    assert job.failed == 1 and await members(areas) == {"ops": 2}
    assert "cid" in await names(areas)


# --- options in change records --------------------------------------------------------------------------------------


async def test_a_change_of_another_language_keeps_the_other_values(areas: Areas) -> None:
    """If the values in one language are replaced or deleted, the other values stay."""
    change = f"dn: {DN.format('ann')}\nchangetype: modify\n"
    more = "mail: ann@corp.example"
    steps = "replace: mail;lang-de\nmail;lang-de: anna@corp.example\n-\ndelete: mail;lang-de\n-\n"
    await imported(areas, person("ann", more) + change + steps)
    assert await email_of(areas) == "ann@corp.example"


@pytest.mark.parametrize("option", [DELETED, "x-old"])
async def test_a_change_of_no_value_changes_nothing(areas: Areas, option: str) -> None:
    """A change record with deleted values, or with an unknown option, does not change the attribute."""
    key = f"nsAccountLock;{option}"
    await imported(
        areas, person("ann") + f"dn: {DN.format('ann')}\nchangetype: modify\nreplace: {key}\n{key}: TRUE\n-\n"
    )
    assert await status_of(areas) == "active"


async def test_a_change_with_replication_data_is_applied(areas: Areas) -> None:
    key = f"nsAccountLock;vucsn-{CSN}"
    await imported(areas, person("ann") + f"dn: {DN.format('ann')}\nchangetype: modify\nadd: {key}\n{key}: TRUE\n-\n")
    assert await status_of(areas) == "disabled"
