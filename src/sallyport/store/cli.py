"""`sallyport db`: the database as a whole."""

import os
from pathlib import Path

import click

from sallyport.base.errors import StartError
from sallyport.base.text import counted
from sallyport.settings.master_key import KEY_FILE, given_keys
from sallyport.settings.settings import POSTGRES
from sallyport.settings.values import MASTER_KEY
from sallyport.shell.command import CommandLine
from sallyport.shell.options import Group, InputFile, json_answer
from sallyport.store.data_folder import TOKEN_FILE

CONFIRM = "The backup will replace everything in the database. Go on?"
CONFIRM_TOKENS = "Tokens that were revoked after the backup will be valid again. Revoke all tokens of the backup?"


@click.group(cls=Group)
def db() -> None:
    """The database as a whole: schema, backup, restore, and the master key."""


@db.command()
@json_answer
@click.pass_obj
def migrate(line: CommandLine) -> None:
    """Upgrade the schema of the database to this version of Sallyport. Every start of the service does the same."""
    done = str(line.call("db.migrate"))
    line.print_answer({"message": done}, done)
    token = line.settings().data_dir / TOKEN_FILE
    if token.exists():
        line.note(f"the access token of the first start is in {token}")


@db.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--keep", type=click.IntRange(min=1, max=10_000), help="Number of backups to keep; requires a directory as FILE."
)
@click.option("--overwrite", is_flag=True, help="Replace an existing FILE.")
@json_answer
@click.pass_obj
def backup(line: CommandLine, *, file: Path, keep: int | None, overwrite: bool) -> None:
    """Write a consistent backup of the database while the service runs. An existing FILE is kept, unless --overwrite is
    given.

    A backup is a SQLite file, even if the database is PostgreSQL. If FILE ends in .dump, pg_dump writes the backup.
    This needs PostgreSQL, and only the same version of Sallyport can restore such a backup.

    With --keep, FILE is a directory. The backup gets a new name in the directory, and the oldest backups are deleted.
    """
    if keep is not None and not file.exists():
        raise click.UsageError(f"the directory {file} does not exist: make it first")
    if file.is_dir() is (keep is None):
        raise click.UsageError(
            "FILE is a directory: name a file, or add --keep" if keep is None else "--keep needs a directory as FILE"
        )
    if keep is None:
        _check_new(file, overwrite=overwrite)
    made = line.row("db.backup", path=str(file.absolute()), keep=keep)
    if keep is None:
        made["path"] = str(file)
    texts = [f"{made['path']}: {counted(made['size'], 'octet')}"]
    if made["deleted"]:
        texts.append(f"{counted(made['deleted'], 'older backup')} deleted")
    key = f"The backup does not contain the master key: keep {_master_key(line)} as well, in another place."
    line.print_answer(made, "\n".join([*texts, key]))


@db.command()
@click.argument("file", type=InputFile())
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--revoke-tokens", is_flag=True, help="Revoke all access tokens and enrolment keys of the backup.")
@click.pass_obj
def restore(line: CommandLine, *, file: Path, yes: bool, revoke_tokens: bool) -> None:
    """Replace the database by a backup at once. A restore needs the master key under which the backup was made.

    Pending prompts and enrolments become void, and so do all one-time codes from before the restore. Tokens that were
    revoked after the backup become valid again, unless --revoke-tokens revokes all tokens.
    """
    if not yes:
        if not click.confirm(CONFIRM, err=True):
            raise StartError("nothing was changed")
        revoke_tokens = revoke_tokens or click.confirm(CONFIRM_TOKENS, err=True)
    line.call("db.restore", path=str(file.absolute()), revoke_tokens=revoke_tokens)
    line.note(f"restored from {file}")
    if revoke_tokens:
        line.note("all access tokens are revoked: create a new one with `sallyport token create`")


@db.command()
@click.argument("target", metavar="URL-OR-FILE")
@json_answer
@click.pass_obj
def copy(line: CommandLine, *, target: str) -> None:
    """Copy the whole installation to another database: to PostgreSQL, or to a file.

    URL is the `postgresql://USER@HOST/NAME` of an empty database. The password is read from PGPASSFILE. After the copy,
    the counts and checksums of all tables are compared. If the copy is interrupted, the target stays empty. Stop the
    service first: later writes would be missing in the copy.
    """
    if "://" in target:
        if not target.startswith(POSTGRES):
            raise click.BadParameter(f"must be a file, or a URL that begins with {POSTGRES}", param_hint="URL-OR-FILE")
        copied = line.row("db.copy", url=target)
        text = f"{counted(copied['rows'], 'row')} copied; now set `database` to the URL, and start the service"
        line.print_answer(copied, text)
        return
    path = Path(target)
    if path.exists():
        raise click.BadParameter(f"{path} exists: name a new file", param_hint="URL-OR-FILE")
    made = line.row("db.backup", path=str(path.absolute()), keep=None)
    text = f"{path}: {counted(made['size'], 'octet')}; now set `database` to the file, and start the service"
    line.print_answer(made, text)


@db.command("rotate-key")
@json_answer
@click.pass_obj
def rotate_key(line: CommandLine) -> None:
    """Encrypt every secret of the database under a new master key, while the service runs.

    If the rotation was interrupted, run the same command again to complete it.
    """
    done = line.row("db.rotate-key")
    text = f"{counted(done['sealed'], 'secret')} encrypted under version {done['version']} of the master key"
    line.print_answer(done, text)
    if done["old_file"]:
        line.note(f"earlier backups need the old key: keep {done['old_file']} as long as you keep these backups")
    else:
        line.note(
            "before the next start, remove the older versions from where the service gets the master key; keep them "
            "for old backups"
        )


def _check_new(file: Path, *, overwrite: bool) -> None:
    """Raise UsageError if a file that does not exist may be meant as a directory. Raise StartError if the file exists
    and must not be replaced."""
    if not file.parent.is_dir():
        raise click.UsageError(f"the directory {file.parent} does not exist: make it first")
    if file.exists():
        if not overwrite:
            raise StartError(f"{file} exists: name another file, or replace it with --overwrite")
    elif not file.suffix:
        raise click.UsageError(
            f"there is no directory {file}: make it first, or name a file with an ending, such as {file}.db"
        )


def _master_key(line: CommandLine) -> str:
    path = line.settings().data_dir / KEY_FILE
    given = given_keys(os.environ, path.parent)
    if given is not None or not path.exists():
        return "the value of " + (given[0] if given else MASTER_KEY)
    return str(path.absolute())
