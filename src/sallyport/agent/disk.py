"""What an agent keeps on its host: its state, and that it is alone with it."""

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
    """Be the only agent that keeps its state in a directory, which is made if it is new. Locked; ConfigError."""
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
    """An agent's place, in JSON: what it can find again by itself if the file is lost."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[str, object]:
        """What was saved last; nothing where there is no file, or none that can be read as such."""
        try:
            value = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def save(self, value: Mapping[str, object]) -> None:
        """Keep this; it is on disk when this returns. ConfigError."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(self._path, json.dumps(value).encode() + b"\n")
