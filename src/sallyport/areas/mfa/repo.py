"""SQL for MFA providers. All fields of a provider are encrypted as one value, with `mfa_providers/DOMAIN/PROVIDER` as
associated data."""

from dataclasses import asdict, dataclass

from sallyport.store.erasure import PRESENT
from sallyport.store.inserts import put_row
from sallyport.store.model import Tx, columns_of


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A domain's stored provider.

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
    """Return the providers of all domains, by domain id."""
    rows = tx.all(ProviderRow, f"select {_COLUMNS} from mfa_providers where {PRESENT} order by domain_id")
    return {row.domain_id: row for row in rows}


def find(tx: Tx, domain_id: int) -> ProviderRow | None:
    """Return a domain's provider, or None if it has none."""
    return tx.one(ProviderRow, f"select {_COLUMNS} from mfa_providers where domain_id = :id", id=domain_id)


def save(tx: Tx, row: ProviderRow) -> None:
    """Store a domain's provider, in place of the previous one."""
    put_row(tx, "mfa_providers", "domain_id", **asdict(row))


def delete(tx: Tx, domain_id: int) -> None:
    """Remove a domain's provider."""
    tx.execute("delete from mfa_providers where domain_id = :id", id=domain_id)
