"""The exchange of files between root's command and the service, which runs as another user.

The unit of the service may give the service a private /tmp and read-only directories. So the service may be unable to
read a file of root, and a backup in the private /tmp would be lost. Therefore root's command copies the file through a
temporary directory in the data directory.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from sallyport.base.errors import StartError
from sallyport.base.wire import JSON, Row
from sallyport.host import disk
from sallyport.host.owner import as_owner
from sallyport.settings.settings import Settings

BACKUP: Final = "db.backup"
READ: Final = frozenset({"db.restore", "directory.import_ldif"})
"""The commands that read a file. The path of the file is their argument `path`."""


def handed_over(ask: Callable[[Row], JSON], asked: Row, settings: Settings) -> JSON:
    """Run a request, and return the answer. Raises StartError.

    ask: the function that runs a request. asked: the request, which may name a file. If root uses the service of
    another user, the service may be unable to read or write this file. In this case the command copies the file. A file
    in the directories of the store needs no copy.
    """
    name, arguments = asked.get("command"), asked.get("arguments")
    if name not in {BACKUP, *READ} or not isinstance(arguments, dict) or "path" not in arguments:
        return ask(asked)
    path, keep = Path(str(arguments["path"])), arguments.get("keep")
    own = [directory.resolve() for directory in (settings.data_dir, settings.database_path.parent)]
    folder = path if keep else path.parent
    if os.geteuid() != 0 or not own[0].stat().st_uid or any(folder.resolve().is_relative_to(each) for each in own):
        return ask(asked)
    with _exchange(own[0]) as exchange:
        if name in READ:
            _copy(path, exchange / path.name, writer=own[0])
            return ask({**asked, "arguments": {**arguments, "path": str(exchange / path.name)}})
        made = ask({**asked, "arguments": {**arguments, "path": str(exchange if keep else exchange / path.name)}})
        (copy,) = exchange.iterdir()
        target = path / copy.name if keep else path
        _copy(copy, target, reader=own[0])
        deleted = _expired(target, keep) if isinstance(keep, int) else 0
        return {**(made if isinstance(made, dict) else {}), "path": str(target), "deleted": deleted}


@contextmanager
def _exchange(data_dir: Path) -> Iterator[Path]:
    """Yield a temporary directory in the data directory. Its owner is the owner of the data directory."""
    with as_owner(data_dir):
        exchange = Path(mkdtemp(prefix="exchange-", dir=data_dir))
    try:
        yield exchange
    finally:
        with as_owner(data_dir):
            shutil.rmtree(exchange)


def _copy(source: Path, target: Path, *, reader: Path | None = None, writer: Path | None = None) -> None:
    """Copy a file. Raises StartError.

    reader: a directory; the owner of this directory reads the source. writer: a directory; the owner of this directory
    writes the target. If a value is None, root reads or writes. The owner of the temporary directory could replace a
    file in it by a link. So root itself must not follow links there.
    """
    try:
        with as_owner(reader, reads_all=False) if reader else nullcontext():
            octets = source.open("rb")
        with octets:
            try:
                with as_owner(writer) if writer else nullcontext(), disk.replacing(target) as written:
                    shutil.copyfileobj(octets, written, 1 << 20)
            except OSError as error:
                raise StartError(f"{target}: {error.strerror}") from error
    except OSError as error:
        raise StartError(f"{source}: {error.strerror}") from error


def _expired(made: Path, keep: int) -> int:
    """Delete all backups beside a new one except the newest `keep`. Return the number of deleted backups. Raises
    StartError."""
    from sallyport.store.copies import expire

    try:
        with as_owner(made.parent):
            return len(expire(made, keep))
    except OSError as error:
        raise StartError(f"{made.parent}: older backups cannot be deleted: {error.strerror}") from error
