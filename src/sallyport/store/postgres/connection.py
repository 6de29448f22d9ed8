"""Opening of connections to PostgreSQL, and the conversion of values.

All whole numbers are sent as bigint, even small ones, so that each statement is prepared only once. PostgreSQL does not
accept NUL in a text, so NUL is replaced. Truth values are read as 1 and 0, and sums are read as whole numbers. So the
values are the same as with SQLite.
"""

import re
from typing import Final

import psycopg
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.types.numeric import Int8Dumper, IntLoader
from psycopg.types.string import StrBinaryDumper, StrDumper

from sallyport.base.errors import Contradiction, LimitReached, SallyportError, StoreError, StoreFull
from sallyport.settings.limits import DEFAULTS

Row = tuple[object, ...]
Connection = psycopg.Connection[Row]
Cursor = psycopg.Cursor[Row]

CONNECT_S: Final = 3
OLDEST: Final = 150_000
"""The oldest supported version, PostgreSQL 15, in the form of libpq's version numbers."""
PREPARED: Final = 300
"""Maximum number of prepared statements of a connection. The least recently used statement is dropped."""
POOLER: Final = (
    "connect to PostgreSQL itself, or set pool_mode = session and ignore_startup_parameters = options in PgBouncer"
)
_SETTINGS: Final = {
    "application_name": "sallyport",
    "connect_timeout": str(CONNECT_S),
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "client_encoding": "utf8",
    "options": "-c statement_timeout=30s -c lock_timeout=20s -c idle_in_transaction_session_timeout=60s",
}
_DISK_FULL: Final = "53100"
_AT_FAULT: Final = ("22", "23")  # the error classes of invalid values and of violated constraints
_PLAIN: Final = re.compile(r'[^\0"\\]*').fullmatch
_RAISED: Final = "P0001"  # raised by one of our triggers


class _TextDumper(StrDumper):
    """A psycopg dumper for texts. It replaces NUL, because PostgreSQL does not accept NUL."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _BinaryTextDumper(StrBinaryDumper):
    """A psycopg dumper for texts in COPY. It replaces NUL."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _ListDumper(Dumper):
    """A psycopg dumper for the values of a column. Each statement casts its arrays, so the type is not sent. psycopg's
    own dumper takes three times as long, because it looks up a dumper for each value."""

    oid = 0

    def dump(self, obj: list[object]) -> Buffer | None:
        kinds = set(map(type, obj))
        if kinds == {int}:
            return f"{{{','.join(map(str, obj))}}}".encode()
        return f"{{{','.join(map(_literal, obj))}}}".encode()


def _literal(value: object) -> str:
    """Return a value in the text form of an array."""
    if isinstance(value, str):
        if not _PLAIN(value):
            value = value.replace("\0", "\ufffd").replace("\\", "\\\\").replace('"', '\\"')
        return f'"{value}"'
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    return "null" if value is None else str(int(value) if isinstance(value, bool) else value)


class _TruthDumper(Dumper):
    """A psycopg dumper for truth values. It sends the numbers 1 and 0."""

    oid = Int8Dumper.oid

    def dump(self, obj: bool) -> Buffer | None:
        return b"1" if obj else b"0"


class _TruthLoader(Loader):
    """A psycopg loader that reads a truth value as 1 or 0."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _NumberLoader(Loader):
    """A psycopg loader that reads a numeric value as an int or a float. PostgreSQL returns sums of whole numbers as
    numeric values."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return float(text) if b"." in text else int(text)


def connect(url: str) -> Connection:
    """Return a new connection. Raises StoreError if the server cannot be reached. The message contains no password."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
        connection = psycopg.connect(
            psycopg.conninfo.make_conninfo(
                url, **{name: each for name, each in _SETTINGS.items() if name not in given}
            ),
            autocommit=True,
            prepare_threshold=1,
            cursor_factory=psycopg.RawCursor,
        )
    except psycopg.Error as error:
        if "unsupported startup parameter" in str(error):
            raise StoreError(f"{_first_line(error)}: {POOLER}") from error
        raise as_ours(error) from error
    connection.prepared_max = PREPARED
    adapters = connection.adapters
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(list, _ListDumper)
    adapters.register_dumper(bool, _TruthDumper)
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(str, _BinaryTextDumper)
    adapters.register_loader("bool", _TruthLoader)
    adapters.register_loader("numeric", _NumberLoader)
    adapters.register_loader("int8", IntLoader)
    return connection


def as_ours(error: Exception) -> SallyportError:
    """Convert an error of PostgreSQL into an error of `base.errors`."""
    code, text = getattr(error, "sqlstate", None) or "", _first_line(error)
    if code == _RAISED:
        limit = text.removeprefix("limit: ")
        return LimitReached(limit) if limit in DEFAULTS else Contradiction(text)
    if code.startswith(_AT_FAULT) or isinstance(error, psycopg.DataError):
        return Contradiction(text)
    return StoreFull(text) if code == _DISK_FULL else StoreError(text)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
