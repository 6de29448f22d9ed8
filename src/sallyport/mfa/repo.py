"""SQL for MFA providers. All fields of a provider are sealed together, bound to `mfa_providers/DOMAIN/PROVIDER`."""

from dataclasses import dataclass

from sallyport.store.erasure import PRESENT
from sallyport.store.model import Tx


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A domain's stored provider. fields: the fields as sealed JSON. timeout_s: the time limit in seconds. changed_at:
    the time of the last change in microseconds."""

    domain_id: int
    provider: str
    fields: bytes
    timeout_s: int
    changed_at: int

    @property
    def identity(self) -> str:
        """The identity to which the vault binds the sealed fields."""
        return identity(self.domain_id, self.provider)


_COLUMNS = ", ".join(ProviderRow.__dataclass_fields__)


def identity(domain_id: int, provider: str) -> str:
    """Return the identity to which a provider's sealed fields are bound."""
    return f"mfa_providers/{domain_id}/{provider}"


def load(tx: Tx) -> dict[int, ProviderRow]:
    """Return the providers of all domains, by the domain's id."""
    rows = tx.all(ProviderRow, f"select {_COLUMNS} from mfa_providers where {PRESENT} order by domain_id")
    return {row.domain_id: row for row in rows}


def find(tx: Tx, domain_id: int) -> ProviderRow | None:
    """Return a domain's provider, or None."""
    return tx.one(ProviderRow, f"select {_COLUMNS} from mfa_providers where domain_id = :id", id=domain_id)


def save(tx: Tx, row: ProviderRow) -> None:
    """Store a domain's provider; it replaces the previous one."""
    tx.execute(
        "insert into mfa_providers (domain_id, provider, fields, timeout_s, changed_at) "
        "values (:domain_id, :provider, :fields, :timeout_s, :changed_at) on conflict (domain_id) do update set "
        "provider = excluded.provider, fields = excluded.fields, timeout_s = excluded.timeout_s, "
        "changed_at = excluded.changed_at",
        domain_id=row.domain_id,
        provider=row.provider,
        fields=row.fields,
        timeout_s=row.timeout_s,
        changed_at=row.changed_at,
    )


def delete(tx: Tx, domain_id: int) -> None:
    """Remove a domain's provider."""
    tx.execute("delete from mfa_providers where domain_id = :id", id=domain_id)
