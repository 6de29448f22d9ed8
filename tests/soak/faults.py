"""The faults: one class each. `start` breaks something at once, `stop` mends it. Their choices are those of their own
random numbers. None raises an error because another fault has broken what it uses."""

import os
import signal
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from random import Random
from typing import ClassVar, Final

from tests.peers.hook import Handler
from tests.running_service import ServiceError
from tests.soak.programs import READS, SYNCS, WRITES
from tests.soak.site import ERRORS, Site

Missing = (OSError, AssertionError, KeyError, ValueError)
"""What a request to a node raises that another fault has stopped."""


class Fault(ABC):
    """A fault. The class attributes are those of `schedule.Kind`."""

    name: ClassVar[str]
    place: ClassVar[str]
    longest_s: ClassVar[float]
    disturbs_all: ClassVar[bool] = False
    needs_postgres: ClassVar[bool] = False
    needs_sqlite: ClassVar[bool] = False

    def __init__(self, site: Site, random: Random) -> None:
        self.site = site
        self.random = random
        self.number = random.randrange(len(site.nodes))
        self.node = site.nodes[self.number]

    @abstractmethod
    def start(self) -> None:
        """Begin the fault."""

    def stop(self) -> None:  # noqa: B027  a fault that happens in a moment has nothing to end
        """End the fault."""


# --- processes ----------------------------------------------------------------------------------------------------


class Kill(Fault):
    """The process of a node is killed, and started again."""

    name, place, longest_s, disturbs_all = "kill", "process", 1.0, True

    def start(self) -> None:
        self.node.kill()
        self.site.stopped.add(self.number)

    def stop(self) -> None:
        self.site.revive(self.number)


class Loss(Kill):
    """A node of several is lost for a while, so that the others take over its prompts and its lease."""

    name, longest_s, needs_postgres = "loss", 12.0, True


class Restart(Kill):
    """A node is stopped as systemd does, and started again."""

    name, longest_s = "restart", 0.5

    def start(self) -> None:
        with suppress(ServiceError):
            self.node.stop()
        self.site.stopped.add(self.number)


class Pause(Fault):
    """A process stands still, as in a virtual machine that is moved."""

    name, place, longest_s, disturbs_all = "pause", "process", 3.0, True

    def start(self) -> None:
        self._signal(signal.SIGSTOP)

    def stop(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.node.is_running:
            os.kill(self.node.process_id, number)


# --- disk and clock -----------------------------------------------------------------------------------------------


class FullDisk(Fault):
    """The disk of the nodes is full, but for some octets."""

    name, place, longest_s, disturbs_all = "full-disk", "disk", 3.0, True

    def start(self) -> None:
        self.site.disk.fill(self.random.choice((0, 4096, 100_000)))

    def stop(self) -> None:
        self.site.disk.clear()


class FailingDisk(Fault):
    """Some writes, synchronizations and reads of a node's files fail."""

    name, place, longest_s, disturbs_all = "failing-disk", "disk", 3.0, True

    def start(self) -> None:
        calls = self.random.choice((WRITES, SYNCS, WRITES | SYNCS, READS))
        self.site.shims[self.number].fail(calls, self.random.choice(ERRORS), self.random.choice((1, 2, 7, 97)))

    def stop(self) -> None:
        self.site.shims[self.number].fail(0, 0, 1)


class ClockStep(Fault):
    """The clock of a node is set, and later set right."""

    name, place, longest_s, disturbs_all = "clock-step", "clock", 6.0, False

    def start(self) -> None:
        size = self.random.choice((2.0, 30.0, 45.0, 3600.0 if not self.site.is_shared else 55.0))
        self.site.shims[self.number].set_clock(self.random.choice((-1, 1)) * size)

    def stop(self) -> None:
        self.site.shims[self.number].set_clock(0)


# --- other machines -----------------------------------------------------------------------------------------------


class Datagrams(Fault):
    """The network loses, repeats and reorders datagrams."""

    name, place, longest_s = "datagrams", "network", 8.0

    def start(self) -> None:
        self.site.relay.disturb(*(self.random.choice((0, 10, 100, 300)) for _ in range(3)))

    def stop(self) -> None:
        self.site.relay.disturb()


class DeadProvider(Fault):
    """The provider of the second factor is away."""

    name, place, longest_s = "dead-provider", "provider", 4.0

    def start(self) -> None:
        self.site.hook.close()

    def stop(self) -> None:
        self.site.hook.open()


class BadProvider(Fault):
    """The provider answers late, or with an error that pretends an approval."""

    name, place, longest_s = "bad-provider", "provider", 4.0

    def start(self) -> None:
        self.site.hook.misbehave = self.random.choice((_be_silent, _fail))

    def stop(self) -> None:
        self.site.hook.misbehave = None


def _be_silent(handler: Handler) -> None:
    handler.server.hook.closing.wait(20)


def _fail(handler: Handler) -> None:
    handler.say(500, {"status": "approved"})


class DeadDirectory(Fault):
    """Connections to the directory end, and no new ones are accepted."""

    name, place, longest_s = "dead-directory", "directory", 5.0

    def start(self) -> None:
        self.site.proxy.cut()

    def stop(self) -> None:
        self.site.proxy.release()


class SlowDirectory(DeadDirectory):
    """The directory does not answer."""

    name = "slow-directory"

    def start(self) -> None:
        self.site.proxy.hold()


class KilledDirectory(Fault):
    """The directory is killed, and started again."""

    name, place, longest_s = "killed-directory", "directory", 2.0

    def start(self) -> None:
        self.site.directory.kill()

    def stop(self) -> None:
        self.site.directory.start()


# --- what operators do --------------------------------------------------------------------------------------------


class CertificateRotation(Fault):
    """The server gets a new certificate."""

    name, place, longest_s = "certificate", "upkeep", 0.1

    def start(self) -> None:
        self.site.command(self.number, "cert", "renew")


class MasterKeyRotation(Fault):
    """All secrets get a new master key. On several nodes this needs new files and restarts, so that it is left out."""

    name, place, longest_s, needs_sqlite = "master-key", "upkeep", 0.1, True

    def start(self) -> None:
        self.site.command(self.number, "db", "rotate-key")


class Backup(Fault):
    """A backup is made."""

    name, place, longest_s = "backup", "upkeep", 0.1

    def start(self) -> None:
        backups = self.node.directory / "backups"
        backups.mkdir(exist_ok=True)
        self.site.command(self.number, "db", "backup", str(backups), "--keep", "2")


class Reload(Fault):
    """The settings are read again."""

    name, place, longest_s = "reload", "upkeep", 0.1

    def start(self) -> None:
        self.site.command(self.number, "server", "reload")


class Removal(Fault):
    """All devices of a domain are deleted, and register again with their next request."""

    name, place, longest_s = "removal", "upkeep", 0.1

    def start(self) -> None:
        with suppress(*Missing):
            devices = self.node.devices()
            if devices:
                ids = [each["deviceId"] for each in devices]
                self.node.run("/network_device/DeleteDevice", {"deviceIds": ids}, domain="default")


# --- the database -------------------------------------------------------------------------------------------------


class DatabaseKill(Fault):
    """All processes of PostgreSQL are killed, and it recovers."""

    name, place, longest_s, disturbs_all, needs_postgres = "database-kill", "database", 2.0, True, True

    def start(self) -> None:
        assert self.site.server is not None
        self.site.server.kill()

    def stop(self) -> None:
        assert self.site.server is not None
        self.site.server.start()


class DatabasePause(Fault):
    """All processes of PostgreSQL stand still, so that connections stay and nothing answers."""

    name, place, longest_s, disturbs_all, needs_postgres = "database-pause", "database", 8.0, True, True

    def start(self) -> None:
        assert self.site.server is not None
        self._frozen = self.site.server.frozen()
        self._frozen.__enter__()

    def stop(self) -> None:
        self._frozen.__exit__(None, None, None)


FAULTS: Final[tuple[type[Fault], ...]] = (
    *(Kill, Kill, Kill, Kill, Loss, Restart, Pause),
    *(FullDisk, FailingDisk, FailingDisk, ClockStep),
    *(Datagrams, DeadProvider, BadProvider, DeadDirectory, SlowDirectory, KilledDirectory),
    *(CertificateRotation, MasterKeyRotation, Backup, Reload, Removal),
    *(DatabaseKill, DatabasePause),
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
        if not node.is_running and number not in site.stopped:
            findings.append(f"{node.directory.name} has ended by itself")
        while not site.revive(number) and time.monotonic() < deadline:
            time.sleep(0.5)
        if not node.is_running:
            findings.append(f"{node.directory.name} does not start\n{node.log()[-3000:]}")
    return findings
