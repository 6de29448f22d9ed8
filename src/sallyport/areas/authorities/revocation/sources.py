"""The revocation lists of all authorities, in memory on every node.

The store has the lists, so they outlast a restart. The node with the lease fetches them (`fetching`); the other nodes
read what it has stored. A login that needs a list from a new address adds a row, which makes the leader fetch it.

A list that has expired stays in memory until a newer one is there: a certificate on it is still known as revoked, but
no certificate is known as good by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog
import trio
from cryptography import x509

from sallyport.areas.authorities.revocation import repo
from sallyport.areas.authorities.revocation.entries import WIDTH, Entries, packed
from sallyport.areas.authorities.revocation.lists import RevocationList, key_hash
from sallyport.areas.authorities.revocation.repo import ListRow
from sallyport.areas.authorities.revocation.state import RevocationRules
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import SallyportError
from sallyport.base.fair import FairLimiter
from sallyport.nodes.notices import Notices
from sallyport.store.model import Store

MAX_LISTS: Final = 16
"""Maximum number of lists of an authority."""
OTHERS_S: Final = 10.0
"""How often a node reads what the leader has fetched, if no notice arrives."""
PAUSE_US: Final = 30 * SECOND
"""Minimum time between two fetches of a list on request."""
_TOUCHED_US: Final = 86_400 * SECOND
_SOON_US: Final = 60 * SECOND
NOTICE: Final = "revocation_lists"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Source:
    """An address of an authority, and the list that was fetched from it. list: None before there is one, and while its
    entries are read from the store. is_loading: whether they are being read."""

    row: ListRow
    list: RevocationList | None = None
    is_loading: bool = False


class RevocationLists:
    """The lists of all authorities. changed: an event that is set, and replaced by a new one, at the next change."""

    def __init__(self, store: Store, notices: Notices, clock: Clock) -> None:
        self._store, self._notices = store, notices
        self._clock = clock
        self.changed = trio.Event()
        self._sources: dict[int, Source] = {}
        self._of_authority: dict[int, dict[str, Source]] = {}
        self._versions: dict[int, int] = {}
        self._wake = trio.Event()
        self._loading, self._adding = trio.Lock(), trio.Lock()
        self._parsing = trio.CapacityLimiter(1)
        self._turns = FairLimiter[int](1)
        notices.receive(NOTICE, lambda _values, _age: self._look())

    # --- look-ups -----------------------------------------------------------------------------------------------

    def of(self, authority_id: int) -> Mapping[str, Source]:
        """Return the lists of an authority, by address."""
        return self._of_authority.get(authority_id, {})

    def version(self, authority_id: int) -> int:
        """Return a number that grows with each new list of an authority."""
        return self._versions.get(authority_id, 0)

    def all(self) -> Sequence[Source]:
        """Return the lists of all authorities."""
        return list(self._sources.values())

    async def want(self, rules: RevocationRules, address: str, issuer: bytes = b"") -> str:
        """Make the leader fetch a list, and keep it up to date. Return why it does not, or an empty text. Raises
        StoreError.

        issuer: the certificate, in DER, of the issuer whose list it is, if the address comes from a verified chain.
        """
        source, now = self.of(rules.authority_id).get(address), self._clock()
        if source is not None and (source.list or source.is_loading or source.row.issuer or not issuer):
            if source.row.wanted_at < now - _TOUCHED_US:
                self.put(replace(source, row=replace(source.row, wanted_at=now)))
                await self._store.write(partial(repo.touch, list_id=source.row.id, now=now))
            if issuer and source.row.error and _is_other(source, issuer):
                change = partial(repo.change_issuer, list_id=source.row.id, issuer=issuer, soon=now + _SOON_US)
                await self._store.write(change)  # once for each failed fetch, because the error is cleared
                await self._load_rows()
                self.announce()
            return ""
        async with self._adding:  # so that concurrent logins do not exceed the limit
            own = self.of(rules.authority_id)
            if address not in own and len(own) >= MAX_LISTS:
                return f"the authority has {MAX_LISTS} lists already"
            add = partial(repo.add, authority_id=rules.authority_id, tenant_id=rules.tenant_id, address=address)
            await self._store.write(partial(add, issuer=issuer, now=now))
            await self._load_rows()
        self.announce()
        return ""

    async def wait(self, authority_id: int, address: str) -> None:
        """Wait until a list was fetched for the first time, or its fetch has failed, and its entries are read."""
        while (source := self.of(authority_id).get(address)) is not None and (
            source.is_loading or not source.row.checked_at
        ):
            await self.changed.wait()

    async def look_again(self, authority_id: int) -> None:
        """Make the leader fetch the lists of an authority, at once or PAUSE_US after the last fetch. Raises
        StoreError."""
        await self._store.write(partial(repo.look_again, authority_id=authority_id, pause=PAUSE_US))
        await self.load()
        self.announce()

    # --- memory -------------------------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Read what the leader has fetched, until cancelled."""
        while True:
            try:
                await self.load()
            except SallyportError as error:
                log.warning("revocation_lists_not_read", error=str(error))
            with trio.move_on_after(OTHERS_S if self._notices.is_shared else math.inf):
                await self._wake.wait()
            self._wake = trio.Event()

    async def load(self) -> None:
        """Read the rows that have changed, and the entries of new lists. Raises StoreError.

        A tenant with large lists does not delay those of others: one list is read at a time, and the tenants take
        turns. Meanwhile, a login that needs a list waits for it as for a fetch.
        """
        changed = await self._load_rows()
        async with self._loading, trio.open_nursery() as nursery:
            for row in changed:
                nursery.start_soon(self._load_list, row)

    async def _load_rows(self) -> Sequence[ListRow]:
        """Read the rows that have changed, and put those into memory that need no entries. Return those that do."""
        known, waiting = set(self._sources), list[ListRow]()
        found = await self._store.read(repo.stamps)
        for stamp in found:
            before = self._sources.get(stamp.id)
            is_same = before is not None and repo.ListStamp.of(before.row) == stamp
            if before is not None and (before.row.version > stamp.version or (is_same and not before.is_loading)):
                continue
            row = before.row if before is not None and is_same else None
            row = row or await self._store.read(partial(repo.row_of, list_id=stamp.id))
            if row is None:
                continue
            before = self._sources.get(row.id)
            if before is not None and before.row.version == row.version and not before.is_loading:
                self.put(Source(row, before.list))
                continue
            waiting.append(row)
            if before is None:
                self.put(Source(row, is_loading=bool(row.list)))
        for gone in known - {each.id for each in found}:
            self._drop(gone)
        return waiting

    async def _load_list(self, row: ListRow) -> None:
        async with self._turns.slot(row.tenant_id):
            before = self._sources.get(row.id)
            if before is None or before.row.version < row.version or before.is_loading:
                await self._adopt(row, before)

    def forget(self) -> None:
        """Drop everything in memory, because the store was replaced."""
        for list_id in list(self._sources):
            self._drop(list_id)
        self._look()

    async def _adopt(self, row: ListRow, before: Source | None) -> None:
        """Put a row with a new list into memory, with its list."""
        parts, octets, expected = list[bytes](), 0, repo.entry_count(row.list) * WIDTH
        while octets < expected:
            part = await self._store.read(partial(repo.part_of, list_id=row.id, version=row.version, part=len(parts)))
            if part is None:
                break
            parts.append(part)
            octets += len(part)
        if octets == expected:
            self.put(Source(row, await trio.to_thread.run_sync(_list_of, row, parts, limiter=self._parsing)))
        elif before is None or before.is_loading:
            self.put(Source(row))
        # otherwise the leader has stored a newer list meanwhile, and this node reads that one next

    def put(self, source: Source) -> None:
        """Replace a list in memory by what the store has now."""
        row, before = source.row, self._sources.get(source.row.id)
        self._sources[row.id] = source
        own = self._of_authority.setdefault(row.authority_id, {})
        own[row.address] = source
        if before is None or before.list is not source.list:
            self._versions[row.authority_id] = self._versions.get(row.authority_id, 0) + 1
        self.tell()

    def tell(self) -> None:
        """Wake the tasks that wait for a change of lists, or of the rules of authorities."""
        self.changed.set()
        self.changed = trio.Event()

    def _drop(self, list_id: int) -> None:
        if list_id not in self._sources:  # a concurrent call has dropped it
            return
        row = self._sources.pop(list_id).row
        own = self._of_authority[row.authority_id]
        del own[row.address]
        self._versions[row.authority_id] = self._versions.get(row.authority_id, 0) + 1
        if not own:
            del self._of_authority[row.authority_id]
        self.tell()

    def _look(self) -> None:
        self._wake.set()

    def announce(self) -> None:
        """Tell all nodes that rows have changed."""
        self._notices.send(NOTICE)
        self._wake.set()


def _is_other(source: Source, issuer: bytes) -> bool:
    """Return whether an issuer, in DER, is not the one by which a list is verified: the authority has a new key."""
    if source.row.issuer == issuer:
        return False
    return source.list is None or source.list.issuer_key != key_hash(x509.load_der_x509_certificate(issuer))


def _list_of(row: ListRow, parts: Sequence[bytes]) -> RevocationList | None:
    """Return the list of a row. Return None if it has none, or none that this program can read."""
    try:
        entries = Entries.of((each for part in parts for each in packed(part)), repo.entry_count(row.list))
        return repo.read_stored_list(row.list, entries) if row.list else None
    except (ValueError, KeyError, TypeError):
        return None
