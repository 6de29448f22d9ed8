"""Proxies in a process of their own, so that the clients of the campaign do not delay what passes them."""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Lock
from typing import Final

from tests.nodes.proxy import Proxy

_forks: Final = multiprocessing.get_context("forkserver")


class _Gates:
    """The pipe to the process. Threads ask one after the other."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._asking = Lock()

    def ask(self, number: int, name: str) -> int:
        """Call a method of a proxy, or read one of its numbers."""
        with self._asking:
            self._pipe.send((number, name))
            return int(self._pipe.recv())


@dataclass(frozen=True, slots=True)
class Gate:
    """A proxy (`tests.nodes.proxy`) in the process. port: for clients."""

    number: int
    port: int
    gates: _Gates

    @property
    def refused(self) -> int:
        """The number of refused connections."""
        return self.gates.ask(self.number, "refused")

    def hold(self) -> None:
        """Pass nothing until `release`."""
        self.gates.ask(self.number, "hold")

    def cut(self) -> None:
        """End all connections, and new ones at once, until `release`."""
        self.gates.ask(self.number, "cut")

    def release(self) -> None:
        """Pass octets and accept connections again."""
        self.gates.ask(self.number, "release")


@contextmanager
def running_gates(targets: Sequence[int]) -> Iterator[list[Gate]]:
    """Yield a proxy for each port of this machine."""
    ours, theirs = _forks.Pipe()
    process = _forks.Process(target=_run, args=(theirs, targets), daemon=True)
    process.start()
    try:
        gates = _Gates(ours)
        yield [Gate(number, port, gates) for number, port in enumerate(ours.recv())]
    finally:
        process.kill()
        process.join()


def _run(pipe: Connection, targets: Sequence[int]) -> None:
    with ExitStack() as held:
        proxies = [held.enter_context(Proxy(target)) for target in targets]
        pipe.send([each.port for each in proxies])
        while True:
            number, name = pipe.recv()
            found = getattr(proxies[number], name)
            pipe.send(found() or 0 if callable(found) else found)
