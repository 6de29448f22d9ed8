"""SQL for the configurations of first factors. All fields of a configuration are encrypted as one value, with
`first_factors/DOMAIN/KIND` as associated data."""

from dataclasses import dataclass

from sallyport.store.erasure import PRESENT
from sallyport.store.model import Tx

Key = tuple[int, str]
"""The id of a domain, and the kind of first factor that is configured."""


@dataclass(frozen=True, slots=True)
class FactorRow:
    """A domain's configuration for one kind of first factor. fields: encrypted JSON. changed_at: the time of the last
    change, in microseconds."""

    domain_id: int
    kind: str
    fields: bytes
    changed_at: int

    @property
    def identity(self) -> str:
        """The associated data with which the fields are encrypted."""
        return identity(self.domain_id, self.kind)


def identity(domain_id: int, kind: str) -> str:
    """Return the associated data with which the fields of a configuration are encrypted."""
    return f"first_factors/{domain_id}/{kind}"


def load(tx: Tx) -> dict[Key, FactorRow]:
    """Return all configurations."""
    sql = f"select domain_id, kind, fields, changed_at from first_factors where {PRESENT} order by domain_id, kind"
    rows = tx.all(FactorRow, sql)
    return {(row.domain_id, row.kind): row for row in rows}


def save(tx: Tx, row: FactorRow) -> None:
    """Store a domain's configuration for one kind of first factor, in place of the previous one."""
    tx.execute(
        "insert into first_factors (domain_id, kind, fields, changed_at) values (:domain_id, :kind, :fields, :at) "
        "on conflict (domain_id, kind) do update set fields = excluded.fields, changed_at = excluded.changed_at",
        domain_id=row.domain_id,
        kind=row.kind,
        fields=row.fields,
        at=row.changed_at,
    )
