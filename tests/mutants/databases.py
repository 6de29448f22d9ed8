"""The databases of the shared PostgreSQL server. A child uses those that earlier children have left, because a new
database takes several times as long as a restored one."""

import tempfile
from collections.abc import Callable, Hashable

from tests.mutants.children import memory_disk


def share_server() -> None:
    """Start the server in memory, for the children of this process. This imports the project."""
    from tests.peers import postgres  # here, because the runner imports nothing of the project

    tempfile.tempdir = memory_disk()
    postgres.share()


class Databases:
    """The databases that running children have, by the key of their job."""

    def __init__(self) -> None:
        self._lent: dict[Hashable, list[str]] = {}

    def lend(self, key: Hashable) -> Callable[[], None]:
        """Return a function that gives a child the databases that no running child has."""
        from tests.peers import postgres

        running = {name for names in self._lent.values() for name in names}
        names = self._lent[key] = [name for name in postgres.databases_of_ended() if name not in running]
        return lambda: postgres.adopt(names)

    def take_back(self, key: Hashable) -> None:
        """Let the next child have the databases of a child that has ended."""
        self._lent.pop(key, None)
