"""Readings of simulated LDAP servers: members that are returned in ranges, and servers that misbehave."""

from contextlib import suppress

import pytest
import trio
import trio.testing

from sallyport.areas.directory.entry.entry import Group, Problem
from sallyport.areas.directory.entry.entry import Person as EntryPerson
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.answers import READING
from sallyport.areas.directory.reading.reader import MANY_VALUES, LdapReader, LdapSource
from sallyport.areas.directory.reading.search import ChangeTracking, kind_of
from sallyport.areas.directory.reading.server import Server
from sallyport.base.clock import now_us
from sallyport.outgoing.egress import Egress
from sallyport.settings.values import ANYWHERE
from tests.areas import trust
from tests.areas.directory.reading.fake_directory import FakeDirectory, Manner, Person, directory
from tests.areas.directory.reading.readings import read

GROUP_DN = "CN=big,DC=example"
# The fake server returns an entry if its name occurs in the request, in the filter or in the list of attributes.
ANYBODY = Person("inetUser", attributes={"objectClass": ["person"]})


def group(asked: str, given: str, *members: str) -> Person:
    """Return one part of the group's members. It is the answer to a request that contains `asked`."""
    return Person(asked, dn=GROUP_DN, attributes={"objectClass": ["group"], "cn": ["big"], given: [*members]})


def source_of(server: FakeDirectory) -> LdapSource:
    """Return the server as the source of a reading that binds anonymously."""
    return LdapSource((Server(server.url, start_tls=False),), "DC=example", None)


async def test_members_in_ranges_are_all_read() -> None:
    """A server that limits the number of values returns the members in ranges. All of them are read, in order."""
    parts = (
        group("groupOfMembers", "member;range=0-1", "cn=a", "cn=b"),
        group("member;range=2-*", "member;range=2-3", "cn=c", "cn=d"),
        group("member;range=4-*", "member;range=4-*", "cn=e"),
    )
    async with directory(ANYBODY, *parts) as server:
        (found,) = (await read(source_of(server))).all(Group)
    assert found.members == ("cn=a", "cn=b", "cn=c", "cn=d", "cn=e")


@pytest.mark.parametrize("attribute", ["memberOf", "uniqueMember"])
async def test_other_memberships_in_ranges_are_all_read(attribute: str) -> None:
    """The groups of a person, and the members of a group in another attribute, are read in ranges too."""
    kind = "person" if attribute == "memberOf" else "groupOfUniqueNames"
    first = Person("groupOfMembers", dn=GROUP_DN, attributes={
        "objectClass": [kind], "cn": ["big"], f"{attribute};range=0-1": ["cn=a", "cn=b"], "mail;lang-de": ["x"],
    })  # fmt: skip
    second = f"{attribute.lower()};range=2-*"
    async with directory(ANYBODY, first, Person(second, dn=GROUP_DN, attributes={second: ["cn=c"]})) as server:
        reading = await read(source_of(server))
    found = reading.all(Group)[0].members if kind != "person" else reading.people["groupOfMembers"].member_of
    assert found == ("cn=a", "cn=b", "cn=c")


async def test_removed_entries_are_not_read() -> None:
    """Deleted entries, and entries that lost a conflict of replication, are not returned."""
    gone = {
        "DN": Person("groupOfMembers", dn="nsuniqueid=1-2+uid=ann,DC=example", attributes={"objectClass": ["person"]}),
        "class": Person("groupOfMembers", attributes={"objectClass": ["person", "nsTombstone"]}),
        "flag": Person("groupOfMembers", attributes={"objectClass": ["person"], "isDeleted": ["TRUE"]}),
        "mark": Person("groupOfMembers", attributes={"objectClass": ["group"], "nsds5ReplConflict": ["x"]}),
    }
    async with directory(ANYBODY, *gone.values()) as server:
        reading = await read(source_of(server))
    assert [entry.dn for entry in reading.entries if isinstance(entry, EntryPerson | Group)] == [ANYBODY.dn]


@pytest.mark.parametrize("compares", [True, False], ids=["compares", "lldap"])
async def test_changes_of_a_directory_that_cannot_compare_times(compares: bool) -> None:
    """A directory that refuses to compare times is read completely, so that each reading of changes succeeds."""
    stamps = {"objectClass": ["person"], "entryUUID": ["1"], "modifyTimestamp": ["20260101000000Z"]}
    async with directory(Person("inetUser", attributes=stamps)) as server:
        server.compares = compares
        first = await read(source_of(server))
        ann = Person(
            "groupOfMembers", attributes={**stamps, "entryUUID": ["2"], "modifyTimestamp": ["20260201000000Z"]}
        )
        server.people.append(ann)
        changes = await read(source_of(server), first.cursor, full=False)
    assert changes.complete and "groupOfMembers" in changes.people
    assert server.searches == (6 if compares else 7)


async def test_entries_of_many_values_are_read_whole() -> None:
    """A group that has many members and a person that is in many groups are read completely."""
    names = [f"cn={number}" for number in range(20 * MANY_VALUES)]
    person = Person("groupOfMembers", attributes={"objectClass": ["person"], "uid": ["ann"], "memberOf": names})
    async with directory(ANYBODY, group("groupOfMembers", "member", *names), person) as server:
        reading = await read(source_of(server))
    assert [found.members for found in reading.all(Group)] == [tuple(names)]
    assert reading.people["groupOfMembers"].member_of == tuple(names)


async def test_a_fragmented_answer_is_read() -> None:
    """An answer that arrives one octet at a time is read."""
    async with directory(ANYBODY, group("groupOfMembers", "member", "cn=a")) as server:
        server.manner = Manner.DRIBBLES
        (found,) = (await read(source_of(server))).all(Group)
    assert found.members == ("cn=a",)


async def test_a_missing_range_of_members_ends_the_reading() -> None:
    """If a range of members is missing, the reading ends, so that no group is read with too few members."""
    async with directory(ANYBODY, group("groupOfMembers", "member;range=0-1", "cn=a", "cn=b")) as server:
        with pytest.raises(ReadError, match="could not be read completely"):
            await read(source_of(server))


async def test_an_unusable_entry_is_reported() -> None:
    """An unusable entry is returned as a Problem with its DN, and the reading is complete."""
    nameless = Person("groupOfMembers", attributes={"objectClass": ["organizationalUnit"]})
    async with directory(ANYBODY, nameless) as server:
        reading = await read(source_of(server))
    assert reading.complete
    assert [problem.dn for problem in reading.all(Problem)] == [nameless.dn]


@pytest.mark.parametrize("manner", [Manner.HANGS_UP, Manner.NONSENSE])
async def test_a_misbehaving_server_ends_the_reading(manner: Manner) -> None:
    """If the server closes the connection or does not answer in LDAP, the reading ends with ReadError."""
    async with directory(ANYBODY) as server:
        server.manner = manner
        with pytest.raises(ReadError):
            await read(source_of(server))


async def test_a_silent_server_times_out(mock_clock: trio.testing.MockClock) -> None:
    mock_clock.rate = 50.0
    async with directory(ANYBODY) as server:
        server.manner = Manner.SILENT
        with pytest.raises(ReadError, match="no answer in time"):
            await read(source_of(server))


async def test_leaving_a_reading_closes_its_connection(nursery: trio.Nursery) -> None:
    """An exception during a reading closes the connection and leaves no task behind."""
    async with directory(ANYBODY) as server:
        with trio.fail_after(30), pytest.raises(ZeroDivisionError):
            async with LdapReader(Egress(ANYWHERE), now_us, trust()).read(source_of(server)) as batches:
                async for _ in batches:
                    raise ZeroDivisionError
    assert not nursery.child_tasks


async def test_a_reading_may_be_cancelled() -> None:
    """A reading can be cancelled between two batches and while it waits for a silent server."""
    async with directory(ANYBODY) as server:
        with trio.fail_after(30):
            with trio.CancelScope() as scope:
                async with LdapReader(Egress(ANYWHERE), now_us, trust()).read(source_of(server)) as batches:
                    async for _ in batches:
                        scope.cancel()
            assert scope.cancelled_caught
            server.manner = Manner.SILENT
            with trio.move_on_after(0.2) as scope:
                await read(source_of(server))
            assert scope.cancelled_caught
            await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize(
    ("stamp", "place"),
    [
        (b"20260101000000Z", 1_767_225_600),
        (b"20260101000000.123456Z", 1_767_225_600),
        (b"20261301000000Z", 0),
        (b"", 0),
        (b"\xff", 0),
    ],
)
def test_times_as_places(stamp: bytes, place: int) -> None:
    """A generalized time in UTC is converted to seconds and back. Any other text is converted to 0."""
    kind = kind_of({})
    assert kind.place_of(stamp) == place
    if place:
        assert kind.written(place) == "20260101000000Z"
        assert kind.first(place) < place


def test_numbers_as_places() -> None:
    """In Active Directory the place in the changes is uSNChanged, which each domain controller counts for itself."""
    kind = kind_of({"supportedcapabilities": (b"1.2.840.113556.1.4.800",), "dsservicename": (b"CN=NTDS,CN=DC1",)})
    assert kind == ChangeTracking("usn CN=NTDS,CN=DC1", "uSNChanged", counts=True)
    assert (kind.place_of(b"4711"), kind.first(4711), kind.written(4712)) == (4711, 4712, "4712")
    assert kind.place_of(b"rubbish") == 0


async def test_an_endless_answer_is_cut_off() -> None:
    """If a server never stops sending, the reader closes the connection before memory is full."""
    sent = 0

    async def flood(stream: trio.SocketStream) -> None:
        nonlocal sent
        await stream.receive_some(4096)
        await stream.send_all(bytes.fromhex("300c02010161070a010004000400"))  # a successful bind response
        await stream.receive_some(4096)
        with suppress(trio.BrokenResourceError):
            await stream.send_all(bytes.fromhex("3084400000000201026484"))  # the header of an entry of 1 GiB
            while True:
                await stream.send_all(bytes(1 << 20))
                sent += 1 << 20

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, flood, listeners)
        server = Server(f"ldap://127.0.0.1:{listeners[0].socket.getsockname()[1]}", start_tls=False)
        with trio.fail_after(60), pytest.raises(ReadError, match="more than 16,777,216 octets"):
            await read(LdapSource((server,), "DC=example", None))
        nursery.cancel_scope.cancel()
    assert sent < READING.octets
