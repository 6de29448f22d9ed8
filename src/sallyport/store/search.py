"""The search by parts of texts, and pages of what it finds. What is SQLite's alone stands here: another engine has a
search of its own.

Each text of a row is cut at each of its letters into a piece of five letters, or fewer at its end, and each piece
begins with the number of its domain. FTS5 keeps for each piece the rows that have it, and where. A text of five
letters or more is then a phrase of its pieces: any text is found without a look at the rows, and nothing is read but
what the domain itself has. FTS5's own pieces of three letters are too common for what people look for most, an address:
each of its pieces stands in every tenth device.

A shorter text is the beginning of many pieces, whose rows would all have to be merged before the first is known. So
all shorter parts are kept in a second table, once for each row and without places: a little more than the pieces take,
and any of them is found at its first row. Beside them it has what begins with an @, however long: a mail domain, which
all rows may share.

The tokenizer takes ASCII letters and digits and everything beyond ASCII for parts of a word. The other characters of
ASCII are written as capitals, which folded text has none of.

What a search costs is its exact total. A single piece or part has a list of its rows, which `fts5vocab` counts; a
phrase has to be looked for in each row that has its pieces. So totals are remembered (`store.totals`), with the last
entry that the log of changes had for the transaction that counted. A transaction that sees this entry, by its random
mark, comes after all that was counted: it has only to count what the entries since then say. Where it is not seen, the
log is cut off, the transaction is older, or the store another, restored one, and all is counted anew.

A page is chosen by ids, which every index gives in order, so that those of two indexes, or of an index and a search,
are merged without sorting; only then are its rows read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import TypeVar

from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.model import Tx, Value
from sallyport.store.totals import Change

T = TypeVar("T")

PIECE = 5
REALM = 64
"""The longest part that begins with an @, without it."""
KEPT = 10_000
"""How many changes of all searches the log keeps."""
MERGED = 16
"""Pages of FTS5 that `SearchIndex.merge` writes: more than a transaction of milliseconds adds, on each level."""
_CAPITALS = (*range(0x400, 0x430), *range(0x531, 0x556))  # Cyrillic, Armenian: two octets each
_WRITTEN = dict(zip((code for code in range(128) if not chr(code).isalnum()), _CAPITALS, strict=False))
_AT = chr(_WRITTEN[ord("@")])
_DOMAIN_ENDS = "\u0556"  # the last capital of Armenian, which stands for nothing else


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a domain's list that is asked for."""

    domain_id: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True)
class Cut:
    """What the index keeps of a row: its texts as letters, their pieces and their shorter parts."""

    domain_id: int
    row_id: int
    letters: str
    pieces: str
    parts: str


class SearchIndex:
    """The search over one table, in the virtual tables `name`, of pieces, and `name_short`, of shorter parts; each has
    its totals in one called `_terms`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tables = name, f"{name}_short"

    def add(self, tx: Tx, domain_id: int, row_id: int, texts: Sequence[str]) -> None:
        """Make a row known by these folded texts."""
        self.add_all(tx, [cut(domain_id, row_id, texts)])

    def add_all(self, tx: Tx, rows: Sequence[Cut]) -> None:
        """Make rows known, at the end of a transaction that makes many: with each statement on another table FTS5
        writes what it has gathered to the file."""
        pieces, short = self._tables
        tx.insert(pieces, ("rowid", "pieces"), [(row.row_id, row.pieces) for row in rows])
        tx.insert(short, ("rowid", "pieces"), [(row.row_id, row.parts) for row in rows])
        self._log(tx, rows, 1)

    def remove(self, tx: Tx, domain_id: int, row_id: int, texts: Sequence[str]) -> None:
        """Take a row out of the index. texts: those it was added by.

        The pieces must be those that `add` made: a change of how they are cut comes with a migration that makes all
        anew.
        """
        self.remove_all(tx, [cut(domain_id, row_id, texts)])

    def remove_all(self, tx: Tx, rows: Sequence[Cut]) -> None:
        """`remove` for many rows: see `add_all`."""
        pieces, short = self._tables
        tx.insert(pieces, ("rowid", "pieces"), [(row.row_id, row.pieces) for row in rows], same={pieces: "delete"})
        tx.insert(short, ("rowid", "pieces"), [(row.row_id, row.parts) for row in rows], same={short: "delete"})
        self._log(tx, rows, -1)

    def merge(self, tx: Tx) -> None:
        """A small part of the merging that FTS5 does by itself in large ones, 30 ms at 30,000 rows: for an index that
        has `automerge` off, in each transaction that changes it."""
        for table in self._tables:
            tx.execute(f"insert into {table} ({table}, rank) values ('merge', :pages)", pages=MERGED)  # noqa: S608

    def find(self, domain_id: int, text: str) -> tuple[str, dict[str, Value]]:
        """SQL for the ids of a domain's rows that have this text, not empty, in one of theirs, whatever the case; and
        its parameters."""
        return self._found(domain_id, _as_letters(fold(text)))

    def page(self, tx: Tx, shape: Callable[..., T], select: str, stretch: Stretch, text: str) -> tuple[list[T], int]:
        """`page` of all that has a text, and of nothing else."""
        letters = _as_letters(fold(text))
        ids, match = self._found(stretch.domain_id, letters)
        rows = _rows(tx, shape, select, ids, stretch, match)
        return rows, _end(rows, stretch, lambda: self._total(tx, stretch.domain_id, letters))

    def _found(self, domain_id: int, letters: str) -> tuple[str, dict[str, Value]]:
        table, match = self._tables[_is_part(letters)], f'"{_phrase(domain_id, letters)}"'
        return f"select rowid as id from {table} where {table} match :match", {"match": match}  # noqa: S608

    def _log(self, tx: Tx, rows: Sequence[Cut], change: int) -> None:
        same: dict[str, Value] = {"name": self._name, "change": change}
        tx.insert("search_changes", ("domain_id", "letters"), [(row.domain_id, row.letters) for row in rows], same=same)
        sql = "delete from search_changes where seq <= (select max(seq) from search_changes) - :kept"
        tx.execute(sql, kept=KEPT)

    def _total(self, tx: Tx, domain_id: int, letters: str) -> int:
        """How many rows have these letters."""
        last = tx.one(Change, "select seq, mark from search_changes order by seq desc limit 1")
        if tx.totals is None or last is None:
            return self._count(tx, domain_id, letters)
        search = self._name, domain_id, letters
        total, counted = tx.totals.get(search) or (0, None)
        if counted is None or not _sees(tx, counted):
            total = self._count(tx, domain_id, letters)
        elif counted != last:
            sql = (
                "select sum(change) from search_changes where seq > :seq and name = :name and domain_id = :d and "
                "instr(letters, :letters) > 0"
            )
            total += tx.value(int, sql, seq=counted.seq, name=self._name, d=domain_id, letters=letters) or 0
        tx.totals.put(search, total, last)
        return total

    def _count(self, tx: Tx, domain_id: int, letters: str) -> int:
        is_part = _is_part(letters)
        if len(letters) <= PIECE or is_part:
            sql = f"select doc from {self._tables[is_part]}_terms where term = :term"  # noqa: S608
            return tx.value(int, sql, term=_phrase(domain_id, letters)) or 0
        ids, match = self._found(domain_id, letters)
        return tx.value(int, f"select count(*) from ({ids})", **match) or 0  # noqa: S608


def _sees(tx: Tx, change: Change) -> bool:
    """Whether a change, and all that came before it, is in the transaction's history."""
    sql = "select 1 from search_changes where seq = :seq and mark = :mark"
    return bool(tx.rows(sql, seq=change.seq, mark=change.mark))


def cut(domain_id: int, row_id: int, texts: Sequence[str]) -> Cut:
    """What the index keeps of a row by its folded texts."""
    letters = "\n".join(_letters(texts))  # which no letters have
    return Cut(domain_id, row_id, letters, pieces(domain_id, texts), short_parts(domain_id, texts))


def pieces(domain_id: int, texts: Sequence[str]) -> str:
    """All pieces of a row's folded texts."""
    return " ".join(_pieces(domain_id, letters, len(letters)) for letters in _letters(texts))


def short_parts(domain_id: int, texts: Sequence[str]) -> str:
    """All parts that are shorter than a piece or begin with an @; to the index it makes no difference that some come
    twice."""
    parts = list[str]()
    for letters in _letters(texts):
        longer = list(letters)
        parts += longer
        for length in range(1, PIECE - 1):
            longer = [*map(add, longer, letters[length:])]
            parts += longer
        for realm in letters.split(_AT)[1:]:
            parts += [_AT + realm[:end] for end in range(PIECE - 1, min(len(realm), REALM) + 1)]
    return _written(domain_id, parts)


def _letters(texts: Sequence[str]) -> list[str]:
    return [_as_letters(text) for text in dict.fromkeys(texts) if text]


def _as_letters(text: str) -> str:
    return text.translate(_WRITTEN)


def _is_part(letters: str) -> bool:
    """Whether `short_parts` has this of each text that has it."""
    return len(letters) < PIECE or (letters.rfind(_AT) == 0 and len(letters) <= REALM + 1)


def _phrase(domain_id: int, letters: str) -> str:
    """What is looked for: a part, or else all pieces that are whole."""
    if _is_part(letters):
        return _written(domain_id, [letters])
    return _pieces(domain_id, letters, len(letters) - PIECE + 1)


def _pieces(domain_id: int, letters: str, count: int) -> str:
    return _written(domain_id, [letters[at : at + PIECE] for at in range(count)])


def _written(domain_id: int, parts: Sequence[str]) -> str:
    start = f"{domain_id}{_DOMAIN_ENDS}"
    return start + f" {start}".join(parts)


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
    rows = _rows(tx, shape, select, ids, stretch, parameters)
    if counter is not None:
        return rows, counters.total(tx, stretch.domain_id, counter)
    sql = f"select count(*) from ({ids}) as found"  # noqa: S608
    return rows, _end(rows, stretch, lambda: tx.value(int, sql, **parameters) or 0)


def _rows(
    tx: Tx, shape: Callable[..., T], select: str, ids: str, stretch: Stretch, parameters: Mapping[str, Value]
) -> list[T]:
    return tx.all(
        shape,
        f"{select} where id in ({ids} order by id limit :limit offset :offset) order by id",
        limit=stretch.limit,
        offset=stretch.offset,
        **parameters,
    )


def _end(rows: Sequence[object], stretch: Stretch, count: Callable[[], int]) -> int:
    """The total of a list by one of its pages, where its end is in sight; else counted."""
    if len(rows) < stretch.limit and (rows or not stretch.offset):
        return stretch.offset + len(rows)
    return count()


def whole_page(
    tx: Tx, shape: Callable[..., T], select: str, table: str, stretch: Stretch, *, counter: str, only: str = "true"
) -> tuple[list[T], int]:
    """Return `page` of all rows of a domain in a table, which are counted in parts (`counters.add_row`): its last page
    is as quick as its first. only: SQL condition of the rows that count."""
    start, offset = counters.seek(tx, stretch.domain_id, counter, stretch.offset)
    ids = f"select id from {table} where domain_id = :d and {only} and id >= :start"  # noqa: S608
    within = replace(stretch, offset=offset)
    return page(tx, shape, select, ids, within, counter=counter, d=stretch.domain_id, start=start)
