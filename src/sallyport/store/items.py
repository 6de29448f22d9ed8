"""The items of the writer's queue, and their order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from sallyport.store.model import Done, Tx


@dataclass(slots=True)
class Item:
    """The work of a caller in the writer's queue. `work` runs in a transaction, `alone` outside of a transaction. own:
    whether the work comes from the service itself."""

    done: Done[object]
    work: Callable[[Tx], object] | None = None
    submitted: bool = False
    own: bool = False
    begun: bool = False
    alone: Callable[[], object] | None = None
    replaces: bool = False
    generation: int = 0
    result: object = None
    error: BaseException | None = None


def nobody(_result: object, _error: BaseException | None) -> None:
    """Ignore the result, because no caller waits for it."""


def runs_of(items: list[Item]) -> Iterator[list[Item]]:
    """Yield lists of items that may share a transaction, in this order: the submitted items, the service's items, the
    other items. An item that works alone is a list of its own."""
    for alone, group in groupby(items, key=lambda item: item.alone is not None):
        if alone:
            yield from ([item] for item in group)
        else:
            first, own, then = list[Item](), list[Item](), list[Item]()
            for item in group:
                (first if item.submitted else own if item.own else then).append(item)
            yield from filter(None, (first, own, then))
