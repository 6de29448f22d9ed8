"""A process that measures something while a block of a test runs."""

import multiprocessing
from collections.abc import Callable
from typing import Generic, Self, TypeVar

T = TypeVar("T")
_forks = multiprocessing.get_context("forkserver")


class Measuring(Generic[T]):
    """A process of its own, so that the test does not delay what it measures. After the block, `results` are available.

    measure: runs in the process. It gets a pipe and the arguments, sends "ready", measures until the pipe has a message
    and then sends a list of results.
    """

    def __init__(self, measure: Callable[..., None], *arguments: object) -> None:
        self._ours, theirs = _forks.Pipe()
        self._process = _forks.Process(target=measure, args=(theirs, *arguments), daemon=True)
        self.results: list[T] = []

    @property
    def process_id(self) -> int:
        """The id of the process that measures."""
        assert self._process.pid is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self._process.start()
        assert self._ours.recv() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ours.send("stop")
            self.results = self._ours.recv() if self._ours.poll(60) else []
        finally:
            self._process.kill()
            self._process.join()
