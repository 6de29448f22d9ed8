"""Backup and restore of the store while the service runs.

With both engines, a backup is a SQLite database. A restore checks and migrates a copy of the backup before the copy
replaces the store. If the name of a backup ends in DUMP, the backup is a dump by pg_dump instead. Only PostgreSQL has
dumps.
"""

import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import structlog
import trio
from sqlite_utils import Database

from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import ConfigError, SecretError, StoreError
from sallyport.host import disk
from sallyport.store import audit
from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.migrations import migrate
from sallyport.store.model import Engine, Tx
from sallyport.store.postgres import check_driver

PREFIX: Final = "sallyport-"
"""Prefix of the names of backups in a directory. Files without this prefix are never deleted."""
DUMP: Final = ".dump"
_DUMP_MARK: Final = b"PGDMP"
"""The first octets of a file that pg_dump has written."""
PART: Final = ".part"
"""Suffix of the name of an unfinished copy."""

log = structlog.get_logger()


class Copies:
    """Backups and restores of one store. place: the path of the store's file; with PostgreSQL, the path that the file
    would have.

    check: decrypts the secrets of a copy before the copy becomes the store; raises SecretError. void: invalidates
    values of a copy, such as one-time codes, so that the restore does not make them valid again; on request, it
    also revokes all tokens. replaced: called after a restore to drop all caches; it cannot write. completed: called
    when the store accepts writes again. backed_up: called with the time of the last backup, in microseconds.
    worker: the number of this worker if several workers use the same `place`; otherwise empty.

    Backups and restores are recorded in the audit trail. A restore replaces the rows of every tenant, so each tenant's
    trail gets an entry. The entry is written into the copy before the copy replaces the store, so that a crash cannot
    lose the entry.
    """

    def __init__(
        self,
        store: Engine,
        place: Path,
        *,
        check: Callable[[Tx], None],
        void: Callable[[Tx, bool], None] = lambda _tx, _revoke_tokens: None,
        replaced: Callable[[], Awaitable[None]],
        completed: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
        backed_up: Callable[[int], None],
        clock: Clock = now_us,
        worker: str = "",
    ) -> None:
        self._store = store
        self._place = place
        self._check = check
        self._void = void
        self._replaced = replaced
        self._completed = completed
        self._backed_up = backed_up
        self._clock = clock
        self._worker = worker
        self._one_at_a_time = trio.Lock()

    async def backup(self, target: Path) -> int:
        """Write a consistent backup to a temporary file, sync the file, and rename it to `target`. Return the size of
        the backup in octets.

        A separate connection reads the rows, so logins continue. The backup does not contain the master key. Raises
        StoreError if `target` cannot be written or is one of the store's own files. If `target` exists already, it is
        then unchanged.
        """
        if target.resolve().parent == self._place.resolve().parent and target.name.startswith(self._own_names()):
            raise StoreError(f"{target} is a file of the running service: choose another file for the backup")
        at = self._clock()
        write = self._store.write_dump if target.suffix == DUMP else self._store.write_copy
        size = await trio.to_thread.run_sync(_copy, write, target)
        self._backed_up(at)
        try:
            await self._store.write(lambda tx: _record(tx, "store.backup", at, target))
        except StoreError as error:  # a backup must succeed even if the store is read-only
            log.warning("backup_not_audited", target=str(target), error=str(error))
        return size

    async def backup_into(self, folder: Path, keep: int) -> tuple[Path, int, list[Path]]:
        """Write a backup under a new name, and delete all backups except the newest `keep`.

        Return the path and the size of the new backup, and the deleted files. Unfinished backups of a crash are deleted
        too. Raises StoreError if the backup failed, or if an older backup cannot be deleted.
        """
        async with self._one_at_a_time:  # prevents `expire` from deleting a backup that is being written
            stamp = datetime.fromtimestamp(self._clock() / SECOND, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
            target = folder / f"{PREFIX}{stamp}.db"
            size = await self.backup(target)
            try:
                return target, size, await trio.to_thread.run_sync(expire, target, keep)
            except OSError as error:
                raise StoreError(f"{target} is complete; older backups cannot be deleted: {error.strerror}") from error

    async def copy_to(self, url: str) -> int:
        """Copy all rows of the store to an empty PostgreSQL database. Return the number of rows.

        Raises ConfigError if the extra `postgres` is not installed. Raises SchemaError or StoreError if the copy
        failed; the PostgreSQL database then stays empty.
        """
        check_driver()
        from sallyport.store.postgres.engine import load

        with TemporaryDirectory(dir=self._place.parent, prefix=f"{self._place.name}.copy-") as folder:
            path = Path(folder, "copy.db")
            await trio.to_thread.run_sync(_copy, self._store.write_copy, path)
            return await trio.to_thread.run_sync(load, url, path)

    def clear(self) -> None:
        """Delete the temporary copy that an interrupted restore of this process has left. The copies of other workers
        stay, because a worker may be using its own copy."""
        for end in ("", "-wal", "-shm", "-journal"):
            self._checked.with_name(self._checked.name + end).unlink(missing_ok=True)

    @property
    def _checked(self) -> Path:
        """Return the path at which a backup is checked before it becomes the store."""
        return self._place.with_name(f"{self._place.name}.restore{self._worker and '-'}{self._worker}")

    async def remember(self) -> None:
        """Read the time of the last backup, and pass it to `backed_up`. Raises StoreError."""
        if at := await self.last_backup():
            self._backed_up(at)

    async def last_backup(self) -> int | None:
        """Read the time of the last backup of any process from the audit trail, in microseconds. Return None if there
        is no backup. Raises StoreError."""
        sql = "select max(at) from audit_trail where tenant_id = :installation and action = 'store.backup'"
        return await self._store.read(lambda tx: tx.value(int, sql, installation=audit.INSTALLATION))

    def _own_names(self) -> tuple[str, ...]:
        return (self._place.name, "master.key", "lock", "control.sock", "admin.token")

    async def restore(self, source: Path, *, revoke_tokens: bool = False) -> None:
        """Replace the store by a backup, migrated to this program's schema.

        Pending logins of the backup and one-time codes up to now become void. If `revoke_tokens` is true, all access
        tokens of the backup become void too. Raises StoreError or SchemaError if the backup is damaged, is not a backup
        of Sallyport, or was made with another master key. The store then stays as it was.
        """

        def complete(tx: Tx) -> None:
            self._void(tx, revoke_tokens)
            self._check(tx)
            _record_restore(tx, self._clock(), source)

        def check() -> None:
            _take(source, self._checked)
            with closing(sqlite3.connect(self._checked, isolation_level=None)) as copy:
                copy.execute("begin")
                complete(SqliteTx(copy))
                copy.execute("commit")

        async with self._one_at_a_time:  # the copy of another restore has the same path
            try:
                if await trio.to_thread.run_sync(_is_dump, source):
                    await self._store.replace_by_dump(source, complete)
                else:
                    await trio.to_thread.run_sync(check)
                    await self._store.replace(self._checked)
            except SecretError as error:
                raise StoreError(f"{source} was made with another master key: {error}") from error
            except ConfigError as error:
                raise StoreError(f"{source} cannot be checked: {error}") from error
            except (OSError, sqlite3.Error) as error:
                raise StoreError(f"{source}: {error}") from error
            finally:
                self.clear()
        try:
            await self._replaced()
        finally:
            self._store.acknowledge()
        await self._completed()


def _record(tx: Tx, action: str, at: int, file: Path) -> None:
    audit.record(tx, action, at=at, tenant_id=audit.INSTALLATION, target=f"backup {file}")


def _record_restore(tx: Tx, at: int, source: Path) -> None:
    """Record the restore in each tenant's audit trail. Only the entry for the installation contains the file's name,
    because tenants must not see the name."""
    _record(tx, "store.restore", at, source)
    for tenant_id in tx.all(_id, "select id from tenants order by id"):
        audit.record(tx, "store.restore", at=at, tenant_id=tenant_id, target="everything, from a backup")


def _id(*, id: int) -> int:
    return id


def _copy(write: Callable[[Path], None], target: Path) -> int:
    part = target.with_name(target.name + PART)
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        write(part)
        disk.sync(part)
        part.replace(target)
        disk.sync(target.parent)
        return target.stat().st_size
    except (OSError, sqlite3.Error) as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"{target}: {getattr(error, 'strerror', None) or error}") from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def expire(made: Path, keep: int) -> list[Path]:
    """Delete all backups beside a new one but the newest `keep`, and all unfinished backups. Return the deleted files.

    A backup whose name has a later time was made while the clock was ahead. It counts as the oldest.
    """
    backups = sorted(made.parent.glob(f"{PREFIX}*Z.db"), key=lambda each: (each.name <= made.name, each.name))
    old = backups[:-keep] + sorted(made.parent.glob(f"{PREFIX}*Z.db{PART}*"))
    for each in old:
        each.unlink()
    return old


def _is_dump(source: Path) -> bool:
    with source.open("rb") as file:
        return file.read(len(_DUMP_MARK)) == _DUMP_MARK


def _take(source: Path, checked: Path) -> None:
    """Copy a backup to `checked`, then check and migrate the copy. The backup itself is not changed."""
    checked.unlink(missing_ok=True)
    with (
        closing(open_connection(source, read_only=True)) as original,
        closing(sqlite3.connect(checked, isolation_level=None)) as copy,
    ):
        if "config_version" not in Database(original, execute_plugins=False).table_names():
            raise StoreError(f"{source} is not a backup of Sallyport")
        original.backup(copy)
        if copy.execute("pragma quick_check").fetchone() != ("ok",):
            raise StoreError(f"{source} is damaged")
        migrate(copy, source)
