"""Find, mark and rename the rows of people, groups and units during an import."""

from dataclasses import dataclass, fields
from typing import Final, Generic, TypeVar

from sallyport.directory.entries import memberships
from sallyport.directory.imports.job import Counts, Run
from sallyport.store.model import Tx

NO_DIGEST: Final = b""
"""A digest that differs from the digest of every real entry. A row with this digest is written again when the directory
is read next."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored person, group or unit. seen: id of the last import that found the entry."""

    id: int
    external_id: str
    dn: str
    dn_key: bytes
    name: str
    digest: bytes
    seen: int


RowT = TypeVar("RowT", bound=Stored)


class Table(Generic[RowT]):
    """A table of people, groups or units. row: a dataclass with the columns to read."""

    def __init__(self, name: str, row: type[RowT]) -> None:
        self.name = name
        self._row = row
        columns = ", ".join(field.name for field in fields(row))
        self._select = f"select {columns} from {name}"  # noqa: S608

    def get(self, tx: Tx, row_id: int) -> RowT | None:
        """Return a row, or None."""
        return tx.one(self._row, f"{self._select} where id = :id", id=row_id)

    def find(self, tx: Tx, run: Run, external_id: str = "", dn_key: bytes = b"") -> RowT | None:
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
            if named is not None and (not external_id or "dn:" in (external_id[:3], named.external_id[:3])):
                return named
        return found

    def mark(self, tx: Tx, run: Run, known: RowT) -> Counts:
        """Mark an unchanged row as found by the import."""
        if run.marks and known.seen != run.job_id:
            tx.execute(f"update {self.name} set seen = :job where id = :id", job=run.job_id, id=known.id)  # noqa: S608
        return Counts(skipped=1)

    def rename(self, tx: Tx, run: Run, known: RowT, dn_key: bytes) -> None:
        """Rename a person or a group in the memberships."""
        if dn_key == known.dn_key:
            return
        taken = memberships.is_taken(tx, self.name, run.directory_id, known.id, known.dn_key, dn_key)
        memberships.vacate_key(tx, self.name, run.directory_id, known.id, dn_key, run.started_at)
        rename = memberships.rename_group if self.name == memberships.GROUPS_TABLE else memberships.rename_member
        rename(tx, run.directory_id, known.dn_key, dn_key, run.started_at if taken else None)


def kept_identifier(known: Stored, external_id: str) -> str:
    """Return the identifier that a row has after a change. If the row has a permanent identifier, an identifier that is
    derived from the DN (`dn:...`) does not replace it."""
    return known.external_id if external_id[:3] == "dn:" != known.external_id[:3] else external_id
