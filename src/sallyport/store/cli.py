"""`sallyport db`: the database as a whole."""

import os
from pathlib import Path

import click

from sallyport.base.command import CommandLine
from sallyport.base.config import MASTER_KEY
from sallyport.base.errors import StartError
from sallyport.store.vault import FILE

CONFIRM = "Everything in the present database is replaced. Go on?"


@click.group()
def db() -> None:
    """The database as a whole: schema, backup, restore."""


@db.command()
@click.pass_obj
def migrate(line: CommandLine) -> None:
    """Bring the database to the schema of this program, as every start does."""
    line.print(str(line.call("db.migrate")))


@db.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def backup(line: CommandLine, *, file: Path) -> None:
    """Write a consistent copy of the database, while it is in use; a file of that name is replaced."""
    size = line.call("db.backup", path=str(file.absolute()))
    line.print(f"{file}: {size} octets")
    line.print(f"The master key is not in it: keep {_master_key(line)} as well, apart from the backup.")


@db.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def restore(line: CommandLine, *, file: Path, yes: bool) -> None:
    """Replace the database by a backup; it holds at once. The master key must be the one that it was made with."""
    if not yes and not click.confirm(CONFIRM, err=True):
        raise StartError("nothing was changed")
    line.call("db.restore", path=str(file.absolute()))
    line.note(f"restored from {file}")


def _master_key(line: CommandLine) -> str:
    path = line.settings().data_dir / FILE
    if MASTER_KEY in os.environ or not path.exists():
        return f"the value of {MASTER_KEY}"
    return str(path.absolute())
