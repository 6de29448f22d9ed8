"""Tests of reading Active Directory (Samba): its own attributes, and its changes."""

from dataclasses import replace

import pytest

from sallyport.areas.directory.entry.dn import normalized
from sallyport.areas.directory.entry.entry import Person, Unchanged, Unit
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.connection import Account
from sallyport.areas.directory.reading.reader import LdapSource
from sallyport.areas.directory.reading.server import Server
from tests.areas.directory.reading.readings import Reading, names, read
from tests.peers.authority import Authority
from tests.peers.samba import BASE, DC_NAME, PASSWORD, PEOPLE, REALM, STAFF, Corp, in_network, look_up, needs_samba

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_samba]

USERS = f"CN=Users,{BASE}"


def source_of(corp: Corp, url: str = f"ldaps://{DC_NAME}", *, start_tls: bool = False) -> LdapSource:
    """Return the domain as a source that the user `reader` reads."""
    account = Account(f"reader@{REALM.lower()}", PASSWORD)
    return LdapSource((Server(url, start_tls),), BASE, account, authorities=corp.authority.pem)


def dn_of(name: str) -> str:
    """Return a person's DN."""
    return f"CN={name},{USERS}"


async def read_all(corp: Corp, cursor: str = "", *, full: bool = True) -> Reading:
    """Read the domain from the joined host."""
    with in_network(corp):
        return await read(source_of(corp), cursor, full=full, look_up=look_up)


async def test_everything_is_read(corp: Corp) -> None:
    """People are read with their states, without computers.

    Groups are read with their members, including nested groups. Organizational units are read too.
    """
    corp.administer(
        ["group", "add", "outer"],
        ["group", "add", "inner"],
        ["group", "addmembers", "outer", "inner"],
        ["group", "addmembers", "inner", "bob"],
        ["group", "addmembers", "inner", "outer"],
        ["ou", "create", f"OU=Sales,{BASE}"],
    )
    reading = await read_all(corp)
    assert reading.complete
    assert set(PEOPLE) <= set(reading.people)
    assert not any(name.endswith("$") for name in reading.people)
    status = {name: person.status for name, person in reading.people.items()}
    assert (status["ann"], status["off"], status["gone"]) == (Status.ACTIVE, Status.DISABLED, Status.EXPIRED)
    groups = reading.groups
    assert sorted(groups["staff"].members) == sorted(dn_of(name) for name in STAFF)
    assert (groups["outer"].members, set(groups["inner"].members)) == (
        (dn_of("inner"),),
        {dn_of("outer"), dn_of("bob")},
    )
    assert {"Sales", "Domain Controllers"} <= names(reading.all(Unit))


async def test_the_primary_group(corp: Corp) -> None:
    """The primary group of a user is found, although it is in no memberOf and no member attribute.

    A membership that the group also lists is not repeated.
    """
    people = (await read_all(corp)).people
    assert people["ann"].member_of == (f"CN=Domain Users,{USERS}",)
    assert people["ann"].aliases == (f"ann@{REALM.lower()}",)


async def test_changes(corp: Corp) -> None:
    """Changes are found by uSNChanged.

    New, changed, disabled and renamed entries are read, and so are changed memberships. Of all other entries only the
    identity is read.
    """
    corp.administer(*(["user", "create", name, PASSWORD] for name in ("chg", "dis", "rem", "ren")))
    before = await read_all(corp)
    assert set(await _changed(corp, before)) == set()
    corp.administer(
        ["user", "disable", "dis"],
        ["user", "delete", "rem"],
        ["user", "rename", "ren", "--samaccountname=ren2"],
        ["user", "create", "new", PASSWORD, "--mail-address=new@corp.example"],
        ["group", "addmembers", "staff", "bob"],
    )
    after = await read_all(corp, before.cursor, full=False)
    people = after.people
    assert {"dis", "ren2", "new"} <= set(people)
    assert people["dis"].status is Status.DISABLED
    assert people["ren2"].external_id == before.people["ren"].external_id
    assert people["new"].attributes["mail"] == ("new@corp.example",)
    assert dn_of("bob") in after.groups["staff"].members
    unchanged = {entry.external_id: entry for entry in after.all(Unchanged)}
    assert unchanged[before.people["ann"].external_id].status is Status.ACTIVE
    assert unchanged[before.people["chg"].external_id].dn == dn_of("chg")
    assert before.people["rem"].external_id not in {*unchanged, *(entry.external_id for entry in after.all(Person))}
    assert after.complete
    corp.administer(["group", "removemembers", "staff", "bob"])


async def _changed(corp: Corp, before: Reading) -> list[str]:
    return [*(await read_all(corp, before.cursor, full=False)).people]


async def test_encrypted(corp: Corp) -> None:
    """Reading works over StartTLS, LDAPS and the global catalogue.

    A certificate for another name is refused, and so is a certificate of another authority.
    """
    with in_network(corp):
        for url, start_tls in ((f"ldap://{DC_NAME}", True), (f"ldaps://{DC_NAME}:3269", False)):
            assert "ann" in (await read(source_of(corp, url, start_tls=start_tls), look_up=look_up)).people, url
        with pytest.raises(ReadError, match="its certificate is not trusted"):
            await read(source_of(corp, "ldaps://10.97.0.1"))
        with pytest.raises(ReadError, match="its certificate is not trusted"):
            await read(replace(source_of(corp), authorities=Authority("another CA").pem), look_up=look_up)


async def test_a_part_of_the_accounts(corp: Corp) -> None:
    """A filter with the matching rules of Active Directory selects the accounts. All groups are read too."""
    member_of = f"(memberOf:1.2.840.113556.1.4.1941:=CN=staff,{USERS})"
    with in_network(corp):
        source = replace(source_of(corp), accounts=f"(&(objectCategory=person){member_of})")
        reading = await read(source, look_up=look_up)
    assert {normalized(person.dn) for person in reading.all(Person)} == {normalized(dn_of(name)) for name in STAFF}
    assert "staff" in reading.groups
