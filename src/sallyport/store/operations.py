"""Local operations of the store: db.backup, db.restore, db.copy, db.migrate, db.rotate-key."""

from dataclasses import asdict
from pathlib import Path

from pydantic import Field

from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, LocalOperations
from sallyport.store.copies import Copies
from sallyport.store.rotation import Rotation


class OneFile(Arguments):
    """Arguments of a command that reads or writes one file. path: an absolute path."""

    path: Path


class Backup(OneFile):
    """Arguments of db.backup. path: the file to write, or a directory if `keep` is given. keep: the number of backups
    to keep in the directory."""

    keep: int | None = Field(default=None, ge=1, le=10_000)


class Restore(OneFile):
    """Arguments of db.restore. path: the backup. revoke_tokens: whether to revoke the access tokens of the backup."""

    revoke_tokens: bool = False


class Copy(Arguments):
    """Arguments of db.copy. url: the URL of an empty PostgreSQL database."""

    url: str


def local_operations(copies: Copies, rotation: Rotation) -> LocalOperations:
    """Return the local operations of the store by name."""
    local = LocalOperations()

    @local("db.backup")
    async def backup(wanted: Backup) -> JSON:
        if wanted.keep is None:
            return {"path": str(wanted.path), "size": await copies.backup(wanted.path), "deleted": 0}
        path, size, deleted = await copies.backup_into(wanted.path, wanted.keep)
        return {"path": str(path), "size": size, "deleted": len(deleted)}

    @local("db.restore")
    async def restore(wanted: Restore) -> JSON:
        await copies.restore(wanted.path, revoke_tokens=wanted.revoke_tokens)
        return None

    @local("db.copy")
    async def copy(wanted: Copy) -> JSON:
        return {"rows": await copies.copy_to(wanted.url)}

    @local("db.migrate")
    async def migrate() -> JSON:
        # opening the store has already migrated the database
        return "the database has the schema of this program"

    @local("db.rotate-key")
    async def rotate_key() -> JSON:
        return asdict(await rotation.rotate())

    return local
