"""The state of an agent on its host, and its lock."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sallyport.base.disk import write
from sallyport.base.errors import ConfigError, Locked


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Lock a state directory, which is created if it is missing. Locked: another agent runs; ConfigError."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(f"{directory}: another agent is at work") from None
        yield
    finally:
        os.close(descriptor)


class StateFile:
    """An agent's state in JSON; the agent can restore a lost one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[str, object]:
        """Return the saved state; empty if the file is missing or damaged."""
        try:
            value = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def save(self, value: Mapping[str, object]) -> None:
        """Save the state, which is on disk on return. ConfigError."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(self._path, json.dumps(value).encode() + b"\n")
