"""The SQL of MFA providers. All of a provider's fields are sealed together under `mfa_providers/DOMAIN/PROVIDER`."""

from dataclasses import dataclass

from sallyport.store.erasure import PRESENT
from sallyport.store.model import Tx


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A domain's provider as it is stored. fields: sealed JSON. changed_at: microseconds."""

    domain_id: int
    provider: str
    fields: bytes
    timeout_s: int
    changed_at: int

    @property
    def identity(self) -> str:
        """The identity that the fields are sealed for."""
        return identity(self.domain_id, self.provider)


_COLUMNS = ", ".join(ProviderRow.__dataclass_fields__)


def identity(domain_id: int, provider: str) -> str:
    """Return the identity that a provider's fields are sealed for."""
    return f"mfa_providers/{domain_id}/{provider}"


def load(tx: Tx) -> dict[int, ProviderRow]:
    """Return the providers of all domains, by the domain's id."""
    rows = tx.all(ProviderRow, f"select {_COLUMNS} from mfa_providers where {PRESENT} order by domain_id")
    return {row.domain_id: row for row in rows}


def find(tx: Tx, domain_id: int) -> ProviderRow | None:
    """Return a domain's provider, or None."""
    return tx.one(ProviderRow, f"select {_COLUMNS} from mfa_providers where domain_id = :id", id=domain_id)


def save(tx: Tx, row: ProviderRow) -> None:
    """Set a domain's provider; it replaces the former one."""
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
