"""The faults: one class each. `start` breaks something at once, `stop` mends it. Their choices are those of their own
random numbers. None raises an error because another fault has broken what it uses."""

import os
import signal
import socket
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from random import Random
from typing import ClassVar

from tests.peers.hook import Handler
from tests.running_service import ServiceError
from tests.soak.history import Span
from tests.soak.programs import READS, SYNCS, WRITES, Shim
from tests.soak.schedule import PAUSE_S
from tests.soak.site import ERRORS, Kept, Site

Missing = (OSError, AssertionError, ValueError)
"""What a request to a node raises that another fault has stopped."""


class Fault(ABC):
    """A fault. The class attributes are those of `schedule.Kind`."""

    name: ClassVar[str]
    place: ClassVar[str]
    longest_s: ClassVar[float]
    disturbs_all: ClassVar[bool] = False
    pause_s: ClassVar[float] = PAUSE_S
    needs_postgres: ClassVar[bool] = False
    needs_sqlite: ClassVar[bool] = False

    def __init__(self, site: Site, random: Random) -> None:
        self.site = site
        self.random = random
        self.number = random.randrange(len(site.nodes))
        self.node = site.nodes[self.number]
        self.effect = 0
        self.blocks = False

    @abstractmethod
    def start(self) -> None:
        """Begin the fault. `blocks` is whether the stores of its nodes accept no write meanwhile."""

    def stop(self) -> None:  # noqa: B027  a fault that happens in a moment has nothing to end
        """End the fault. Afterwards `effect` is a number above zero if it has broken something."""

    @property
    def nodes(self) -> frozenset[int]:
        """The numbers of the nodes that the fault concerns."""
        return frozenset({self.number})

    def span(self, began: float, ended: float) -> Span:
        """Return its entry in the history."""
        return Span(self.name, self.place, began, ended, self.nodes, self.disturbs_all, self.blocks)


class SharedFault(Fault):
    """A fault that concerns all nodes."""

    @property
    def nodes(self) -> frozenset[int]:
        return frozenset(range(len(self.site.nodes)))


# --- processes ----------------------------------------------------------------------------------------------------


class Kill(Fault):
    """The process of a node is killed, and started again."""

    name, place, longest_s, disturbs_all = "kill", "process", 1.0, True

    def start(self) -> None:
        self.effect = int(self.site.is_alive(self.number))
        self.site.note_end(self.number)
        self.node.kill()

    def stop(self) -> None:
        self.site.revive(self.number)


class Storm(SharedFault):
    """Nodes are killed again and again: at a random moment of their start, or shortly after they are ready."""

    name, place, longest_s, disturbs_all = "storm", "process", 6.0, True

    def start(self) -> None:
        numbers = range(len(self.site.nodes))
        for _ in range(len(numbers) * self.random.randrange(4, 9)):
            is_ready = self.random.random() < 0.6
            self.effect += self.site.kill_soon(
                self.random.choice(numbers), self.random.uniform(0.02, 0.6), is_ready=is_ready
            )

    def stop(self) -> None:
        for number in range(len(self.site.nodes)):
            self.site.revive(number)


class Loss(Kill):
    """A node of several is lost for a while, so that the others take over its prompts and its lease."""

    name, longest_s, needs_postgres = "loss", 12.0, True


class Restart(Kill):
    """A node is stopped as systemd does, and started again."""

    name, longest_s = "restart", 0.5

    def start(self) -> None:
        self.effect = int(self.site.is_alive(self.number))
        self.site.note_end(self.number)
        with suppress(ServiceError):
            self.node.stop()


class Pause(Fault):
    """A process stands still, as in a virtual machine that is moved."""

    name, place, longest_s, disturbs_all = "pause", "process", 3.0, True

    def start(self) -> None:
        self._signal(signal.SIGSTOP)

    def stop(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.site.is_alive(self.number):
            os.kill(self.node.process_id, number)
            self.effect += 1


# --- disk and clock -----------------------------------------------------------------------------------------------


class FullDisk(SharedFault):
    """The disk of the nodes is full, but for some octets."""

    name, place, longest_s, disturbs_all = "full-disk", "disk", 3.0, True

    def start(self) -> None:
        left = self.random.choice((0, 4096, 100_000))
        self.site.disk.fill(left)
        self.effect = int(self.site.disk.free() <= 2 * left + 65_536)

    def stop(self) -> None:
        self.site.disk.clear()


class FailingDisk(Fault):
    """Some writes, synchronizations and reads of a node's files fail."""

    name, place, longest_s, disturbs_all = "failing-disk", "disk", 5.0, True

    def start(self) -> None:
        self.shim = self._shim()
        calls, every = self.random.choice((WRITES, SYNCS, WRITES | SYNCS, READS)), self.random.choice((1, 2, 7, 97))
        self.blocks = calls != READS and every == 1 and not self.site.is_shared
        self.before = self.shim.failed
        self.shim.fail(calls, self.random.choice(ERRORS), every)

    def stop(self) -> None:
        self.shim.fail(0, 0, 1)
        self.effect = self.shim.failed - self.before

    def _shim(self) -> Shim:
        return self.site.shims[self.number]


class ClockStep(Fault):
    """The clock of a node is set, and later set right."""

    name, place, longest_s, disturbs_all = "clock-step", "clock", 6.0, False

    def start(self) -> None:
        size = self.random.choice((2.0, 30.0, 45.0, 3600.0 if not self.site.is_shared else 55.0))
        self.before = self.site.shims[self.number].stepped
        self.site.shims[self.number].set_clock(self.random.choice((-1, 1)) * size)

    def stop(self) -> None:
        self.site.shims[self.number].set_clock(0)
        self.effect = self.site.shims[self.number].stepped - self.before


# --- other machines -----------------------------------------------------------------------------------------------


class Datagrams(SharedFault):
    """The network loses, repeats and reorders datagrams."""

    name, place, longest_s = "datagrams", "network", 8.0

    def start(self) -> None:
        self.before = self.site.relay.disturb(*(self.random.choice((0, 10, 100, 300)) for _ in range(3)))

    def stop(self) -> None:
        self.effect = self.site.relay.disturb().disturbed - self.before.disturbed


class DeadProvider(SharedFault):
    """The provider of the second factor is away."""

    name, place, longest_s = "dead-provider", "provider", 4.0

    def start(self) -> None:
        self.site.hook.close()
        with socket.socket() as sock:
            self.effect = int(sock.connect_ex(("127.0.0.1", self.site.hook.port)) != 0)

    def stop(self) -> None:
        self.site.hook.open()


class BadProvider(SharedFault):
    """The provider answers late, or with an error that pretends an approval."""

    name, place, longest_s = "bad-provider", "provider", 4.0

    def start(self) -> None:
        answer = self.random.choice((_be_silent, _fail))

        def misbehave(handler: Handler) -> None:
            self.effect += 1
            answer(handler)

        self.site.hook.misbehave = misbehave

    def stop(self) -> None:
        self.site.hook.misbehave = None


def _be_silent(handler: Handler) -> None:
    handler.server.hook.closing.wait(20)


def _fail(handler: Handler) -> None:
    handler.say(500, {"status": "approved"})


class DeadDirectory(SharedFault):
    """Connections to the directory end, and no new ones are accepted."""

    name, place, longest_s = "dead-directory", "directory", 5.0

    def start(self) -> None:
        self.before = self.site.proxy.refused
        self.site.proxy.cut()

    def stop(self) -> None:
        self.effect += self.site.proxy.refused - self.before
        self.site.proxy.release()


class SlowDirectory(DeadDirectory):
    """The directory does not answer."""

    name = "slow-directory"

    def start(self) -> None:
        self.before = self.site.proxy.refused
        self.site.proxy.hold()
        with socket.create_connection(("127.0.0.1", self.site.proxy.port)):
            self.effect = 1


class KilledDirectory(SharedFault):
    """The directory is killed, and started again."""

    name, place, longest_s = "killed-directory", "directory", 2.0

    def start(self) -> None:
        self.site.directory.kill()
        self.effect = 1

    def stop(self) -> None:
        self.site.directory.start()


# --- what operators do --------------------------------------------------------------------------------------------


class CertificateRotation(Fault):
    """The server gets a new certificate."""

    name, place, longest_s = "certificate", "upkeep", 0.1

    def start(self) -> None:
        self.effect = int(self.site.command(self.number, "cert", "renew"))


class MasterKeyRotation(Fault):
    """All secrets get a new master key."""

    name, place, longest_s, needs_sqlite = "master-key", "upkeep", 0.1, True

    def start(self) -> None:
        self.effect = int(self.site.command(self.number, "db", "rotate-key"))


class Backup(Fault):
    """A backup is made. The campaign keeps the newest one, with its master key, to restore it at the end."""

    name, place, longest_s = "backup", "upkeep", 0.1

    def start(self) -> None:
        self.effect = int(make_backup(self.site, self.number))


class Reload(Fault):
    """The settings are read again."""

    name, place, longest_s = "reload", "upkeep", 0.1

    def start(self) -> None:
        self.effect = int(self.site.command(self.number, "server", "reload"))


class Removal(Fault):
    """All devices of a domain are deleted, and register again with their next request."""

    name, place, longest_s = "removal", "upkeep", 0.1

    def start(self) -> None:
        with suppress(*Missing):
            devices = self.node.devices()
            if devices:
                ids = [each["device_id"] for each in devices]
                self.node.run("/network_device/DeleteDevice", {"deviceIds": ids}, domain="default")
                self.effect = len(ids)


def make_backup(site: Site, number: int) -> bool:
    """Make a backup at a node, and return whether it is made."""
    directory = site.nodes[number].directory / "backups"
    directory.mkdir(exist_ok=True)
    file, key = site.nodes[number].data_dir / "master.key", ""
    while key != file.read_text():  # a rotation during the backup leaves open which key it needs
        before, key = time.monotonic(), file.read_text()
        if not site.command(number, "db", "backup", str(directory), "--keep", "2"):
            return False
    site.backups.append(Kept(max(directory.iterdir(), key=lambda path: path.stat().st_mtime_ns), before, key))
    return True
