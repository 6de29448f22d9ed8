"""The items of the writer's queue, and their order. An item is the work of one caller."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

import structlog

from sallyport.base.errors import StoreError
from sallyport.store.model import Done, Tx

log = structlog.get_logger()


@dataclass(slots=True)
class QueuedWrite:
    """An item of the writer's queue: the work of one caller.

    work: a function that runs in a transaction. alone: a function that runs outside of a transaction. An item has only
    one of these two functions. own: whether the caller is the service itself, and not a request.
    """

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
    """Do nothing. This is the callback of an item if no caller waits for its result."""


def finish(items: list[QueuedWrite], error: StoreError | None) -> None:
    """Pass the results to the callers. This runs on the event loop. error: the error of the transaction, or None.

    The items lose their functions, because the writer's thread keeps them until its next transaction, and a function
    may contain a login with its password.
    """
    for item in items:
        item.error = error or item.error
        done, item.done, item.work, item.alone = item.done, nobody, None, None
        try:
            done(item.result, item.error)
        except Exception:
            log.exception("store_callback_failed")


def runs_of(items: list[QueuedWrite]) -> Iterator[list[QueuedWrite]]:
    """Split the queue into lists of items, in the order of their transactions.

    All items of one list may run in the same transaction. Submitted items come first, then the items of the service,
    then the items of requests. An item with `alone` gets a list of its own.
    """
    for alone, group in groupby(items, key=lambda item: item.alone is not None):
        if alone:
            yield from ([item] for item in group)
        else:
            first, own, then = list[QueuedWrite](), list[QueuedWrite](), list[QueuedWrite]()
            for item in group:
                (first if item.submitted else own if item.own else then).append(item)
            yield from filter(None, (first, own, then))
