"""The program `sallyport` in a forked process, which saves the imports: most of the time of a start.

    process = Forked(("serve",), environ=..., directory=..., output=log, errors=log)
    process.terminate()
    assert process.wait(15.0) == 0
    done = completed(("domain", "list"), environ=..., directory=...)

The fork server of multiprocessing has imported the service and read its dictionaries, and forks a child for each start.
The child sets arguments, environment, directory and streams, and runs the program's `main`.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sallyport.cli.main import main
from sallyport.radius.dictionary import load

load()  # the fork server imports this module, so that its children have the dictionaries
if sys.modules["__main__"].__spec__ is None:  # of `python -m`, such as `make dist`, the program needs its own path
    vars(sys.modules["__main__"]).pop("__file__", None)  # else each child runs this file again, which imports pytest
PATIENCE_S = 300.0
"""Time for a command. A backup of a million logins takes minutes while everything else is busy."""
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(
    ["sallyport.cli.serve", "sallyport.service.serve", "sallyport.cli.connection", "tests.forked"]
)


class Forked:
    """The running program, with the methods of subprocess.Popen.

    output, errors: the files to which the program's output and errors are appended.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        directory: Path,
        output: Path,
        errors: Path,
        input: Path = Path(os.devnull),
    ) -> None:
        streams = (str(input), str(output), str(errors))
        self._process = _forks.Process(
            target=_run, args=(tuple(arguments), dict(environ), str(directory), streams), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit status, which is negative after a signal. Return None while the program is running."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the program and return the exit status. Raise subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if (status := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired("sallyport", timeout or 0.0)
        return status

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()


def completed(
    arguments: Sequence[str], *, environ: Mapping[str, str], directory: Path, input: bytes = b""
) -> "subprocess.CompletedProcess[str]":
    """Run the program and return its exit status and its output. input: the octets of its standard input."""
    with tempfile.TemporaryDirectory() as streams:
        given, output, errors = (Path(streams, name) for name in ("input", "output", "errors"))
        given.write_bytes(input)
        process = Forked(arguments, environ=environ, directory=directory, output=output, errors=errors, input=given)
        try:
            status = process.wait(PATIENCE_S)
        finally:
            process.kill()
        texts = (each.read_bytes().decode() for each in (output, errors))
        return subprocess.CompletedProcess(arguments, status, *texts)


def _run(arguments: Sequence[str], environ: Mapping[str, str], directory: str, streams: Sequence[str]) -> None:
    """Run the program in the child process."""
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(directory)
    for number, path in enumerate(streams):
        descriptor = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = os.fdopen(0)  # multiprocessing has closed it
    sys.argv = ["sallyport", *arguments]
    main()
