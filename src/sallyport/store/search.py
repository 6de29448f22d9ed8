"""The search by parts of texts, and pages of what it finds. What is SQLite's alone stands here: another engine has a
search of its own.

Each text of a row is cut at each of its letters into a piece of five letters, or fewer at its end, and each piece
begins with the number of its domain. FTS5 keeps for each piece the rows that have it, and where. A text of five
letters or more is then a phrase of its pieces, a shorter one the beginning of a piece: any text is found without a
look at the rows, and nothing is read but what the domain itself has. FTS5's own pieces of three letters are too
common for what people look for most, an address: each of its pieces stands in every tenth device.

The tokenizer takes ASCII letters and digits and everything beyond ASCII for parts of a word. The other characters of
ASCII are written as capitals, which folded text has none of.

A page is chosen by ids, which every index gives in order, so that those of two indexes, or of an index and a search,
are merged without sorting; only then are its rows read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sallyport.store import counters
from sallyport.store.model import Tx, Value

T = TypeVar("T")

PIECE = 5
MERGED = 16
"""Pages of FTS5 that `SearchIndex.merge` writes: more than a transaction of milliseconds adds, on each level."""
_CAPITALS = (*range(0x400, 0x430), *range(0x531, 0x556))  # Cyrillic, Armenian: two octets each
_WRITTEN = dict(zip((code for code in range(128) if not chr(code).isalnum()), _CAPITALS, strict=False))
_DOMAIN_ENDS = "\u0556"  # the last capital of Armenian, which stands for nothing else


def fold(text: str) -> str:
    """Text as it is compared: without case."""
    return text.casefold()


class SearchIndex:
    """The search over one table, in the virtual table `name`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._remove = f"insert into {name} ({name}, rowid, pieces) values ('delete', :id, :pieces)"  # noqa: S608
        self._merge = f"insert into {name} ({name}, rank) values ('merge', :pages)"  # noqa: S608
        self.found = f"select rowid as id from {name} where {name} match :match"  # noqa: S608
        """SQL for the ids that a search finds; `match` is what `matching` gives."""

    def add(self, tx: Tx, domain_id: int, row_id: int, texts: Sequence[str]) -> None:
        """Make a row known by these folded texts."""
        self.add_all(tx, [(row_id, pieces(domain_id, texts))])

    def add_all(self, tx: Tx, rows: Iterable[tuple[int, str]]) -> None:
        """Make rows known by their `pieces`, at the end of a transaction that makes many: with each statement on
        another table FTS5 writes what it has gathered to the file."""
        tx.insert(self._name, ("rowid", "pieces"), rows)

    def remove(self, tx: Tx, domain_id: int, row_id: int, texts: Sequence[str]) -> None:
        """Take a row out of the index. texts: those it was added by.

        The pieces must be those that `add` made: a change of how they are cut comes with a migration that makes all
        anew.
        """
        tx.execute(self._remove, id=row_id, pieces=pieces(domain_id, texts))

    def merge(self, tx: Tx) -> None:
        """A small part of the merging that FTS5 does by itself in large ones, 30 ms at 30,000 rows: for an index that
        has `automerge` off, in each transaction that changes it."""
        tx.execute(self._merge, pages=MERGED)


def matching(domain_id: int, folded: str) -> str:
    """What to ask the index for, so that it finds a domain's rows which have this text, not empty, in one of theirs."""
    letters = folded.translate(_WRITTEN)
    if len(letters) < PIECE:
        return f'"{domain_id}{_DOMAIN_ENDS}{letters}" *'
    return f'"{_pieces(domain_id, letters, len(letters) - PIECE + 1)}"'


def pieces(domain_id: int, texts: Sequence[str]) -> str:
    """What the index keeps of a row's folded texts."""
    each = (text.translate(_WRITTEN) for text in dict.fromkeys(texts) if text)
    return " ".join(_pieces(domain_id, letters, len(letters)) for letters in each)


def _pieces(domain_id: int, letters: str, count: int) -> str:
    start = f"{domain_id}{_DOMAIN_ENDS}"
    return start + f" {start}".join([letters[at : at + PIECE] for at in range(count)])


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

    select: `select ... from ...` of the rows, which have an `id`. ids: SQL for the ids that are meant, in order.
    counter: the total kept for the whole list; None for a part of it, which is counted where its end is not in sight.
    """
    rows = tx.all(
        shape,
        f"{select} where id in ({ids} limit :limit offset :offset) order by id",
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
    ids = f"select id from {table} where domain_id = :d and id >= :start order by id"  # noqa: S608
    within = replace(stretch, offset=offset)
    return page(tx, shape, select, ids, within, counter=counter, d=stretch.domain_id, start=start)
