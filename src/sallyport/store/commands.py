"""The commands of the store: db.backup, db.restore, db.migrate, db.rotate-key."""

from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from pydantic import Field

from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON
from sallyport.store.rotation import Rotation


class Copies(Protocol):
    """A store that supports backup and restore."""

    async def backup(self, target: Path) -> int:
        """Write a consistent copy and return its size in octets. StoreError."""

    async def backup_into(self, directory: Path, keep: int) -> tuple[Path, int, list[Path]]:
        """Write a copy and delete all but the newest `keep`; return its path, its size and the deleted ones."""

    async def restore(self, source: Path, *, revoke_tokens: bool = False) -> None:
        """Replace the whole store by a copy. StoreError, SchemaError: nothing was changed."""


class OneFile(Arguments):
    """An absolute path."""

    path: Path


class Backup(OneFile):
    """keep: the number of backups to keep; the path is then a directory."""

    keep: int | None = Field(default=None, ge=1, le=10_000)


class Restore(OneFile):
    """revoke_tokens: revoke the access tokens of the backup."""

    revoke_tokens: bool = False


def commands(copies: Copies, rotation: Rotation) -> dict[str, Command]:
    """The commands of the store by name."""

    async def backup(wanted: Backup) -> JSON:
        if wanted.keep is None:
            return {"path": str(wanted.path), "size": await copies.backup(wanted.path), "deleted": 0}
        path, size, deleted = await copies.backup_into(wanted.path, wanted.keep)
        return {"path": str(path), "size": size, "deleted": len(deleted)}

    async def restore(wanted: Restore) -> JSON:
        await copies.restore(wanted.path, revoke_tokens=wanted.revoke_tokens)
        return None

    async def migrate(_: Arguments) -> JSON:
        return "the database has the schema of this program"  # opening it has seen to that

    async def rotate_key(_: Arguments) -> JSON:
        return asdict(await rotation.rotate())

    return {
        "db.backup": command(Backup, backup),
        "db.restore": command(Restore, restore),
        "db.migrate": command(Arguments, migrate),
        "db.rotate-key": command(Arguments, rotate_key),
    }
