"""A queue in which a source that sends much waits for itself and not before others."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

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
