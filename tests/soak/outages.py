"""The faults of a shared database and of its nodes, and the list of all faults."""

import time
from typing import Final

from sallyport.store.postgres.link import IDLE_S
from tests.soak.database import Database
from tests.soak.faults import (
    Backup,
    BadProvider,
    CertificateRotation,
    ClockStep,
    Datagrams,
    DeadDirectory,
    DeadProvider,
    FailingDisk,
    Fault,
    FullDisk,
    Kill,
    KilledDirectory,
    Loss,
    MasterKeyRotation,
    Pause,
    Reload,
    Removal,
    Restart,
    SharedFault,
    SlowDirectory,
    Storm,
)
from tests.soak.history import Span
from tests.soak.programs import Shim
from tests.soak.site import Site


class KeyRotation(SharedFault):
    """All nodes get a new master key, with their restarts."""

    name, place, longest_s, disturbs_all, needs_postgres = "keys", "process", 0.1, True, True

    def start(self) -> None:
        self.effect = int(self.site.rotate_keys())


class DatabaseFault(SharedFault):
    """A fault of PostgreSQL. It has longer pauses than others, because nothing is answered meanwhile."""

    pause_s = 6.0
    place, longest_s, disturbs_all, needs_postgres = "database", 4.0, True, True

    @property
    def database(self) -> Database:
        """The servers."""
        assert self.site.database is not None
        return self.site.database


class DatabaseKill(DatabaseFault):
    """All processes of PostgreSQL are killed, and it recovers."""

    name, longest_s = "database-kill", 2.0

    def start(self) -> None:
        self.database.primary.kill()
        self.effect, self.blocks = 1, True

    def stop(self) -> None:
        self.database.primary.start()


class DatabasePause(DatabaseFault):
    """All processes of PostgreSQL stand still, so that connections stay and nothing answers."""

    name, longest_s = "database-pause", 8.0

    def start(self) -> None:
        self._frozen = self.database.primary.frozen()
        self._frozen.__enter__()
        self.effect, self.blocks = 1, True

    def stop(self) -> None:
        self._frozen.__exit__(None, None, None)


class Promotion(DatabaseFault):
    """The primary server is killed, and the standby is promoted. Then the other server becomes the standby."""

    name = "promotion"

    def start(self) -> None:
        self.database.fail_over()
        self.effect = 1

    def stop(self) -> None:
        self.database.rebuild()


class DatabaseDisk(DatabaseFault, FailingDisk):
    """Some writes, synchronizations and reads of PostgreSQL's files fail. It recovers from its log, or ends."""

    name, place, longest_s, needs_postgres = "database-disk", "database", 3.0, True

    def stop(self) -> None:
        super().stop()
        self.database.recover()

    def _shim(self) -> Shim:
        return self.database.shim


class Partition(Fault):
    """The network between a node and both servers of the database is lost: connections stay, or end."""

    pause_s = 6.0
    name, place, longest_s, disturbs_all, needs_postgres = "partition", "link", 9.0, True, True

    def start(self) -> None:
        assert self.site.database is not None
        self.proxies, is_held = self.site.database.proxies[self.number], self.random.random() < 0.5
        self.before = sum(each.refused for each in self.proxies)
        for each in self.proxies:
            each.hold() if is_held else each.cut()
        if is_held:  # the other node may wait for rows that this one has locked
            began = time.monotonic()
            self.site.history.add(
                Span("locks", self.place, began, began + IDLE_S, frozenset(range(len(self.site.nodes))))
            )
        self.effect, self.blocks = int(is_held), True

    def stop(self) -> None:
        self.effect += sum(each.refused for each in self.proxies) - self.before
        for each in self.proxies:
            each.release()


FAULTS: Final[tuple[type[Fault], ...]] = (
    *(Kill, Kill, Storm, Storm, Storm, Storm, Storm, Loss, Restart, Pause, KeyRotation),
    *(FullDisk, FailingDisk, FailingDisk, ClockStep),
    *(Datagrams, DeadProvider, BadProvider, DeadDirectory, SlowDirectory, KilledDirectory),
    *(CertificateRotation, MasterKeyRotation, Backup, Reload, Removal),
    *(DatabaseKill, DatabasePause, Promotion, DatabaseDisk, Partition),
)
"""All faults. One that is listed twice comes twice as often."""


def kinds(engine: str) -> list[type[Fault]]:
    """Return the faults of an engine."""
    is_postgres = engine == "postgres"
    return [each for each in FAULTS if not (each.needs_sqlite if is_postgres else each.needs_postgres)]


def settle(site: Site, *, patience_s: float) -> list[str]:
    """Start the nodes that have not started because of another fault. Return a finding for each that does not start
    now."""
    deadline = time.monotonic() + patience_s
    findings = []
    for number, node in enumerate(site.nodes):
        site.is_alive(number)
        while not site.revive(number) and time.monotonic() < deadline:
            time.sleep(0.5)
        if not node.is_running:
            findings.append(f"{node.directory.name} does not start\n{node.log()[-3000:]}")
    return findings
