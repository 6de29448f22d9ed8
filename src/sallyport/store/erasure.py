"""The deletion of a removed domain's rows, table by table, in slices of at most SLICE rows.

Each area declares its tables (`Area.erased_rows`). A table comes before the tables that it refers to: the tables of an
area come before those of the areas that it needs. Before a row is deleted, the rows of other tables that belong only to
this row (`DependentTable`) are deleted. So no statement reads a whole large table. A test compares the declarations
with the schema. The audit trail belongs to the tenant and is kept.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from sallyport.store.model import LISTED, Tx, listed
from sallyport.store.search import SearchIndex
from sallyport.store.slices import SLICE, delete_slice

MAX_COUNTED: Final = 100_000
"""Maximum number that is counted for one kind of rows. The numbers are shown before a domain is removed."""
MERGED_BY_HAND: Final = "directory_users"
KEPT: Final = ("audit_trail", "audit_totals")
"""Tables with a domain_id whose rows stay after the domain's removal."""
PRESENT: Final = "exists (select 1 from domains where domains.id = domain_id and removed_at is null)"
"""SQL condition for rows whose domain exists and is not removed."""
OF_TENANT: Final = "domain_id in (select id from domains where tenant_id = :t and removed_at is null)"
"""SQL condition for rows that belong to a domain of the tenant `:t`, except removed domains."""
_LISTED: Final = f"in {LISTED}"


@dataclass(frozen=True, slots=True)
class DependentTable:
    """A table of dependent rows. Each row belongs to one row of another table, its owner.

    key: the columns of the primary key. column: the column that contains the owner's id.
    """

    table: str
    key: str
    column: str


@dataclass(frozen=True, slots=True)
class Rows:
    """A table with rows of a domain.

    name: the name of the rows in messages; empty if the rows are not counted. key: the columns of the primary key; must
    be `id` if the table has parts. searched: the id that the keys of the search index contain, `domain_id` or
    `tenant_id`; empty if the table has no search index. has_index: whether an index finds the rows of a domain.
    """

    table: str
    name: str = ""
    key: str = "id"
    parts: tuple[DependentTable, ...] = ()
    searched: Literal["", "domain_id", "tenant_id"] = ""
    has_index: bool = True

    def erase(self, tx: Tx, domain_id: int) -> int:
        """Delete up to SLICE rows of the domain, or of the parts of these rows. Return the number of deleted rows."""
        if not self.parts and not self.searched:
            return delete_slice(tx, self.table, self.key, "domain_id = :d", d=domain_id)
        found = tx.rows(f"select id from {self.table} where domain_id = :d limit {SLICE}", d=domain_id)  # noqa: S608
        return self.erase_ids(tx, domain_id, [int(str(row[0])) for row in found]) if found else 0

    def erase_ids(self, tx: Tx, domain_id: int, ids: list[int]) -> int:
        """Delete rows of the domain, or up to SLICE parts of these rows. Return the number of deleted rows."""
        for part in self.parts:
            gone = delete_slice(tx, part.table, part.key, f"{part.column} {_LISTED}", ids=listed(ids))
            if gone:
                return gone
        if self.searched:
            self._remove_from_search(tx, domain_id, ids)
        return tx.execute(f"delete from {self.table} where id {_LISTED}", ids=listed(ids))  # noqa: S608

    def _remove_from_search(self, tx: Tx, domain_id: int, ids: list[int]) -> None:
        index, number = SearchIndex(f"{self.table}_search"), domain_id
        if self.searched == "tenant_id":
            number = tx.value(int, "select tenant_id from domains where id = :d", d=domain_id) or 0
        index.remove(tx, number, ids)
        if self.table == MERGED_BY_HAND:
            index.merge(tx)


def in_order(rows: Iterable[Rows]) -> list[Rows]:
    """Return the tables in the order of their deletion. The tables without an index by domain come last. They are
    small, and are read only when all other tables are empty."""
    return sorted(rows, key=lambda each: not each.has_index)


def counts(tx: Tx, erased_rows: Iterable[Rows], domain_id: int) -> Iterator[tuple[str, int]]:
    """Yield (name, number) for each kind of rows that a domain has. The number is at most MAX_COUNTED."""
    for rows in erased_rows:
        if rows.name:
            some = f"select 1 from {rows.table} where domain_id = :d limit {MAX_COUNTED}"  # noqa: S608
            count = tx.value(int, f"select count(*) from ({some}) as listed", d=domain_id) or 0  # noqa: S608
            if count:
                yield rows.name, count
