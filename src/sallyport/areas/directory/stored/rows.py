"""Find, mark and rename the rows of people, groups and units during an import."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Generic, TypeVar

from sallyport.areas.directory.imports.job import EntryCounts, ImportRun
from sallyport.areas.directory.stored import memberships
from sallyport.areas.directory.stored.memberships import AT_ONCE
from sallyport.store.model import LISTED, Tx, Value, among, listed

NO_DIGEST: Final = b""
"""A digest that differs from the digest of every real entry. A row with this digest is written again when the directory
is read next."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A stored person, group or unit. seen: id of the last import that found the entry."""

    id: int
    external_id: str
    dn: str
    dn_key: bytes
    name: str
    digest: bytes
    seen: int


RowT = TypeVar("RowT", bound=StoredEntry)


class EntryTable(Generic[RowT]):
    """A table of people, groups or units. row: a dataclass with the columns to read."""

    def __init__(self, name: str, row: type[RowT]) -> None:
        self.name = name
        self._row = row
        columns = ", ".join(field.name for field in fields(row))
        self._select = f"select {columns} from {name}"  # noqa: S608

    def get(self, tx: Tx, row_id: int) -> RowT | None:
        """Return a row, or None."""
        return tx.one(self._row, f"{self._select} where id = :id", id=row_id)

    def find(self, tx: Tx, run: ImportRun, external_id: str = "", dn_key: bytes = b"") -> RowT | None:
        """Return the row with an identifier, or None.

        If no row has the identifier, search for a row with the name. Return this row only if at least one of the two
        entries, the wanted or the stored one, has no permanent identifier.
        """
        select = f"{self._select} where directory_id = :dir and "
        found = None
        if external_id:
            by_id = f"{select}domain_id = :d and external_id = :external"
            found = tx.one(self._row, by_id, d=run.domain_id, dir=run.directory_id, external=external_id)
        if found is None and dn_key:
            named = tx.one(self._row, f"{select}dn_key = :key order by id desc", dir=run.directory_id, key=dn_key)
            return _replaceable(named, external_id)
        return found

    def find_all(self, tx: Tx, run: ImportRun, wanted: Sequence[tuple[str, bytes]]) -> list[RowT | None]:
        """Return what `find` returns for each of several entries, with few statements.

        wanted: the identifier and the key of the name of each entry. There are at most AT_ONCE entries, and none is
        empty or repeated.
        """
        ids, parameters = among([external_id for external_id, _ in wanted], AT_ONCE)
        by_id = f"{self._select} where directory_id = :dir and domain_id = :d and external_id in {ids}"
        found = {row.external_id: row for row in tx.all(self._row, by_id, d=run.domain_id, **self._of(run, parameters))}
        missing = [dn_key for external_id, dn_key in wanted if external_id not in found]
        named = self._named(tx, run, missing) if missing else {}
        return [
            found.get(external_id) or _replaceable(named.get(dn_key), external_id) for external_id, dn_key in wanted
        ]

    def ids_of(self, tx: Tx, run: ImportRun, external_ids: Sequence[str]) -> list[int]:
        """Return the ids of the rows with the given identifiers. There are at most AT_ONCE identifiers, and each has a
        row."""
        among_ids, parameters = among(external_ids, AT_ONCE)
        sql = (
            f"select external_id, id from {self.name} where directory_id = :dir and domain_id = :d "  # noqa: S608
            f"and external_id in {among_ids}"
        )
        rows = tx.rows(sql, d=run.domain_id, **self._of(run, parameters))
        found = {str(external_id): int(str(row_id)) for external_id, row_id in rows}
        return [found[each] for each in external_ids]

    def _named(self, tx: Tx, run: ImportRun, dn_keys: Sequence[bytes]) -> dict[bytes, RowT]:
        keys, parameters = among(dn_keys, AT_ONCE)
        by_name = f"{self._select} where directory_id = :dir and dn_key in {keys}"
        # sorted here, because with `order by id` SQLite reads all rows of the directory in the order of their ids
        rows = sorted(tx.all(self._row, by_name, **self._of(run, parameters)), key=lambda row: row.id)
        return {row.dn_key: row for row in rows}

    def _of(self, run: ImportRun, parameters: dict[str, Value]) -> dict[str, Value]:
        return {"dir": run.directory_id, **parameters}

    def mark(self, tx: Tx, run: ImportRun, known: RowT) -> EntryCounts:
        """Mark an unchanged row as found by the import."""
        return self.mark_all(tx, run, [known])

    def mark_all(self, tx: Tx, run: ImportRun, known: Sequence[RowT]) -> EntryCounts:
        """Mark unchanged rows as found by the import."""
        ids = [row.id for row in known if row.seen != run.job_id] if run.marks else []
        if ids:
            sql = f"update {self.name} set seen = :job where id in {LISTED}"  # noqa: S608
            tx.execute(sql, job=run.job_id, ids=listed(ids))
        return EntryCounts(skipped=len(known))

    def rename(self, tx: Tx, run: ImportRun, known: RowT, dn_key: bytes) -> bool:
        """Rename a person or a group in the memberships, before its row is written.

        Return False if there are more memberships than one transaction may change. The caller must then leave the row
        as it is, and call the function again in the next transaction. An empty dn_key changes nothing.
        """
        if dn_key in (b"", known.dn_key):
            return True
        keys = known.dn_key, dn_key
        taken = memberships.is_taken(tx, self.name, run.directory_id, known.id, *keys)
        taken = taken or memberships.was_taken(tx, run.directory_id, *keys)
        if not memberships.vacate_key(tx, self.name, run.directory_id, known.id, dn_key, run.started_at):
            return False
        return memberships.rename(tx, self.name, run.directory_id, *keys, run.started_at if taken else None)

    def is_long_rename(self, tx: Tx, run: ImportRun, known: RowT, dn_key: bytes) -> bool:
        """Return whether `rename` may need more than one transaction for a person."""
        if dn_key == known.dn_key:
            return False
        sql = f"select 1 from {self.name} where directory_id = :dir and dn_key = :key limit 2"  # noqa: S608
        several = len(tx.rows(sql, dir=run.directory_id, key=dn_key)) > 1
        return several or any(memberships.is_in_many(tx, run.directory_id, key) for key in (known.dn_key, dn_key))


def _replaceable(named: RowT | None, external_id: str) -> RowT | None:
    """Return the row that has the name of an entry, or None if both have a permanent identifier."""
    if named is not None and external_id and "dn:" not in (external_id[:3], named.external_id[:3]):
        return None
    return named


def kept_identifier(known: StoredEntry, external_id: str) -> str:
    """Return the identifier that a row has after a change. If the row has a permanent identifier, an identifier that is
    derived from the DN (`dn:...`) does not replace it."""
    return known.external_id if external_id[:3] == "dn:" != known.external_id[:3] else external_id
