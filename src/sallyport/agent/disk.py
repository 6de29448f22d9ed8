"""Files that are there as a whole or not at all, whatever crashes: written beside, synced, renamed."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sallyport.base.errors import ConfigError, Locked


def write(path: Path, octets: bytes, *, mode: int = 0o600, like: Path | None = None) -> None:
    """Put a file in the place of what is there. like: a file whose owner it gets. ConfigError: it is as it was."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(descriptor, mode)
                if like is not None:
                    owner = like.stat()
                    if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                        os.fchown(descriptor, owner.st_uid, owner.st_gid)
                file.write(octets)
                file.flush()
                os.fsync(descriptor)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync(path.parent)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def sync(directory: Path) -> None:
    """Have on disk what was renamed in a directory. OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
