"""What the command line asks: db.backup, db.restore, db.migrate."""

from pathlib import Path
from typing import Protocol

from sallyport.base.command import JSON, Arguments, Command, command


class Copies(Protocol):
    """A store that can be copied and replaced as a whole."""

    async def backup(self, target: Path) -> int:
        """Write a consistent copy; its size in octets. StoreError."""

    async def restore(self, source: Path) -> None:
        """Replace everything with a copy. StoreError, SchemaError: nothing was changed."""


class OneFile(Arguments):
    """An absolute path."""

    path: Path


class Nothing(Arguments):
    """No arguments."""


def commands(copies: Copies) -> dict[str, Command]:
    """The commands of the store by name."""

    async def backup(wanted: OneFile) -> JSON:
        return await copies.backup(wanted.path)

    async def restore(wanted: OneFile) -> JSON:
        await copies.restore(wanted.path)
        return None

    async def migrate(_: Nothing) -> JSON:
        return "the database has the schema of this program"  # opening it has seen to that

    return {
        "db.backup": command(OneFile, backup),
        "db.restore": command(OneFile, restore),
        "db.migrate": command(Nothing, migrate),
    }
