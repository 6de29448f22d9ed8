"""The helpers in C: the library that makes system calls fail, and the relay that loses datagrams."""

import json
import mmap
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.radload import COMPILER
from tests.ports import free_port
from tests.running_service import Ports

VARIABLE: Final = "SOAK_FAULTS"
WRITES, SYNCS, READS = 1, 2, 4
_LAYOUT: Final = struct.Struct("=qIIIIII")


def compiled(source: str, target: Path, *options: str) -> Path:
    """Compile a file of this folder, and return the program."""
    command = [*COMPILER, "-o", str(target), str(Path(__file__).with_name(source)), *options]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return target


def compile_shim(directory: Path) -> Path:
    """Compile the library for LD_PRELOAD."""
    return compiled("shim.c", directory / "shim.so", "-shared", "-fPIC", "-ldl")


class Shim:
    """The faults of one service's system calls. They apply to processes that have `environ`, and that were started with
    the library preloaded."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir.with_name(f"{data_dir.name}.faults")
        self._path.write_bytes(bytes(_LAYOUT.size))
        self._path.chmod(0o666)  # for the user of PostgreSQL
        with self._path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _LAYOUT.size)

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables of the service."""
        return {VARIABLE: str(self._path)}

    @property
    def failed(self) -> int:
        """The number of calls that have failed."""
        return int(_LAYOUT.unpack(self._memory[:])[5])

    @property
    def stepped(self) -> int:
        """The number of times that were read while the clock was wrong."""
        return int(_LAYOUT.unpack(self._memory[:])[6])

    def fail(self, calls: int, error: int, every: int) -> None:
        """Let one of `every` calls fail. calls: a sum of WRITES, SYNCS and READS; 0: none. error: the errno."""
        self._put(8, struct.pack("=III", 0, error, every))
        self._put(8, struct.pack("=I", calls))

    def set_clock(self, seconds: float) -> None:
        """Let the service's clock of the day differ from the machine's by so many seconds."""
        self._put(0, struct.pack("=q", int(seconds * 1e9)))

    def _put(self, at: int, octets: bytes) -> None:
        self._memory[at : at + len(octets)] = octets


@dataclass(frozen=True, slots=True)
class Passed:
    """The datagrams that a relay has received, and what happened to some of them."""

    received: int = 0
    lost: int = 0
    repeated: int = 0
    delayed: int = 0

    @property
    def disturbed(self) -> int:
        """The number of datagrams that were lost, repeated or delayed."""
        return self.lost + self.repeated + self.delayed


class Relay:
    """A relay before the RADIUS ports of services. ports: of each service, the ports by which clients reach it."""

    def __init__(self, program: Path, services: Sequence[Ports], seed: int) -> None:
        self.ports = [Ports(each.http, free_port(), free_port()) for each in services]
        pairs = []
        for own, service in zip(self.ports, services, strict=True):
            pairs += [f"{own.auth}:{service.auth}", f"{own.acct}:{service.acct}"]
        self._process = subprocess.Popen(
            [program, str(seed), *pairs], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def disturb(self, loss: int = 0, repeat: int = 0, delay: int = 0) -> Passed:
        """Lose, repeat and delay so many of a thousand datagrams. Return what it has passed so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{loss} {repeat} {delay}\n")
        self._process.stdin.flush()
        return Passed(**json.loads(self._process.stdout.readline()))

    def close(self) -> Passed:
        """End the relay, and return what it has passed."""
        output, _ = self._process.communicate(timeout=30)
        return Passed(**json.loads(output))
