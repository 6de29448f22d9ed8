"""One reading of an LDAP directory, from the bind to the last batch. There are two kinds of readings:

    full      reads the names and keys of all groups; then every account, group and unit
    changes   reads the identity of every entry, to find removed, renamed and expired entries; then the changed entries

Directories have no common way to report deletions, and most of them show deletions only to administrators. But every
directory permits a reader to read the identity of every entry. This costs a tenth of a full reading.

If the reading includes a group's entry, the group's members are taken from this entry. The memberOf attributes of
accounts are not enough: in most directories, memberOf changes without a change of the account, so an ended membership
would be kept. Two kinds of groups are taken from the account's entry: its primary group, and groups outside of the
base.

The reading ends with ReadError if the directory closes the connection, refuses a request, or returns no account at all.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import trio

from sallyport.areas.directory.entry.descriptions import attribute_key, incomplete, interpreted
from sallyport.areas.directory.entry.dn import normalized
from sallyport.areas.directory.entry.entry import (
    MEMBERSHIPS,
    Batch,
    Entry,
    Gone,
    Group,
    Person,
    Problem,
    Raw,
    Unchanged,
    Unit,
    understood,
    with_primary_group,
)
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.answers import READING, RawEntry, TooLarge
from sallyport.areas.directory.reading.connection import (
    INAPPROPRIATE_AUTHENTICATION,
    INAPPROPRIATE_MATCHING,
    INVALID_CREDENTIALS,
    NO_SUCH_OBJECT,
    SIZE_LIMIT,
    UNWILLING_TO_PERFORM,
    Account,
    Connection,
    Refusal,
    bind,
)
from sallyport.areas.directory.reading.search import (
    ACCOUNTS,
    CONTENT,
    GROUPS,
    IDENTITY,
    ROOT,
    ChangeTracking,
    all_of,
    everything,
    kind_of,
)
from sallyport.areas.directory.reading.server import Server, Unreachable
from sallyport.base.clock import Clock
from sallyport.base.errors import Invalid
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.tls import LazyContext, client_context

PAGE: Final = 100
"""Number of entries in one page."""
CONNECT_S: Final = 10.0
PAGE_S: Final = 60.0
MAX_ENTRIES: Final = 2_000_000
MANY_VALUES: Final = 200
MANY_OCTETS: Final = 64 << 10
"""An entry is interpreted in a thread if it has more values than MANY_VALUES, or more octets than this in its
values."""
NO_ACCOUNT: Final = (
    "the directory shows no account: check the filter, and the rights of the account that reads the directory"
)
_UNCOMPARED: Final = (UNWILLING_TO_PERFORM, INAPPROPRIATE_MATCHING)
"""Result codes of a directory that cannot compare values by >= (LLDAP answers the first one)."""
_SLICE: Final = 20
_MAX_KNOWN: Final = 100_000
_RANGE: Final = ";range="
_MAX_RANGES: Final = 10_000

Batches = AsyncGenerator[Batch, None]
Understood = Person | Group | Unit | Problem | None


@dataclass(frozen=True, slots=True)
class LdapSource:
    """A directory to read. servers: the servers to try, in order. account: the account for the bind, or None for an
    anonymous bind. accounts: the filter that selects the accounts (RFC 4515). This filter does not apply to groups and
    units.

    attributes: the attributes to read in addition to the usual attributes. If an entry has too many attributes, these
    attributes are kept before others. authorities: trusted certificates in PEM. If they are set, they replace the
    system's trust store.
    """

    servers: Sequence[Server]
    base: str
    account: Account | None
    accounts: str = ACCOUNTS
    attributes: Sequence[str] = ()
    authorities: str | None = None


class LdapReader:
    """A reader of LDAP directories. It can read several directories at the same time. trust: the TLS context; None uses
    the system's trust store."""

    def __init__(self, egress: Egress, clock: Clock, trust: ssl.SSLContext | None = None) -> None:
        self._egress = egress
        self._clock = clock
        self._trust = LazyContext(lambda: trust or client_context())

    @asynccontextmanager
    async def read(self, source: LdapSource, cursor: str = "", *, full: bool = True) -> AsyncIterator[Batches]:
        """Read a directory, and yield the entries in batches. Raises ReadError, also during the iteration.

        cursor: the cursor that the last reading returned. Only the changes since that reading are read. But all entries
        are read if `full` is set, or if the cursor belongs to another server.
        """
        async with self._opened(source) as reading, aclosing(reading.batches(cursor, full=full)) as batches:
            yield batches

    async def check(self, source: LdapSource) -> int:
        """Test a directory. Return how many accounts the beginning of the first page contains. Raises ReadError."""
        async with self._opened(source) as reading:
            return await reading.first_accounts()

    @asynccontextmanager
    async def _opened(self, source: LdapSource) -> AsyncIterator[_Reading]:
        """Connect to a directory, bind, and yield an object that reads the directory. Raises ReadError."""
        with _as_read_error():
            connection = await self._connected(source)
        try:
            yield _Reading(source, connection, self._clock())
        finally:
            connection.close()

    async def _connected(self, source: LdapSource) -> Connection:
        """Return a bound connection to the first server that answers. Raises Refusal, Unreachable, TooLarge."""
        if source.authorities is None:
            trust = await self._trust.get()
        else:
            trust = await trio.to_thread.run_sync(client_context, source.authorities)
        failures: list[str] = []
        for server in source.servers:
            try:
                with trio.fail_after(CONNECT_S):
                    stream = await server.connect(trust, self._egress, failures.append)
                    return await bind(stream, source.account, READING, self._egress.turns)
            except Unreachable as error:
                failures.append(str(error))
            except trio.TooSlowError:
                failures.append(f"{server}: no answer in time")
        raise Unreachable(failures[-1] if failures else "the directory has no server")


@contextmanager
def _as_read_error() -> Iterator[None]:
    try:
        yield
    except Refusal as error:
        raise ReadError(_why(error)) from None
    except Unreachable as error:
        raise ReadError(str(error)) from None
    except TooLarge as error:
        raise ReadError(f"the directory's answer was not accepted: {error}") from None


def _why(error: Refusal) -> str:
    if error.code in (INVALID_CREDENTIALS, INAPPROPRIATE_AUTHENTICATION):
        return f"the directory refuses the account that reads it: {error}"
    if error.code == SIZE_LIMIT:
        return "the directory refuses to return more entries: raise the account's limit (size.prtotal)"
    if error.code == NO_SUCH_OBJECT:
        return "the directory has no entry with the name of the base DN, or this account may not read the entry"
    return f"the directory refuses the request: {error}"


def _same(person: Person) -> Person:
    return person


class _Reading:
    """Reads one directory once, over one connection."""

    def __init__(self, source: LdapSource, connection: Connection, now: int) -> None:
        self._source = source
        self._connection = connection
        self._now = now
        self._mapped = frozenset(map(attribute_key, source.attributes))
        self._groups: dict[str, str] = {}  # distinguished names by `Group.key`
        self._read_here: set[str] = set()  # normalized names of the groups that are read
        self._is_read: dict[str, bool] = {}  # by the name as it is written, because normalizing is slow
        self._place = 0
        self._has_accounts = False
        self._all_stamped = True

    async def batches(self, cursor: str, *, full: bool) -> Batches:
        """Yield all batches. Raises ReadError."""
        with _as_read_error():
            kind, at_first = await self._kind_and_place()
            since = None if full else _place_in(cursor, kind)
            wanted, changed = everything(self._source.accounts), ""
            if since is None:
                await self._note_groups()
            else:
                first = kind.first(since)
                async with aclosing(self._unchanged(wanted, kind, first)) as batches:
                    async for batch in batches:
                        yield batch
                if self._all_stamped:
                    changed = all_of(wanted, f"({kind.stamp}>={kind.written(first)})")
            async with aclosing(self._contents(wanted, kind, changed)) as batches:
                async for batch in batches:
                    yield batch
        if not self._has_accounts:
            raise ReadError(NO_ACCOUNT)
        await trio.lowlevel.checkpoint()  # a reading that was cancelled is not complete
        yield Batch((), complete=True, cursor=json.dumps([kind.origin, at_first or self._place]))

    async def first_accounts(self) -> int:
        """Return how many accounts the beginning of the first page contains. Raises ReadError if the directory could
        not be read, or if no account matches the filter."""
        with _as_read_error():
            async with aclosing(self._slices(self._source.accounts, IDENTITY)) as slices:
                async for part in slices:
                    return len(part)
        raise ReadError(NO_ACCOUNT)

    async def _kind_and_place(self) -> tuple[ChangeTracking, int]:
        """Return the kind of the directory and the current value of its change counter. The value is 0 if the
        directory does not count changes."""
        root = await self._connection.values("", ROOT, timeout_s=PAGE_S)
        values = root.values if root is not None else {}
        kind = kind_of(values)
        return kind, kind.place_of(next(iter(values.get("highestcommittedusn", ())), b""))

    async def _note_groups(self) -> None:
        async with aclosing(self._slices(GROUPS, IDENTITY)) as slices:
            async for part in slices:
                for found in part:
                    await self._interpreted_fairly(_plain(found))

    async def _unchanged(self, pattern: str, kind: ChangeTracking, first: int) -> Batches:
        """Yield the unchanged entries. Changed entries are left out, because `_contents` reads them later. Also store
        the names of the groups in this object."""
        async with aclosing(self._slices(pattern, IDENTITY)) as slices:
            async for part in slices:
                entries = [await self._if_unchanged(_plain(found), kind, first) for found in part]
                yield Batch([entry for entry in entries if entry is not None])

    async def _if_unchanged(self, raw: Raw, kind: ChangeTracking, first: int) -> Unchanged | Problem | None:
        entry, place = await self._interpreted_fairly(raw), self._noted_place(raw, kind)
        self._all_stamped &= place > 0
        if entry is None or place >= first:
            return None
        if isinstance(entry, Problem):
            return entry
        return Unchanged(entry.external_id, entry.dn, entry.status if isinstance(entry, Person) else None)

    async def _contents(self, wanted: str, kind: ChangeTracking, changed: str) -> Batches:
        """Yield the entries that match the filter `changed`. If it is empty, or if the directory cannot compare times,
        yield the entries that match the filter `wanted`."""
        if changed:
            try:
                async with aclosing(self._entries(changed, kind)) as batches:
                    async for batch in batches:
                        yield batch
            except Refusal as error:
                if error.code not in _UNCOMPARED:
                    raise
            else:
                return
        async with aclosing(self._entries(wanted, kind)) as batches:
            async for batch in batches:
                yield batch

    async def _entries(self, pattern: str, kind: ChangeTracking) -> Batches:
        """Yield the entries that match a filter."""
        attributes = [*dict.fromkeys((*IDENTITY, *CONTENT, *self._source.attributes))]
        async with aclosing(self._slices(pattern, attributes)) as slices:
            async for part in slices:
                entries: list[Entry] = []
                for found in part:
                    raw = await self._with_all_members(found)
                    self._noted_place(raw, kind)
                    entry = await self._interpreted_fairly(raw, then=self._with_own_groups)
                    if entry is not None:
                        entries.append(entry)
                yield Batch(entries)

    async def _slices(self, pattern: str, attributes: Sequence[str]) -> AsyncGenerator[Sequence[RawEntry], None]:
        """Yield the raw entries that match a filter. Each part has only a few entries, so that logins need not wait
        long."""
        pages = self._connection.pages(self._source.base, pattern, attributes, PAGE, timeout_s=PAGE_S)
        entries = 0
        async with aclosing(pages):
            async for page in pages:
                entries += len(page)
                if entries > MAX_ENTRIES:
                    raise ReadError(f"the directory has more than {MAX_ENTRIES} entries below the base")
                for at in range(0, len(page), _SLICE):
                    await trio.lowlevel.checkpoint()
                    yield page[at : at + _SLICE]

    async def _interpreted_fairly(self, raw: Raw, then: Callable[[Person], Person] = _same) -> Understood:
        """Interpret an entry. If the entry is large, do so in a thread. then: a function that is applied to the result
        if the result is a person."""
        several = raw.attributes.values()
        if sum(map(len, several)) > MANY_VALUES or sum(map(len, chain.from_iterable(several))) > MANY_OCTETS:
            return await trio.to_thread.run_sync(self._interpreted, raw, then)
        return self._interpreted(raw, then)

    def _interpreted(self, raw: Raw, then: Callable[[Person], Person]) -> Understood:
        entry = understood(raw, now=self._now, mapped=self._mapped)
        if isinstance(entry, Gone):  # an entry that is not returned counts as removed
            return None
        self._has_accounts |= isinstance(entry, Person)
        if isinstance(entry, Group):
            self._read_here.add(normalized(entry.dn))
            if entry.key:
                self._groups[entry.key] = entry.dn
        return then(entry) if isinstance(entry, Person) else entry

    def _with_own_groups(self, person: Person) -> Person:
        """Return a person with a new `member_of`. A group whose own entry was read is left out, because that entry
        lists the group's members. The primary group is added."""
        own = tuple([dn for dn in person.member_of if not self._has_been_read(dn)])
        if len(own) < len(person.member_of):
            person = replace(person, member_of=own)
        return with_primary_group(person, self._groups)

    def _has_been_read(self, group: str) -> bool:
        known = self._is_read.get(group)
        if known is None:
            try:
                known = normalized(group) in self._read_here
            except Invalid:
                known = False
            if len(self._is_read) == _MAX_KNOWN:
                self._is_read.clear()
            self._is_read[group] = known
        return known

    def _noted_place(self, raw: Raw, kind: ChangeTracking) -> int:
        """Return when the entry was last changed, as a time or a counter value (`ChangeTracking`). Also store the
        highest value of all entries, for the next cursor."""
        place = kind.place_of(next(iter(raw.attributes.get(kind.stamp.lower(), ())), b""))
        self._place = max(self._place, place)
        return place

    async def _with_all_members(self, found: RawEntry) -> Raw:
        """Return an entry with all its memberships. Active Directory returns many values in ranges (MS-ADTS section
        3.1.1.3.1.3.3)."""
        plain = _plain(found)
        for attribute in sorted(MEMBERSHIPS & incomplete(plain.attributes)):
            values = await self._all_values(found, attribute)
            plain = Raw(plain.dn, {**_without_parts(plain, attribute), attribute: values})
        return plain

    async def _all_values(self, found: RawEntry, attribute: str) -> tuple[bytes, ...]:
        prefix = f"{attribute}{_RANGE}"
        part = next((name for name in found.values if name.startswith(prefix)), "")
        whole: list[bytes] = []
        for _ in range(_MAX_RANGES):
            values = found.values.get(part, ())
            whole.extend(values)
            if part.endswith("-*") or not values:
                break
            more = await self._connection.values(found.dn, [f"{prefix}{len(whole)}-*"], timeout_s=PAGE_S)
            part = next((name for name in more.values if name.startswith(prefix)), "") if more else ""
            if more is None or not part:
                raise ReadError(f"the values of {attribute} could not be read completely")
            found = more
        return tuple(whole)


def _plain(found: RawEntry) -> Raw:
    return Raw(found.dn, interpreted((attribute_key(name), values) for name, values in found.values.items()))


def _without_parts(raw: Raw, attribute: str) -> dict[str, tuple[bytes, ...]]:
    return {name: values for name, values in raw.attributes.items() if not name.startswith(f"{attribute}{_RANGE}")}


def _place_in(cursor: str, kind: ChangeTracking) -> int | None:
    """Return the position that a cursor contains. It is a position in the changes of the directory. Return None if the
    cursor is not valid or belongs to another directory."""
    try:
        origin, place = json.loads(cursor)
    except (ValueError, TypeError):
        return None
    return place if origin == kind.origin and isinstance(place, int) and place > 0 else None
