"""SQL for MFA providers. All fields of a provider are encrypted as one value, with `mfa_providers/DOMAIN/PROVIDER` as
associated data.

The default provider of a domain is in the table `mfa_providers`, the others are in `further_providers`. A domain has
each kind of provider once, so that a login rule can name a provider by its kind.
"""

from dataclasses import asdict, dataclass

from sallyport.store.erasure import PRESENT
from sallyport.store.inserts import put_row
from sallyport.store.model import Tx, columns_of


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A stored provider of a domain.

    fields: the fields as encrypted JSON. timeout_s: the time that a user may take to answer, in seconds. changed_at:
    the time of the last change, in microseconds.
    """

    domain_id: int
    provider: str
    fields: bytes
    timeout_s: int
    changed_at: int

    @property
    def identity(self) -> str:
        """The associated data with which the fields are encrypted."""
        return identity(self.domain_id, self.provider)


_COLUMNS = ", ".join(columns_of(ProviderRow))


def identity(domain_id: int, provider: str) -> str:
    """Return the associated data with which a provider's fields are encrypted."""
    return f"mfa_providers/{domain_id}/{provider}"


def load(tx: Tx) -> dict[int, ProviderRow]:
    """Return the default providers of all domains, by domain id."""
    rows = tx.all(ProviderRow, f"select {_COLUMNS} from mfa_providers where {PRESENT} order by domain_id")
    return {row.domain_id: row for row in rows}


def load_further(tx: Tx) -> dict[int, dict[str, ProviderRow]]:
    """Return the providers beside the default ones, by domain id and name. Those of a domain are ordered by name."""
    found: dict[int, dict[str, ProviderRow]] = {}
    sql = f"select {_COLUMNS} from further_providers where {PRESENT} order by domain_id, provider"
    for row in tx.all(ProviderRow, sql):
        found.setdefault(row.domain_id, {})[row.provider] = row
    return found


def find(tx: Tx, domain_id: int) -> ProviderRow | None:
    """Return a domain's default provider, or None if it has none."""
    return tx.one(ProviderRow, f"select {_COLUMNS} from mfa_providers where domain_id = :id", id=domain_id)


def find_further(tx: Tx, domain_id: int, provider: str) -> ProviderRow | None:
    """Return a provider that a domain has beside its default one, or None if there is none."""
    sql = f"select {_COLUMNS} from further_providers where domain_id = :id and provider = :provider"
    return tx.one(ProviderRow, sql, id=domain_id, provider=provider)


def names(tx: Tx, domain_id: int) -> list[str]:
    """Return the names of a domain's providers."""
    sql = "select provider from {} where domain_id = :id"
    rows = tx.rows(f"{sql.format('mfa_providers')} union {sql.format('further_providers')} order by 1", id=domain_id)
    return [str(name) for (name,) in rows]


def save(tx: Tx, row: ProviderRow) -> None:
    """Store a domain's default provider, in place of the previous one. If the domain has had this kind of provider
    beside its default one, this provider is removed."""
    delete_further(tx, row.domain_id, row.provider)
    put_row(tx, "mfa_providers", "domain_id", **asdict(row))


def save_further(tx: Tx, row: ProviderRow) -> None:
    """Store a provider beside a domain's default one, in place of the previous one of its kind."""
    put_row(tx, "further_providers", "domain_id, provider", **asdict(row))


def delete(tx: Tx, domain_id: int) -> None:
    """Remove a domain's default provider."""
    tx.execute("delete from mfa_providers where domain_id = :id", id=domain_id)


def delete_further(tx: Tx, domain_id: int, provider: str) -> None:
    """Remove a provider that a domain has beside its default one."""
    sql = "delete from further_providers where domain_id = :id and provider = :provider"
    tx.execute(sql, id=domain_id, provider=provider)
