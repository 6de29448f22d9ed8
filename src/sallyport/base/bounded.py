"""Tables in memory with a maximum number of entries, in which each owner has a fair share.

    users = BoundedMap[str, User](1000)
    users.put("alice", user, tenant_id)

When a table is full, a new entry replaces the oldest entry of the owner with the most entries. So an owner that fills
the table loses its own entries. Owners can be nested, as in `put(state, value, tenant_id, client_id)`. When this table
is full, the table selects the tenant with the most entries, and among the clients of this tenant the client with the
most entries. Then the oldest entry of this client is dropped.

Reading is as fast as reading a dictionary. A change takes constant time for each level of owners. A plain dictionary
would be slower: after many removals at the front, `next(iter(...))` steps over every gap to find the oldest key.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedMap(Generic[K, V]):
    """A map with at most `limit` entries, in the order in which they were last put. All entries must have the same
    number of owners.

    get: returns the value of a key, or None.
    """

    __slots__ = ("_limit", "_owners", "_shares", "_values", "get")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._owners: dict[K, tuple[Hashable, ...]] = {}
        self._shares = _Share[K]()
        self.get: Callable[[K], V | None] = self._values.get

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, the oldest first."""
        return iter(self._values)

    def items(self) -> list[tuple[K, V]]:
        """Return the keys with their values, the oldest first."""
        return list(self._values.items())

    def values(self) -> list[V]:
        """Return the values, the oldest first."""
        return list(self._values.values())

    def put(self, key: K, value: V, *owners: Hashable) -> V | None:
        """Set the value of a key, and make the entry the newest. If the map was full, another entry is dropped. Return
        the value of the dropped entry, or None.

        owners: the owners of the entry, from the outermost (such as the tenant) to the innermost.
        """
        values = self._values
        if key in values:
            if self._owners.get(key, ()) == owners:
                self.renew(key, value)
                return None
            self.pop(key)
        values[key] = value
        if owners:
            self._owners[key] = owners
            self._shares.add(key, owners)
        if len(values) <= self._limit:
            return None
        return self.pop(self._shares.oldest() if owners else next(iter(values)))

    def renew(self, key: K, value: V) -> None:
        """Set the value of an existing key, and make the entry the newest. Its owners remain."""
        self._values[key] = value
        self._values.move_to_end(key)
        owners = self._owners.get(key)
        if owners is not None:
            self._shares.renew(key, owners)

    def pop(self, key: K) -> V | None:
        """Remove an entry and return its value. Return None if the key has no entry."""
        owners = self._owners.pop(key, None)
        if owners is not None:
            self._shares.remove(key, owners)
        return self._values.pop(key, None)

    def oldest(self) -> V | None:
        """Return the value of the oldest entry. Return None if the map is empty."""
        return next(iter(self._values.values()), None)

    def pop_oldest_while(self, is_over: Callable[[V], bool]) -> list[V]:
        """Remove the oldest entries, one after another, as long as `is_over` returns true for the value of the oldest
        entry. Return the removed values, the oldest first."""
        removed: list[V] = []
        while self._values:
            key = next(iter(self._values))
            if not is_over(self._values[key]):
                break
            removed.append(self._values[key])
            self.pop(key)
        return removed

    def clear(self) -> None:
        """Remove all entries."""
        self._values.clear()
        self._owners.clear()
        self._shares = _Share()


class ExpiringMap(Generic[K, V]):
    """A bounded map whose entries expire. Each `put` removes the expired entries.

    lifetime: how long an entry is valid after its last `put` or `renew`. It has the same unit as the times that are
    passed as `now`.
    """

    __slots__ = ("_expires_at", "_lifetime", "_map")

    def __init__(self, limit: int, lifetime: float) -> None:
        self._lifetime = lifetime
        self._map = BoundedMap[K, tuple[float, V]](limit)
        self._expires_at = -math.inf  # no entry expires earlier

    def __len__(self) -> int:
        return len(self._map)

    def get(self, key: K, *, now: float) -> V | None:
        """Return the value of a key. Return None if the key has no entry or the entry has expired."""
        entry = self._map.get(key)
        return entry[1] if entry is not None and now < entry[0] else None

    def renew(self, key: K, value: V, *, now: float) -> None:
        """Set the value of an existing key, and make it the newest entry. Its owners remain, and no entry is
        removed."""
        self._map.renew(key, (now + self._lifetime, value))

    def put(self, key: K, value: V, *owners: Hashable, now: float) -> None:
        """Set the value of a key, and make it the newest entry. owners: see `BoundedMap.put`."""
        self.expire(now=now)
        self._map.put(key, (now + self._lifetime, value), *owners)

    def pop(self, key: K) -> None:
        """Remove an entry, if there is one."""
        self._map.pop(key)

    def expire(self, *, now: float) -> list[V]:
        """Remove the expired entries. Return their values, the oldest first."""
        if now < self._expires_at:
            return []
        expired = [value for _, value in self._map.pop_oldest_while(lambda entry: entry[0] <= now)]
        oldest = self._map.oldest()
        self._expires_at = now if oldest is None else oldest[0]
        return expired


class _Share(Generic[K]):
    """The keys of an owner, the oldest first. If owners are nested, the share of an outer owner has no keys of its own.
    It contains the shares of the inner owners: its parts.

    The parts are grouped by size. The size of a part changes by one at a time, so the largest part is found without a
    search.
    """

    __slots__ = ("_by_size", "_keys", "_largest", "_parts", "size")

    def __init__(self) -> None:
        self.size = 0
        self._keys: OrderedDict[K, None] = OrderedDict()
        self._parts: dict[Hashable, _Share[K]] = {}
        self._by_size: dict[int, OrderedDict[Hashable, None]] = {}
        self._largest = 0

    def add(self, key: K, owners: tuple[Hashable, ...]) -> None:
        self.size += 1
        if not owners:
            self._keys[key] = None
            return
        name = owners[0]
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = _Share()
        part.add(key, owners[1:])
        self._moved(name, part.size - 1, part.size)
        self._largest = max(self._largest, part.size)

    def remove(self, key: K, owners: tuple[Hashable, ...]) -> None:
        self.size -= 1
        if not owners:
            del self._keys[key]
            return
        name = owners[0]
        part = self._parts[name]
        part.remove(key, owners[1:])
        self._moved(name, part.size + 1, part.size)
        if self._largest not in self._by_size:
            self._largest -= 1
        if not part.size:
            del self._parts[name]

    def renew(self, key: K, owners: tuple[Hashable, ...]) -> None:
        """Make a key the newest key of its owner."""
        share = self
        for name in owners:
            share = share._parts[name]
        share._keys.move_to_end(key)

    def oldest(self) -> K:
        """Return the oldest key of the largest part. If several parts have this size, the part that got the size first
        is used."""
        if not self._parts:
            return next(iter(self._keys))
        return self._parts[next(iter(self._by_size[self._largest]))].oldest()

    def _moved(self, name: Hashable, before: int, after: int) -> None:
        if before:
            names = self._by_size[before]
            del names[name]
            if not names:
                del self._by_size[before]
        if after:
            self._by_size.setdefault(after, OrderedDict())[name] = None
