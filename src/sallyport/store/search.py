"""The search by parts of texts, and pages of what it finds. What is SQLite's alone stands here: another engine has a
search of its own.

Each text of a row is cut at each of its letters into a piece of five letters, or fewer at its end, and each piece
begins with the number of its domain. FTS5 keeps for each piece the rows that have it, and where. A text of five
letters or more is then a phrase of its pieces, one of four the beginning of a piece: any text is found without a
look at the rows, and nothing is read but what the domain itself has. FTS5's own pieces of three letters are too
common for what people look for most, an address: each of its pieces stands in every tenth device.

A text of up to three letters is the beginning of many pieces, whose rows would all have to be merged before the first
is known. So the parts of that length are kept in a second table, once for each row and without places: half of what
the pieces take, and any of them is found at its first row, and counted by one walk.

The tokenizer takes ASCII letters and digits and everything beyond ASCII for parts of a word. The other characters of
ASCII are written as capitals, which folded text has none of.

A page is chosen by ids, which every index gives in order, so that those of two indexes, or of an index and a search,
are merged without sorting; only then are its rows read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import TypeVar

from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.model import Tx, Value

T = TypeVar("T")

PIECE = 5
SHORT = 3
MERGED = 16
"""Pages of FTS5 that `SearchIndex.merge` writes: more than a transaction of milliseconds adds, on each level."""
Cut = tuple[int, str, str]
"""A row's id, its pieces and its shorter parts, as `cut` makes them."""
_CAPITALS = (*range(0x400, 0x430), *range(0x531, 0x556))  # Cyrillic, Armenian: two octets each
_WRITTEN = dict(zip((code for code in range(128) if not chr(code).isalnum()), _CAPITALS, strict=False))
_DOMAIN_ENDS = "\u0556"  # the last capital of Armenian, which stands for nothing else


class SearchIndex:
    """The search over one table, in the virtual tables `name`, of pieces, and `name_short`, of shorter parts."""

    def __init__(self, name: str) -> None:
        self._tables = name, f"{name}_short"

    def add(self, tx: Tx, domain_id: int, row_id: int, texts: Sequence[str]) -> None:
        """Make a row known by these folded texts."""
        self.add_all(tx, [cut(domain_id, row_id, texts)])

    def add_all(self, tx: Tx, rows: Sequence[Cut]) -> None:
        """Make rows known, at the end of a transaction that makes many: with each statement on another table FTS5
        writes what it has gathered to the file."""
        for place, table in enumerate(self._tables, 1):
            tx.insert(table, ("rowid", "pieces"), [(row[0], row[place]) for row in rows])

    def remove(self, tx: Tx, domain_id: int, row_id: int, texts: Sequence[str]) -> None:
        """Take a row out of the index. texts: those it was added by.

        The pieces must be those that `add` made: a change of how they are cut comes with a migration that makes all
        anew.
        """
        _, *made = cut(domain_id, row_id, texts)
        for table, each in zip(self._tables, made, strict=True):
            sql = f"insert into {table} ({table}, rowid, pieces) values ('delete', :id, :pieces)"  # noqa: S608
            tx.execute(sql, id=row_id, pieces=each)

    def merge(self, tx: Tx) -> None:
        """A small part of the merging that FTS5 does by itself in large ones, 30 ms at 30,000 rows: for an index that
        has `automerge` off, in each transaction that changes it."""
        for table in self._tables:
            tx.execute(f"insert into {table} ({table}, rank) values ('merge', :pages)", pages=MERGED)  # noqa: S608

    def find(self, domain_id: int, text: str) -> tuple[str, dict[str, Value]]:
        """SQL for the ids of a domain's rows that have this text, not empty, in one of theirs, whatever the case; and
        its parameters."""
        letters = fold(text).translate(_WRITTEN)
        if len(letters) < PIECE:
            match = f'"{domain_id}{_DOMAIN_ENDS}{letters}"{" *" * (len(letters) > SHORT)}'
        else:
            match = f'"{_pieces(domain_id, letters, len(letters) - PIECE + 1)}"'
        table = self._tables[len(letters) <= SHORT]
        return f"select rowid as id from {table} where {table} match :match", {"match": match}  # noqa: S608


def cut(domain_id: int, row_id: int, texts: Sequence[str]) -> Cut:
    """What the index keeps of a row by its folded texts."""
    return row_id, pieces(domain_id, texts), short_parts(domain_id, texts)


def pieces(domain_id: int, texts: Sequence[str]) -> str:
    """All pieces of a row's folded texts."""
    return " ".join(_pieces(domain_id, letters, len(letters)) for letters in _letters(texts))


def short_parts(domain_id: int, texts: Sequence[str]) -> str:
    """All parts of up to SHORT letters; to the index it makes no difference that some come twice."""
    parts = list[str]()
    for letters in _letters(texts):
        pairs = [*map(add, letters, letters[1:])]
        parts += (*letters, *pairs, *map(add, pairs, letters[2:]))
    return _written(domain_id, parts)


def _letters(texts: Sequence[str]) -> list[str]:
    return [text.translate(_WRITTEN) for text in dict.fromkeys(texts) if text]


def _pieces(domain_id: int, letters: str, count: int) -> str:
    return _written(domain_id, [letters[at : at + PIECE] for at in range(count)])


def _written(domain_id: int, parts: Sequence[str]) -> str:
    start = f"{domain_id}{_DOMAIN_ENDS}"
    return start + f" {start}".join(parts)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a domain's list that is asked for."""

    domain_id: int
    offset: int
    limit: int


def page(
    tx: Tx,
    shape: Callable[..., T],
    select: str,
    ids: str,
    stretch: Stretch,
    *,
    counter: str | None,
    **parameters: Value,
) -> tuple[list[T], int]:
    """One page of a list, ordered by id, and how many entries the list has.

    select: `select ... from ...` of the rows, which have an `id`. ids: SQL for the ids that are meant.
    counter: the total kept for the whole list; None for a part of it, which is counted where its end is not in sight.
    """
    rows = tx.all(
        shape,
        f"{select} where id in ({ids} order by id limit :limit offset :offset) order by id",
        limit=stretch.limit,
        offset=stretch.offset,
        **parameters,
    )
    if counter is not None:
        return rows, counters.total(tx, stretch.domain_id, counter)
    if len(rows) < stretch.limit and (rows or not stretch.offset):
        return rows, stretch.offset + len(rows)
    return rows, tx.value(int, f"select count(*) from ({ids}) as found", **parameters) or 0  # noqa: S608


def whole_page(
    tx: Tx, shape: Callable[..., T], select: str, table: str, stretch: Stretch, *, counter: str
) -> tuple[list[T], int]:
    """`page` of all rows that a domain has in a table, which are counted in parts (`counters.add_row`): as quick at its
    end as at its beginning."""
    start, offset = counters.seek(tx, stretch.domain_id, counter, stretch.offset)
    ids = f"select id from {table} where domain_id = :d and id >= :start"  # noqa: S608
    within = replace(stretch, offset=offset)
    return page(tx, shape, select, ids, within, counter=counter, d=stretch.domain_id, start=start)
