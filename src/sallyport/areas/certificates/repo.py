"""SQL for the server certificates of domains."""

from dataclasses import dataclass

from sallyport.areas.certificates.certificate import MAX_CERTIFICATES, CertificateRow
from sallyport.base.errors import Conflict
from sallyport.store import audit
from sallyport.store.erasure import OF_TENANT, PRESENT
from sallyport.store.model import Tx, Value

_COLUMNS = "domain_id, realm_key, realm, chain, private_key, changed_at"
_OF_ONE = "domain_id = :domain and realm_key = :key"


@dataclass(frozen=True, slots=True)
class _Change:
    domain_id: int
    realm_key: str
    changed_at: int


def load(tx: Tx) -> list[CertificateRow]:
    """Return the certificates of all domains, ordered by domain and realm."""
    return tx.all(
        CertificateRow,
        f"select {_COLUMNS} from server_certificates where {PRESENT} order by domain_id, realm_key",
    )


def changes(tx: Tx) -> dict[tuple[int, str], int]:
    """Return the time of the last change of each certificate, by domain and realm, in the order of `load`. This takes
    less time than reading the chains and keys."""
    sql = f"select domain_id, realm_key, changed_at from server_certificates where {PRESENT} order by 1, 2"
    return {(each.domain_id, each.realm_key): each.changed_at for each in tx.all(_Change, sql)}


def find(tx: Tx, domain_id: int, realm_key: str) -> CertificateRow | None:
    """Return a domain's certificate for a realm, or None."""
    sql = f"select {_COLUMNS} from server_certificates where {_OF_ONE}"
    return tx.one(CertificateRow, sql, domain=domain_id, key=realm_key)


def put(tx: Tx, row: CertificateRow) -> None:
    """Store a certificate in place of the domain's previous certificate for the same realm. Raises Conflict if the
    tenant would have too many certificates."""
    tx.execute(
        f"insert into server_certificates ({_COLUMNS}) values (:domain, :key, :realm, :chain, :secret, :at) "
        "on conflict (domain_id, realm_key) do update set realm = excluded.realm, chain = excluded.chain, "
        "private_key = excluded.private_key, changed_at = excluded.changed_at, told_days = excluded.told_days",
        domain=row.domain_id,
        key=row.realm_key,
        realm=row.realm,
        chain=row.chain,
        secret=row.private_key,
        at=row.changed_at,
    )
    tenant = audit.tenant_of(tx, row.domain_id)
    if (tx.value(int, f"select count(*) from server_certificates where {OF_TENANT}", t=tenant) or 0) > MAX_CERTIFICATES:
        raise Conflict(f"a tenant has at most {MAX_CERTIFICATES} server certificates: remove some first")


def tell(tx: Tx, row: CertificateRow, days: int) -> bool:
    """Note that the expiry of a certificate is told for a number of days before it. Return False if it was told before,
    or if the row has changed."""
    named: dict[str, Value] = {"domain": row.domain_id, "key": row.realm_key, "at": row.changed_at, "days": days}
    untold = f"{_OF_ONE} and changed_at = :at and told_days > :days and {PRESENT}"
    if tx.value(int, f"select count(*) from server_certificates where {untold}", **named) == 0:
        return False
    tx.execute(f"update server_certificates set told_days = :days where {untold}", **named)
    return True


def delete(tx: Tx, row: CertificateRow) -> None:
    """Delete a certificate."""
    tx.execute(f"delete from server_certificates where {_OF_ONE}", domain=row.domain_id, key=row.realm_key)
