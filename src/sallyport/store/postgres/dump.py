"""Backups by pg_dump in its custom format (`pg_dump --format=custom`).

A restore takes only the rows from the file. pg_restore decodes the file, and a transaction of this program copies the
rows into the existing tables. So a restore changes no definition of a table, other nodes may run meanwhile, and
statements in the file are not executed. The tables about nodes, such as heartbeats and leases, are not restored.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import IO, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sallyport.base.errors import StoreError
from sallyport.store.postgres.connection import Connection
from sallyport.store.postgres.rows import PostgresRows
from sallyport.store.transfer import Table, tables

_COPY: Final = re.compile(rb"COPY (?:[\w\"]+\.)?(\w+) \((.*)\) FROM stdin;\n")
_NUMBER: Final = re.compile(rb"SELECT pg_catalog\.setval\('(?:[\w\"]+\.)?(\w+)', (\d+), (true|false)\);\n")
_ENTRY: Final = re.compile(r"\d+; \d+ \d+ (TABLE DATA|SEQUENCE SET) \S+ (\S+) ")
_END: Final = b"\\.\n"
_STEPS: Final = "schema_steps"
CHUNK: Final = 1 << 18


def write_dump(url: str, path: Path) -> None:
    """Write a backup with pg_dump. The command line of pg_dump does not contain the password. Raises StoreError."""
    given = conninfo_to_dict(url)
    password = given.pop("password", None)
    if "sslpassword" in given:
        raise StoreError("pg_dump cannot take sslpassword from the URL of the database: use a key without a passphrase")
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    command = [_program("pg_dump"), "--format=custom", f"--dbname={make_conninfo('', **given)}", f"--file={path}"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603  no shell
    if done.returncode != 0:
        raise _failure("pg_dump", done.stderr)


def load_dump(connection: Connection, path: Path, steps: Sequence[str]) -> None:
    """Replace all rows by the rows of a file, in the current transaction of the connection.

    steps: the names of the schema's steps; the file must have the same steps. Raises StoreError if the file is damaged
    or has another schema.
    """
    wanted = tables()
    data, numbers = _entries(path)
    if missing := [name for name in (_STEPS, *(each.name for each in wanted)) if name not in data]:
        raise StoreError(f"{path} is not a backup of Sallyport: it has no table {missing[0]}")
    _check_steps(path, data[_STEPS], steps)
    by_name = {each.name: each for each in wanted}
    sequences = {f"{each.name}_id_seq": each for each in wanted}
    target = PostgresRows(connection)
    target.clear(wanted)
    entries = [*(data[each.name] for each in wanted), *(numbers[name] for name in sequences if name in numbers)]
    with _restored(path, entries) as output:
        for line in output:
            if copy := _COPY.fullmatch(line):
                _copy(connection, output, by_name[copy[1].decode()], copy[2].decode())
            elif number := _NUMBER.fullmatch(line):
                was_used = number[3] == b"true"
                target.set_last_number(sequences[number[1].decode()], int(number[2]) if was_used else 0)
    target.enable(wanted)


def _copy(connection: Connection, output: IO[bytes], table: Table, listed: str) -> None:
    """Copy the rows of a table from the output of pg_restore, which is in PostgreSQL's text format."""
    columns = [each.strip().strip('"') for each in listed.split(",")]
    if not set(columns) <= set(table.columns):
        raise StoreError(
            f"the backup has another schema: its table {table.name} has columns that this version does not know"
        )
    into = f"copy {table.name} ({', '.join(columns)}) from stdin"
    with connection.cursor() as cursor, cursor.copy(into.encode()) as copy:
        waiting = bytearray()
        for line in output:
            if line == _END:
                break
            waiting += line
            if len(waiting) > CHUNK:
                copy.write(bytes(waiting))
                waiting.clear()
        else:
            raise StoreError(f"the backup is damaged: the rows of table {table.name} are incomplete")
        copy.write(bytes(waiting))


def _entries(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Read the file's table of contents. Return two dicts of its lines. The first has, for each table, the line about
    its rows. The second has, for each sequence, the line about its last number. Raises StoreError."""
    done = subprocess.run([_program("pg_restore"), "--list", str(path)], capture_output=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise _failure("pg_restore", done.stderr)
    found: dict[str, dict[str, str]] = {"TABLE DATA": {}, "SEQUENCE SET": {}}
    for line in done.stdout.decode(errors="replace").splitlines():
        if entry := _ENTRY.match(line):
            found[entry[1]][entry[2]] = line
    return found["TABLE DATA"], found["SEQUENCE SET"]


def _check_steps(path: Path, entry: str, steps: Sequence[str]) -> None:
    with _restored(path, [entry]) as output:
        lines = output.read().decode(errors="replace").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("COPY ")) + 1
    found = sorted(line.split("\t")[0] for line in lines[start : lines.index("\\.")])
    if found != sorted(steps):
        raise StoreError(
            f"{path} has the schema of another version ({', '.join(found)}): restore it with the version that made it, "
            "then upgrade; a backup that ends in .db can be restored by later versions too"
        )


@contextmanager
def _restored(path: Path, entries: Sequence[str]) -> Iterator[IO[bytes]]:
    """Yield the output of pg_restore: the SQL of the given entries. Raises StoreError at the end if pg_restore has
    failed."""
    with NamedTemporaryFile("w", suffix=".list") as wanted, TemporaryFile() as errors:
        wanted.write("".join(f"{entry}\n" for entry in entries))
        wanted.flush()
        command = [_program("pg_restore"), "--data-only", f"--use-list={wanted.name}", "--file=-", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:  # noqa: S603  no shell
            assert process.stdout is not None  # noqa: S101
            try:
                yield process.stdout
                process.stdout.read()
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            errors.seek(0)
            raise _failure("pg_restore", errors.read())


def _failure(program: str, errors: bytes) -> StoreError:
    """Return an error with the first line that a program has written to standard error: it names the cause."""
    text = errors.decode(errors="replace").strip().partition("\n")[0]
    return StoreError(text or f"{program} has failed")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise StoreError(
            f"{name} is not installed: install PostgreSQL's client programs (Debian: postgresql-client), or use a "
            "backup that ends in .db"
        )
    return found
