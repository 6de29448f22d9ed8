"""A machine of its own for programs that need fixed ports and directories: a network, mount and process namespace.

    with Machine(tmp_path, {"/etc/samba": "etc"}) as one, Machine(...) as other:
        connect(one, "10.97.0.1", other, "10.97.0.2")
        one.run("net", "ads", "info")
        with one.inside():                        # sockets that are made here are the machine's
            client = RadiusClient(1812, "secret")

Its processes end with it, even if the test is killed, because its first process ends when the pipe that it reads is
closed. It needs root. It shares the files of the host except /run, /etc/resolv.conf and the given directories.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType

_UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork")
_CLONE_NEWNET = 0x40000000  # sched.h
_SET_UP = """\
set -eu
mount -t tmpfs tmpfs /run
resolver=$(readlink -f /etc/resolv.conf)
mkdir -p "${resolver%/*}"
[ -e "$resolver" ] || : >"$resolver"
mount --bind "$1" "$resolver"
shift
while [ $# -gt 0 ]; do
    mount --bind "$1" "$2"
    shift 2
done
ip link set lo up
echo ready
exec cat
"""
_COMMAND_S = 60


@cache
def may_unshare() -> bool:
    """Return whether this process may create namespaces."""
    if os.geteuid() != 0:
        return False
    try:
        return subprocess.run([*_UNSHARE, "true"], capture_output=True, timeout=10, check=False).returncode == 0
    except OSError:
        return False


class Machine:
    """A machine.

    directory: an empty directory for its files. own: directories of the host that are private to the machine, each with
    the name of its replacement in `directory`. resolver: the address of its name server.
    """

    def __init__(self, directory: Path, own: Mapping[str, str], *, resolver: str) -> None:
        self.directory = directory
        self._started: list[subprocess.Popen[bytes]] = []
        arguments = [str(directory / "resolv.conf")]
        (directory / "resolv.conf").write_text(f"nameserver {resolver}\n")
        for place, name in own.items():
            (directory / name).mkdir()
            arguments += [str(directory / name), place]
        self._holder = subprocess.Popen(
            [*_UNSHARE, "sh", "-c", _SET_UP, "sh", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"ready\n":
            self.close()
            raise RuntimeError("the namespace could not be set up")

    def __enter__(self) -> "Machine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all of the machine's processes."""
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.close()
        for process in (self._holder, *self._started):
            process.wait(_COMMAND_S)
        self._holder.stdout.close()

    @property
    def process_id(self) -> int:
        """Return the id of a process in the machine's network."""
        return self._holder.pid

    @property
    def wrapper(self) -> list[str]:
        """Return the start of a command line that runs a program with the machine's network and files."""
        kinds = {"net": "net", "mount": "mnt"}
        return ["nsenter", *(f"--{kind}=/proc/{self.process_id}/ns/{name}" for kind, name in kinds.items()), "--"]

    def start(self, output: Path, *command: str) -> None:
        """Start a program. It ends with the machine."""
        enter = [*self.wrapper[:-1], f"--pid=/proc/{self.process_id}/ns/pid_for_children", "--"]
        with output.open("wb") as log:
            self._started.append(subprocess.Popen([*enter, *command], stdout=log, stderr=log))

    def run(self, *command: str) -> str:
        """Run a program until it ends, and return its standard output. It must succeed."""
        done = self.attempt(*command)
        assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def attempt(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a program until it ends, whatever its exit status is."""
        full: Sequence[str] = [*self.wrapper, *command]
        return subprocess.run(full, capture_output=True, text=True, timeout=_COMMAND_S, check=False)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Move this thread, and the processes that it starts, to the machine's network until the block ends."""
        there = Path(f"/proc/{self.process_id}/ns/net")
        with Path("/proc/thread-self/ns/net").open() as home, there.open() as other:
            _enter(other.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())


def connect(one: Machine, address: str, other: Machine, other_address: str) -> None:
    """Connect two machines by a cable. Each end has an IPv4 address of a /24."""
    peer = ("peer", "name", "cable", "netns", str(other.process_id))
    one.run("ip", "link", "add", "cable", "type", "veth", *peer)
    for machine, own in ((one, address), (other, other_address)):
        machine.run("ip", "address", "add", f"{own}/24", "dev", "cable")
        machine.run("ip", "link", "set", "cable", "up")


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns failed")
