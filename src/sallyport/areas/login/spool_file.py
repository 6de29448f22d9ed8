"""The file of spooled records: a small SQLite database.

SQLite commits each write to the disk before `append` returns. After a crash in the middle of a write, it restores the
state before that write; no answer was sent for those records. A new file has a new name, so a sequence number is never
used twice with the same name.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

import structlog

from sallyport.host import disk

_STATE: Final = (
    "select name, (select count(*) from records), (select quick_check from pragma_quick_check(1)), "
    "page_count * page_size from spool, pragma_page_count, pragma_page_size"
)

log = structlog.get_logger()


class DamagedSpoolError(OSError):
    """The error for a file that is no database, or a damaged one."""


@dataclass(frozen=True, slots=True)
class SpooledRecord:
    """A record in the file."""

    sequence: int
    payload: bytes


def paths_of(directory: Path, worker: str, workers: int) -> tuple[Path, list[Path]]:
    """Return the path of a worker's file, and the paths of left files, whose workers do not run any more. Only the
    first worker gets left files.

    worker: the number of the worker, or empty if there is only one process. workers: the number of workers that run.
    """
    own = directory / f"accounting{worker and '-'}{worker}.spool"
    running = {own, *(directory / f"accounting-{each}.spool" for each in range(1, workers + 1) if worker)}
    return own, sorted({*directory.glob("accounting*.spool")} - running) if worker in {"", "1"} else []


class SpoolFile:
    """The file of spooled records. It does not exist while there are no records. Only one thread may use it at a time.

    name: the random name in the file. records: the number of records that were not removed. size: the size of the file,
    in octets.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = ""
        self.records = 0
        self.size = 0
        self._removed = 0  # sequence number of the last removed record
        self._appended = 0

    def open(self) -> None:
        """Find the records that an earlier process has left. Rename a damaged file. Raises OSError."""
        if not self._path.exists():
            return
        name, records, size = "", 0, 0
        try:
            with self._transaction() as database:
                if database.execute("select 1 from sqlite_schema").fetchone():
                    name, records, check, size = database.execute(_STATE).fetchone()
                    if check != "ok" or size != self._path.stat().st_size:
                        raise DamagedSpoolError
        except DamagedSpoolError:
            log.error("accounting_spool_damaged", path=str(self._path))  # noqa: TRY400  the cause is outside
            self._path.rename(self._path.with_suffix(".damaged"))
            return
        self.name, self.size, self.records, self._appended = name, size, records, records
        if not records:
            self._delete()  # the process crashed before the first records were written

    def append(self, payloads: Sequence[bytes]) -> None:
        """Write records to the disk, and wait until they are there. If it raises OSError, none of them was added."""
        name = self.name or token_hex(16)
        if not self.name:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, disk.PRIVATE))
        with self._transaction() as database:
            if not self.name:
                database.execute("create table if not exists spool (name text not null)")
                database.execute("create table if not exists records (sequence integer primary key, payload blob)")
                database.execute("delete from spool")
                database.execute("insert into spool values (?)", [name])
            # A write that failed at its end may be on disk all the same. It got no answer.
            database.execute("delete from records where sequence > ?", [self._appended])
            database.executemany("insert into records values (?, ?)", enumerate(payloads, self._appended + 1))
        self.name = name
        self._appended += len(payloads)
        self.records += len(payloads)
        self.size = self._path.stat().st_size

    def read(self, most: int) -> list[SpooledRecord]:
        """Return the next records, at most `most`. Raises OSError."""
        sql = "select sequence, payload from records where sequence > ? order by sequence limit ?"
        with self._transaction() as database:
            return [SpooledRecord(*row) for row in database.execute(sql, [self._removed, most])]

    def remove(self, records: Sequence[SpooledRecord]) -> bool:
        """Remove records that `read` has returned. Return whether the spool is empty now. Raises OSError.

        The file is deleted with the last record, and not changed before, because a full disk must not stop it.
        """
        self._removed = records[-1].sequence
        self.records -= len(records)
        if self.records:
            return False
        self._delete()
        return True

    def _delete(self) -> None:
        self._path.unlink()
        disk.sync(self._path.parent)
        self.name, self.size, self._removed, self._appended = "", 0, 0, 0

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction. Commit at the end, and wait until the commit is on disk. Raises
        OSError."""
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None)) as database:
                database.execute("pragma synchronous = extra")  # the journal's deletion is on disk too
                database.execute("begin")
                yield database
                database.execute("commit")
        except sqlite3.Error as error:
            is_damaged = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
            raise (DamagedSpoolError if is_damaged else OSError)(f"{self._path}: {error}") from error
