"""Forked processes with limits of work: of processor time for each test, and of time asleep."""

import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

IDLE_S = 15.0
"""How long a child may sleep during a test, beside ten times the usual duration of the test. On a busy machine a child
does not sleep, but waits to run."""
PROCESSOR_S = 2.0
"""Processor time of a test beside ten times what it usually takes."""
RESTS_S = 1.0
"""A child that has slept for this time makes room for another one."""
MOST_RESTING = 6
"""Maximum number of children that sleep beside those that work."""
MEMORY = 8 << 30
_PAUSE_S = 0.01
_TRAVERSED = 0o711
"""The mode of folders: PostgreSQL runs as another user, and has its files in one of them."""


class End(StrEnum):
    """How a child has ended."""

    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"
    """Its work exceeded the limit, or it slept too long."""


Say = Callable[[str], None]
"""Tells the parent a line, such as the test that begins."""
Work = Callable[[Say], bool]
"""What a child does. Returns whether it passed."""


@dataclass(frozen=True, slots=True)
class Job:
    """Work for a child. key: for the caller."""

    key: object
    work: Work
    idle_s: float = IDLE_S


def run_all(jobs: Iterable[Job], at_once: int) -> Iterator[tuple[object, End, list[str]]]:
    """Run each job in a child. Yield its key, its end and its lines when it has ended. A job is taken from the iterator
    just before its child is forked. at_once: the number of children that work; a few more may sleep."""
    waiting, running = iter(jobs), list[_Child]()
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=memory_disk()) as folder:
        Path(folder).chmod(_TRAVERSED)
        while True:
            while has_room(running, at_once) and (job := next(waiting, None)) is not None:
                running.append(_Child(job, Path(folder)))
            if not running:
                return
            time.sleep(_PAUSE_S)
            for child in list(running):
                if (end := child.poll()) is not None:
                    running.remove(child)
                    yield child.job.key, end, child.said()
                    child.remove()


def has_room(running: "Sequence[_Child]", at_once: int) -> bool:
    """Return whether another child may start beside those that run. at_once: the number of children that work."""
    working = sum(each.slept_s < RESTS_S for each in running)
    return working < at_once and len(running) < at_once + MOST_RESTING


def limit_processor(usual_s: float) -> None:
    """Let the next test of this process use ten times its usual processor time, and a little more."""
    most = int(time.process_time() + 10 * usual_s + PROCESSOR_S)
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def memory_disk() -> str | None:
    """Return a folder in memory, where tests with a store are quicker, if the system has one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108  its directory has a random name


class _Child:
    """A forked child in a process group of its own, with its own folder for temporary files."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self._folder = Path(tempfile.mkdtemp(prefix="", dir=folder))
        self._folder.chmod(_TRAVERSED)
        self._said = self._folder / "said"
        self._said.touch()
        self._told, self._worked_s, self._looked = 0, 0.0, time.monotonic()
        self.slept_s = 0.0
        sys.stdout.flush()
        self._id = os.fork()
        if self._id == 0:
            self._work()

    def poll(self) -> End | None:
        """Return how the child has ended, or None while it runs. Ends a child that sleeps too long."""
        ended, status, _ = os.wait4(self._id, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return End.STOPPED if code == -signal.SIGXCPU else End.FAILED if code else End.PASSED
        now, told = time.monotonic(), self._said.stat().st_size
        worked_s, is_asleep = _activity(self._id)
        if told != self._told:  # the next test has begun
            self.slept_s = 0.0
        elif is_asleep and worked_s == self._worked_s:
            self.slept_s += now - self._looked
        self._told, self._worked_s, self._looked = told, worked_s, now
        if self.slept_s > self.job.idle_s:
            os.kill(self._id, signal.SIGKILL)
            os.waitpid(self._id, 0)
            return End.STOPPED
        return None

    def said(self) -> list[str]:
        """Return the lines that the child has told."""
        return self._said.read_text().splitlines()

    def remove(self) -> None:
        """End what the child has started, and delete its files."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._id, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _work(self) -> None:
        """Do the work in the child, and end without the clean-up of the parent."""
        passed = False
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.environ["TMPDIR"] = tempfile.tempdir = str(self._folder)
            with self._said.open("a", buffering=1) as said, (self._folder / "output").open("w") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                passed = self.job.work(lambda line: print(line, file=said))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0 if passed else 1)


def _activity(process_id: int) -> tuple[float, bool]:
    """Return the processor time of a process, and whether it sleeps."""
    try:
        words = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, False
    return float(words[11]) + float(words[12]), words[0] == "S"
