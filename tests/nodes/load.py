"""A load on several nodes, and the check that nothing of it is lost."""

from collections.abc import Sequence
from random import Random
from threading import Event, Thread

from tests.running_service import RunningService
from tests.torture.load import WINDOW, Load, check_stored
from tests.waiting import eventually


class Loaded:
    """Loads on several nodes at the same time, until `stop`. The users are those of `populate`.

    window: the number of requests of each load that wait for an answer at the same time. loads: the load of each node.
    """

    def __init__(self, nodes: Sequence[RunningService], *, window: int = WINDOW) -> None:
        self._over = Event()
        self.loads = [
            Load(node, f"load-{node.directory.name}-", Random(number), window=window)
            for number, node in enumerate(nodes)
        ]
        self._threads = [Thread(target=self._run, args=[load]) for load in self.loads]

    def __enter__(self) -> "Loaded":
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        for load in self.loads:
            load.__exit__(None, None, None)

    def stop(self) -> None:
        """Send no further requests."""
        self._over.set()
        for each in self._threads:
            each.join()

    def _run(self, load: Load) -> None:
        while not self._over.is_set():
            load.run(0.1)


def check(node: RunningService, load: Load) -> None:
    """Check that each answered request of a load is stored once. Then send the other requests again until the node has
    answered them, and check that all are stored."""
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
