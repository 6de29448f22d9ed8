"""Tests of reading OpenLDAP: everything once and then the changes, in pages, over TLS, and from a server that fails."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
import trio

from sallyport.areas.directory.entry.dn import normalized
from sallyport.areas.directory.entry.entry import Person, Unchanged, Unit
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.connection import Account
from sallyport.areas.directory.reading.reader import PAGE, LdapReader, LdapSource
from sallyport.areas.directory.reading.search import OVERLAP_S
from sallyport.areas.directory.reading.server import Server
from sallyport.base.clock import SECOND, now_us
from sallyport.outgoing.egress import Egress
from sallyport.settings.values import ANYWHERE
from tests.areas.directory.reading.readings import names, read
from tests.peers.authority import Authority
from tests.peers.programs import find, needs
from tests.peers.slapd import (
    BASE,
    PEOPLE,
    ROOT,
    ROOT_PASSWORD,
    SERVICE,
    SERVICE_PASSWORD,
    SIZE_LIMIT,
    STAFF,
    Slapd,
    dn_of,
    slapd,
)

pytestmark = [pytest.mark.peer, needs("slapd", "ldapmodify", "ldapsearch")]

MANY = 7 * SIZE_LIMIT
ACCOUNT = Account(SERVICE, SERVICE_PASSWORD)
VPN = f"cn=vpn users,{BASE}"
NESTED = f"""
dn: cn=outer,{BASE}
objectClass: groupOfUniqueNames
cn: outer
uniqueMember: {VPN}
uniqueMember: cn=circle,{BASE}

dn: cn=circle,{BASE}
objectClass: groupOfNames
cn: circle
member: cn=outer,{BASE}
member: {dn_of("bob")}

dn: cn=posix,{BASE}
objectClass: posixGroup
cn: posix
gidNumber: 4711
memberUid: ann

dn: uid=007,{STAFF}
objectClass: inetOrgPerson
objectClass: posixAccount
uid: 007
cn: Jane
sn: Bond
employeeNumber: 000123
uidNumber: 7
gidNumber: 4711
homeDirectory: /home/007
"""


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Return the issuer of the directory's certificate."""
    return Authority("The directory's CA")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Slapd]:
    """Yield a directory that is several times larger than its size limit. Each test changes only its own people."""
    with slapd(tmp_path_factory.mktemp("slapd"), authority) as directory:
        directory.add(NESTED + "".join(f"\n{_person(f'many{number}')}" for number in range(MANY)))
        yield directory


def source_of(directory: Slapd) -> LdapSource:
    """Return the directory as a source, without TLS."""
    return LdapSource((Server(directory.url, start_tls=False),), BASE, ACCOUNT)


# --- everything -------------------------------------------------------------------------------------------------


async def test_everything_is_read_in_pages(directory: Slapd) -> None:
    """All people, groups and units are read, although there are several times as many as the server's size limit.

    They equal the result of ldapsearch.
    """
    reading = await read(source_of(directory))
    assert reading.complete
    assert reading.cursor
    assert {f"many{number}" for number in range(MANY)} <= set(reading.people)
    found = sorted(entry.dn.casefold() for entry in reading.all(Person))
    assert len(found) == len(set(found))
    assert len(found) == len(_searched(directory, "(objectClass=inetOrgPerson)"))
    assert names(reading.all(Unit)) == {"staff", "people"}
    assert set(reading.groups) == {"vpn users", "admins, all", "outer", "circle", "posix"}


async def test_attributes_of_a_person(directory: Slapd) -> None:
    """Names and numbers are read as they are written.

    If a group is outside the read, its membership stays with the person.
    """
    people = (await read(source_of(directory))).people
    jane = people["007"]
    assert jane.attributes["employeenumber"] == ("000123",)
    assert jane.member_of == (f"cn=posix,{BASE}",)
    assert people["ann"].member_of == ()
    assert set(PEOPLE) <= set(people)
    entry_uuid = directory.attribute(dn_of("ann"), "entryUUID")[0]
    assert people["ann"].external_id == entry_uuid
    assert not any("pass" in name for person in people.values() for name in person.attributes)


async def test_members_come_from_groups(directory: Slapd) -> None:
    """Members are read from groups.

    This includes nested groups, circles of groups, and groups that have login names instead of DNs.
    """
    groups = (await read(source_of(directory))).groups
    assert groups["vpn users"].members == (dn_of("ann"), dn_of("zoë"))
    assert groups["outer"].members == (VPN, f"cn=circle,{BASE}")
    assert groups["circle"].members == (f"cn=outer,{BASE}", dn_of("bob"))
    assert groups["posix"].members == ("uid:ann",)


async def test_the_filter_says_which_accounts(directory: Slapd) -> None:
    """The filter selects the accounts. Groups and units are read too."""
    reading = await read(replace(source_of(directory), accounts="(uid=ann)", attributes=("audio", "seeAlso")))
    assert set(reading.people) == {"ann"}
    assert len(reading.groups) == 5


async def test_groups_outside_the_base_stay_with_the_person(directory: Slapd) -> None:
    """Groups outside the base stay with the person, because no other entry contains them."""
    reading = await read(replace(source_of(directory), base=STAFF))
    assert set(reading.groups) == set()
    assert set(map(normalized, reading.people["ann"].member_of)) == {f"cn=admins\\, all,{BASE}", VPN}


async def test_accounts_outside_of_their_time(directory: Slapd) -> None:
    """An account that has ended is expired, and an account that has not begun is disabled."""
    times = {"ended": "pwdEndTime: 20200101000000Z", "early": "pwdStartTime: 29990101000000Z"}
    for name, line in times.items():
        directory.add(_person(name))
        directory.change(f"uid={name},{STAFF}", f"add: {line.partition(':')[0]}", line)
    people = (await read(source_of(directory))).people
    assert (people["ended"].status, people["early"].status) == (Status.EXPIRED, Status.DISABLED)
    for name in times:
        directory.add(f"dn: uid={name},{STAFF}\nchangetype: delete\n")


async def test_options_and_blanks(directory: Slapd) -> None:
    """A value with a language is a further value of its attribute. A blank at the end of a name is not read."""
    directory.add(_person("olga", "cn;lang-ru: Ольга", "mail;lang-ru: olga@example.ru", "uid:: b2xseSA="))
    found = (await read(source_of(directory))).people["olga"]
    assert (found.aliases, found.attributes["mail"]) == (("olly",), ("olga@example.ru",))
    assert found.attributes["cn"] == ("olga", "Ольга")
    directory.add(f"dn: uid=olga,{STAFF}\nchangetype: delete\n")


# --- what changes -----------------------------------------------------------------------------------------------


async def test_changes_are_read(directory: Slapd) -> None:
    """If an entry has changed, its present state is read.

    If it has not changed, only its identity is read. An entry that was removed is not read.
    """
    for name in ("changed", "renamed", "removed", "locked"):
        directory.add(_person(name))
    before = await read(source_of(directory))
    since = await _a_second_after(before.cursor)
    directory.change(f"uid=changed,{STAFF}", "replace: sn", "sn: New")
    directory.change(VPN, "delete: member", f"member: {dn_of('zoë')}")
    directory.change(f"uid=locked,{STAFF}", "replace: pwdAccountLockedTime", "pwdAccountLockedTime: 000001010000Z")
    directory.add(f"dn: uid=renamed,{STAFF}\nchangetype: modrdn\nnewrdn: uid=other\ndeleteoldrdn: 1\n")
    directory.add(f"dn: uid=removed,{STAFF}\nchangetype: delete\n")
    directory.add(_person("new"))

    after = await read(source_of(directory), since, full=False)
    assert after.complete
    assert {"changed", "other", "new"} <= set(after.people)
    assert after.people["changed"].attributes["sn"] == ("New",)
    assert after.people["other"].external_id == before.people["renamed"].external_id
    assert after.groups["vpn users"].members == (dn_of("ann"),)
    unchanged = {entry.external_id: entry for entry in after.all(Unchanged)}
    identities = {*unchanged, *(entry.external_id for entry in after.all(Person))}
    assert before.people["ann"].external_id in unchanged
    assert before.people["removed"].external_id not in identities
    assert before.people["many1"].external_id in identities
    directory.change(VPN, "add: member", f"member: {dn_of('zoë')}")


async def test_changes_without_a_timestamp(directory: Slapd) -> None:
    """A renamed subtree changes the names of the entries below it, and a lock changes the state of an account.

    Both changes are found although no timestamp changes.
    """
    directory.add(f"dn: ou=moving,{BASE}\nobjectClass: organizationalUnit\nou: moving\n")
    directory.add(_person("mover", parent=f"ou=moving,{BASE}"))
    before = await read(source_of(directory))
    since = await _a_second_after(before.cursor)
    directory.add(f"dn: ou=moving,{BASE}\nchangetype: modrdn\nnewrdn: ou=moved\ndeleteoldrdn: 1\n")
    after = await read(source_of(directory), since, full=False)
    (mover,) = (entry for entry in after.all(Unchanged) if entry.external_id == before.people["mover"].external_id)
    assert (mover.dn, mover.status) == (f"uid=mover,ou=moved,{BASE}", Status.ACTIVE)


async def test_a_cursor_of_another_directory_is_of_no_use(directory: Slapd) -> None:
    """With the cursor of another directory, everything is read again."""
    for cursor in ("", "rubbish", "[]", '["usn CN=DC1", 5]', '["time", "5"]', '["time", -1]', "null", "[[[["):
        reading = await read(replace(source_of(directory), accounts="(uid=ann)"), cursor, full=False)
        assert set(reading.people) == {"ann"}, cursor
        assert reading.all(Unchanged) == []


# --- errors ------------------------------------------------------------------------------------------------------


async def test_a_server_that_dies_in_the_middle(tmp_path: Path, authority: Authority) -> None:
    """If the server stops, the read ends with an error and is never complete. Therefore no user is removed."""
    with slapd(tmp_path, authority) as directory:
        directory.add("".join(f"\n{_person(f'many{number}')}" for number in range(3 * PAGE)))
        received, complete = 0, False
        with trio.fail_after(60), pytest.raises(ReadError, match="closed the connection"):
            async with LdapReader(Egress(ANYWHERE), now_us).read(source_of(directory)) as batches:
                async for batch in batches:
                    received += len(batch.entries)
                    complete |= batch.complete
                    directory.kill()
        assert 0 < received < 3 * PAGE
        assert not complete


async def test_a_limit_on_all_pages_is_reported(tmp_path: Path, authority: Authority) -> None:
    """If the server limits the number of entries in all pages together, the read ends with an error that names the
    setting."""
    with slapd(tmp_path, authority, in_all="hard") as directory:
        directory.add("".join(f"\n{_person(f'many{number}')}" for number in range(2 * SIZE_LIMIT)))
        with pytest.raises(ReadError, match=r"size\.prtotal"):
            await read(source_of(directory))


@pytest.mark.parametrize("page", ["1", "7", "60", "99"])
async def test_a_server_with_small_pages_is_read(tmp_path: Path, authority: Authority, page: str) -> None:
    """If a server's `size.pr` is smaller than the reader's page, the server is read in the smaller pages that it
    accepts."""
    with slapd(tmp_path, authority, page=page) as directory:
        directory.add("".join(f"\n{_person(f'many{number}')}" for number in range(2 * PAGE)))
        assert len((await read(source_of(directory))).people) == 2 * PAGE + len(PEOPLE)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"account": Account(SERVICE, "wrong")}, "refuses the account that reads"),
        ({"account": Account(f"cn=nobody,{BASE}", "wrong")}, "refuses the account that reads"),
        ({"account": None}, "has no entry with the name of the base DN"),
        ({"base": f"ou=nowhere,{BASE}"}, "has no entry with the name of the base DN"),
        ({"accounts": "(uid=nobody)"}, "shows no account"),
        ({"servers": (Server("ldap://127.0.0.1:1", start_tls=False),)}, "no connection"),
        ({"servers": ()}, "the directory has no server"),
    ],
)
async def test_each_mistake_has_its_error(directory: Slapd, change: dict[str, object], why: str) -> None:
    """Each mistake in the configuration has its own error, which contains no secret."""
    with pytest.raises(ReadError, match=why) as error:
        await read(replace(source_of(directory), **change))
    assert "wrong" not in str(error.value)


async def test_the_first_server_that_answers_is_read(directory: Slapd) -> None:
    """A server that does not run is skipped, and the first server that answers is read."""
    servers = (Server("ldap://127.0.0.1:1", start_tls=False), Server(directory.url, start_tls=False))
    assert "ann" in (await read(replace(source_of(directory), servers=servers))).people


# --- TLS --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start_tls", [True, False])
async def test_tls_with_the_right_authority(directory: Slapd, authority: Authority, start_tls: bool) -> None:
    """StartTLS and LDAPS work with a trusted certificate."""
    url = directory.url if start_tls else directory.secure_url
    source = replace(
        source_of(directory),
        servers=(Server(url, start_tls=start_tls),),
        authorities=authority.pem,
        accounts="(uid=ann)",
    )
    assert set((await read(source)).people) == {"ann"}


@pytest.mark.parametrize("start_tls", [True, False])
async def test_tls_with_a_wrong_certificate(directory: Slapd, start_tls: bool) -> None:
    """Nothing is sent if the certificate is of another authority, or if there is no trusted authority."""
    url = directory.url if start_tls else directory.secure_url
    binds = directory.binds(SERVICE)
    for authorities in (Authority("another CA").pem, None):
        source = replace(source_of(directory), servers=(Server(url, start_tls=start_tls),), authorities=authorities)
        with pytest.raises(ReadError, match="its certificate is not trusted"):
            await read(source)
    assert directory.binds(SERVICE) == binds


async def test_egress_is_obeyed(directory: Slapd) -> None:
    """No connection is made to a directory outside the allowed networks."""
    reader = LdapReader(Egress([ip_network("192.0.2.0/24")]), now_us)
    with pytest.raises(ReadError, match="address not allowed"):
        async with reader.read(source_of(directory)):
            pass


# --- helpers ----------------------------------------------------------------------------------------------------


def _person(name: str, *more: str, parent: str = STAFF) -> str:
    lines = ("objectClass: inetOrgPerson", f"uid: {name}", f"cn: {name}", f"sn: {name}", *more)
    return "\n".join((f"dn: uid={name},{parent}", *lines, ""))


async def _a_second_after(cursor: str) -> str:
    """Read the directory and return the cursor. It is so late that later reads do not check these entries again."""
    origin, place = json.loads(cursor)
    with trio.fail_after(30):
        while now_us() <= (place + 1) * SECOND:
            await trio.sleep(0.05)
    return json.dumps([origin, place + 1 + OVERLAP_S])


def _searched(directory: Slapd, pattern: str) -> list[str]:
    """Return the names that ldapsearch finds. It reads in pages too."""
    done = subprocess.run(
        [find("ldapsearch"), "-x", "-LLL", "-E", "pr=50/noprompt", "-H", directory.url, "-D", ROOT, "-w", ROOT_PASSWORD,
         "-b", BASE, pattern, "1.1"],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if line.startswith("dn:")]
