"""`sallyport db`: the database as a whole."""

import os
from pathlib import Path

import click

from sallyport.base.command import CommandLine
from sallyport.base.config import POSTGRES
from sallyport.base.errors import StartError
from sallyport.base.options import Group, InputFile
from sallyport.base.setting_values import MASTER_KEY
from sallyport.base.text import counted
from sallyport.store.directory import TOKEN_FILE
from sallyport.store.vault import FILE

CONFIRM = "Everything in the present database is replaced. Go on?"
CONFIRM_TOKENS = "Tokens that were revoked since the backup would count again. Revoke all tokens that are in it?"


@click.group(cls=Group)
def db() -> None:
    """The database as a whole: schema, backup, restore, and the key of its secrets."""


@db.command()
@click.pass_obj
def migrate(line: CommandLine) -> None:
    """Bring the database to the schema of this program, as every start does."""
    line.print(str(line.call("db.migrate")))
    token = line.settings().data_dir / TOKEN_FILE
    if token.exists():
        line.note(f"the access token of the first start is in {token}")


@db.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--keep", type=click.IntRange(min=1, max=10_000), help="Number of backups to keep; FILE is then a directory."
)
@click.pass_obj
def backup(line: CommandLine, *, file: Path, keep: int | None) -> None:
    """Write a consistent copy of the database, while it is in use; a file of that name is replaced.

    A copy is a SQLite file, whatever the database. If FILE ends in .dump, pg_dump writes it; only PostgreSQL has such
    backups, and a restore needs the same version of Sallyport.

    With --keep, FILE is a directory: the copy gets its own name in it, and all copies except the newest are deleted.
    """
    if keep is not None and not file.exists():
        raise click.UsageError(f"the directory {file} does not exist: make it first")
    if file.is_dir() is (keep is None):
        raise click.UsageError(
            "FILE is a directory: give a file, or --keep" if keep is None else "--keep needs a directory as FILE"
        )
    made = line.row("db.backup", path=str(file.absolute()), keep=keep)
    line.print(f"{file if keep is None else made['path']}: {counted(made['size'], 'octet')}")
    if made["deleted"]:
        line.print(f"{counted(made['deleted'], 'older backup')} deleted")
    line.print(f"The master key is not in it: keep {_master_key(line)} as well, apart from the backup.")


@db.command()
@click.argument("file", type=InputFile())
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--revoke-tokens", is_flag=True, help="Revoke all access tokens and enrolment keys of the backup.")
@click.pass_obj
def restore(line: CommandLine, *, file: Path, yes: bool, revoke_tokens: bool) -> None:
    """Replace the database by a backup, at once. The master key must be the one of the backup.

    Pending prompts, enrolments and all one-time codes up to now become void. A token that was revoked after the backup
    would be valid again: --revoke-tokens revokes all tokens.
    """
    if not yes:
        if not click.confirm(CONFIRM, err=True):
            raise StartError("nothing was changed")
        revoke_tokens = revoke_tokens or click.confirm(CONFIRM_TOKENS, err=True)
    line.call("db.restore", path=str(file.absolute()), revoke_tokens=revoke_tokens)
    line.note(f"restored from {file}")
    if revoke_tokens:
        line.note("no access token counts any more: sallyport token create")


@db.command()
@click.argument("target", metavar="URL-OR-FILE")
@click.pass_obj
def copy(line: CommandLine, *, target: str) -> None:
    """Copy the whole installation to another database: to PostgreSQL, or to a file.

    URL is `postgresql://USER@HOST/NAME` of an empty database; the password comes from PGPASSFILE. Counts and checksums
    of all tables are compared. An interruption leaves the target empty. Stop the service first; otherwise its later
    writes are missing in the copy.
    """
    if "://" in target:
        if not target.startswith(POSTGRES):
            raise click.BadParameter(f"a file, or a URL that begins with {POSTGRES}", param_hint="URL-OR-FILE")
        rows = line.row("db.copy", url=target)["rows"]
        line.print(f"{counted(rows, 'row')} copied; now set `database` to the URL, and start the service")
        return
    path = Path(target)
    if path.exists():
        raise click.BadParameter(f"{path} exists: name a new file", param_hint="URL-OR-FILE")
    made = line.row("db.backup", path=str(path.absolute()), keep=None)
    line.print(f"{path}: {counted(made['size'], 'octet')}; now set `database` to the file, and start the service")


@db.command("rotate-key")
@click.pass_obj
def rotate_key(line: CommandLine) -> None:
    """Seal every secret of the database under a new master key, while it is in use.

    After an interruption, the same command continues.
    """
    done = line.row("db.rotate-key")
    line.print(f"{counted(done['sealed'], 'secret')} sealed under version {done['version']} of the master key")
    if done["old_file"]:
        line.note(f"backups made until now open with the key before: keep {done['old_file']} with them, or delete it")
    else:
        line.note(f"leave the other versions out of {MASTER_KEY} from the next start on, but keep them for old backups")


def _master_key(line: CommandLine) -> str:
    path = line.settings().data_dir / FILE
    if MASTER_KEY in os.environ or not path.exists():
        return f"the value of {MASTER_KEY}"
    return str(path.absolute())
