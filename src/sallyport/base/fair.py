"""Queues in which a source that sends much waits for itself and not before others."""

import math
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

OwnerT = TypeVar("OwnerT", bound=Hashable)
SourceT = TypeVar("SourceT", bound=Hashable)
T = TypeVar("T")


class FairQueue(Generic[SourceT, T]):
    """Each source in turn, the first of each first."""

    __slots__ = ("_by_source", "_size")

    def __init__(self) -> None:
        self._by_source: OrderedDict[SourceT, deque[T]] = OrderedDict()  # whose turn is next comes first
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, source: SourceT, item: T) -> None:
        """Behind all others of its source; a source that has none waits for everybody's turn."""
        own = self._by_source.get(source)
        if own is None:
            self._by_source[source] = own = deque()
        own.append(item)
        self._size += 1

    def take(self) -> T:
        """The first of the source whose turn it is. KeyError: there is none."""
        source, own = self._by_source.popitem(last=False)
        if len(own) > 1:
            self._by_source[source] = own
        self._size -= 1
        return own.popleft()


class FairShares(Generic[OwnerT, SourceT, T]):
    """Each owner in turn, and each source of an owner in turn. limit: how many items wait; where they are so many, an
    owner with an equal share of them or more puts nothing in. So at most twice as many wait."""

    __slots__ = ("_by_owner", "_limit", "_size")

    def __init__(self, limit: float = math.inf) -> None:
        self._by_owner: OrderedDict[OwnerT, FairQueue[SourceT, T]] = OrderedDict()  # whose turn is next comes first
        self._limit = limit
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, owner: OwnerT, source: SourceT, item: T) -> bool:
        """Behind all others of its source. False: the queue is full, and the owner has its share."""
        own = self._by_owner.get(owner)
        if own is None:
            self._by_owner[owner] = own = FairQueue()
        elif self._size >= self._limit and len(own) * len(self._by_owner) >= self._limit:
            return False
        own.put(source, item)
        self._size += 1
        return True

    def take(self) -> T:
        """The first of the owner and of the source whose turn it is. KeyError: there is none."""
        owner, own = self._by_owner.popitem(last=False)
        item = own.take()
        if own:
            self._by_owner[owner] = own
        self._size -= 1
        return item
