"""A load on several nodes, and the check that nothing of it is lost."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from threading import Event, Thread

from tests.service import RunningService
from tests.torture.load import WINDOW, Load, check_stored
from tests.waiting import eventually


@contextmanager
def loaded(nodes: Sequence[RunningService], *, window: int = WINDOW) -> Iterator[list[Load]]:
    """Send requests to each node until the block ends. Yield the load of each node. The users are those of
    `populate`.

    window: the number of requests of each load that wait for an answer at the same time.
    """
    over = Event()

    def send(load: Load) -> None:
        while not over.is_set():
            load.run(0.1)

    with ExitStack() as stack:
        loads = [
            Load(node, f"load-{node.directory.name}-", Random(number), window=window)
            for number, node in enumerate(nodes)
        ]
        threads = [Thread(target=send, args=[load]) for load in loads]
        for each in threads:
            each.start()
            stack.callback(each.join)
        stack.callback(over.set)
        yield loads


def check(node: RunningService, load: Load) -> None:
    """Check that each answered request of a load is stored once. Then send the other requests again until the node has
    answered them, and check that all are stored."""
    with load:
        load.drain()
        eventually(lambda: not is_spooling(node))
        check_stored(node, load.prefix, load.answered)
        left = [each for each in load.sent if each.reply is None]
        load.again(left, seconds=30)
        eventually(lambda: not is_spooling(node))
        check_stored(node, load.prefix, load.sent, repeated=left)


def is_spooling(node: RunningService) -> bool:
    """Return whether accounting records wait on the node's disk."""
    return (node.data_dir / "accounting.spool").exists()


def logins(load: Load) -> int:
    """Return the number of answered logins."""
    return sum(each.is_login for each in load.answered)
