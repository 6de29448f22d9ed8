"""The look-up of access tokens and API keys by hash, with a bounded cache that is never stale.

A hash that is not in the cache is looked up in the store. Only one such look-up runs at a time, and the source
addresses take turns. Therefore a flood of wrong keys occupies at most one of the store's readers. The other readers
remain free for logins.
"""

import ipaddress
from collections.abc import Callable
from functools import partial
from heapq import nlargest
from typing import Final, Generic, Protocol, TypeVar

from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import Clock
from sallyport.base.fair import FairLimiter
from sallyport.base.secret import KEY_PREFIX
from sallyport.nodes.notices import Notices
from sallyport.store.model import Store, Tx
from sallyport.web.scope import Authenticator, Caller

CACHED = 4096
LONGEST = 128
"""Maximum number of characters of a token."""
BURST: Final = 30
"""Number of wrong keys that a source may send without a pause."""
REFILL_US: Final = 10_000_000
"""Time in microseconds after which a source may send one more wrong key."""
MAX_SOURCES: Final = 4096


class Owned(Protocol):
    """A record that belongs to a tenant."""

    @property
    def tenant_id(self) -> int:
        """The internal id of the tenant."""


RecordT = TypeVar("RecordT", bound=Owned)


class RecordCache(Generic[RecordT]):
    """A cache of stored records by hash.

    find: a function that reads the record of a hash from the store. size: the maximum number of records; each tenant
    has a share.

    Unknown hashes are not cached. Otherwise guessed keys would fill the cache.
    """

    def __init__(self, store: Store, find: Callable[[Tx, str], RecordT | None], *, size: int = CACHED) -> None:
        self._store = store
        self._find = find
        self._records = BoundedMap[str, RecordT](size)
        self._turns = FairLimiter[str](1)
        self._generation = 0

    async def find(self, hashed: str, source: str) -> RecordT | None:
        """Return the record with a hash, or None if there is none. Expired and revoked records are returned too. Raises
        StoreError.

        source: the address of the client.
        """
        record = self._records.get(hashed)
        if record is None:
            async with self._turns.slot(source):
                record = self._records.get(hashed) or await self._look_up(hashed)
        return record

    def update(self, hashed: str, old: RecordT, new: RecordT) -> None:
        """Replace a cached record with a newer one."""
        if self._records.get(hashed) is old:
            self._records.put(hashed, new, new.tenant_id)

    def forget(self) -> None:
        """Empty the cache. Call this after a revocation, a restore, or a change by another process."""
        self._generation += 1
        self._records.clear()

    async def _look_up(self, hashed: str) -> RecordT | None:
        before = self._generation
        record = await self._store.read(lambda tx: self._find(tx, hashed))
        # If a revocation has emptied the cache during the read, the record may be stale and must not be cached.
        if record is not None and before == self._generation:
            self._records.put(hashed, record, record.tenant_id)
        return record


class Guesses:
    """A rate limit for wrong keys from each source.

    The limit is a token bucket of size `burst`. One token is added every `refill_us` microseconds. A source is an IPv4
    address, or the /64 prefix of an IPv6 address, because a /64 usually belongs to one subscriber. If the table is
    full, the quarter of the sources that reaches zero first is evicted. So an attacker cannot reset the count of one
    source by single failures of many others.

    tell: a function that sends the network of a source with a wrong key to the other nodes. The other nodes pass it to
    `count`.
    """

    def __init__(
        self,
        *,
        burst: int = BURST,
        refill_us: int = REFILL_US,
        max_sources: int = MAX_SOURCES,
        tell: Callable[[str], None] = lambda _network: None,
    ) -> None:
        self.burst = burst
        self.refill_us = refill_us
        self.tell = tell
        self._max_sources = max_sources
        self._spent = dict[str, tuple[float, int]]()

    def too_many(self, source: str, now: int) -> bool:
        """Return whether a source has reached the limit. now: the current time in microseconds."""
        return self._counted(network_of(source), now) > self.burst - 1

    def fail(self, source: str, now: int) -> None:
        """Count a wrong key from a source, on all nodes. now: the current time in microseconds."""
        network = network_of(source)
        self.count(network, now)
        self.tell(network)

    def count(self, network: str, now: int) -> None:
        """Count a wrong key from a network on this node. Call this if another node has received a wrong key, or before
        a key is checked. now: the time in microseconds."""
        self._spent[network] = (self._counted(network, now) + 1, now)
        if len(self._spent) > self._max_sources:
            kept = max(1, self._max_sources * 3 // 4)
            self._spent = dict(nlargest(kept, self._spent.items(), key=lambda item: self._zero_at(*item[1])))

    def forgive(self, source: str, now: int) -> None:
        """Take back a failure of a source on this node. Call this if a key that was counted before its check is
        right."""
        network = network_of(source)
        self._spent[network] = (max(0.0, self._counted(network, now) - 1), now)

    def _counted(self, network: str, now: int) -> float:
        """Return the number of wrong keys that count against a network. The number decreases with time."""
        spent, at = self._spent.get(network) or (0.0, now)
        if at > now:  # the clock was set back
            at = now
            self._spent[network] = (spent, at)
        return max(0.0, spent - max(0, now - at) / self.refill_us)

    def _zero_at(self, spent: float, at: int) -> float:
        """Return the time in microseconds at which a count reaches zero."""
        return at + spent * self.refill_us


def guesses_of_all_nodes(notices: Notices, kind: str, clock: Clock, *, burst: int) -> Guesses:
    """Return the rate limit for wrong keys of one kind. A wrong key counts on every node, whichever node has received
    it. kind: the name of the kind. clock: a function that returns the time in microseconds."""
    notice = f"wrong_{kind}"
    guesses = Guesses(burst=burst, tell=partial(notices.send, notice))
    notices.receive(notice, lambda values, age_us: guesses.count(str(values[0]), clock() - age_us))
    return guesses


def network_of(source: str) -> str:
    """Return the key under which the wrong keys of a source count: its address or /64 prefix. A source that is no
    address is returned unchanged."""
    try:
        address = ipaddress.ip_address(source.partition("%")[0])
    except ValueError:
        return source
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)


class Authentication:
    """The authentication of access tokens and API keys. A token and a key differ in their prefix.

    The class implements web.scope.Authenticator.
    """

    def __init__(self, tokens: Authenticator, keys: Authenticator) -> None:
        self._tokens = tokens
        self._keys = keys

    async def authenticate(self, token: str, source: str = "") -> Caller:
        """Return the caller that a token or key identifies. Raises Unauthenticated, TooMany, StoreError."""
        kind = self._keys if token.startswith(KEY_PREFIX) else self._tokens
        return await kind.authenticate(token, source)
