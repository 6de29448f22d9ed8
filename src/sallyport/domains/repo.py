"""The SQL of domains."""

from sallyport.base.errors import Conflict
from sallyport.domains.model import Domain, DomainTable, Fallback, FirstFactor, Mode
from sallyport.store.model import Tx

_COLUMNS = "id, tenant_id, name, enforcement_mode, fallback_action, first_factor, status, realms"


def load(tx: Tx) -> DomainTable:
    """All domains, in the order in which they were added."""
    return DomainTable(tx.all(Domain, f"select {_COLUMNS} from domains order by id"))


def add(
    tx: Tx,
    *,
    tenant_id: int,
    name: str,
    directory_name: str,
    mode: Mode,
    fallback: Fallback,
    first_factor: FirstFactor,
    realms: tuple[str, ...],
    at: int,
) -> int:
    """The new domain's id. Conflict: the name, or a realm, is taken in this tenant."""
    table = load(tx)
    for realm in (name, *realms):
        other = table.by_realm(tenant_id, realm)
        if other is not None:
            raise Conflict(f"the name or realm {realm} belongs to domain {other.id}")
    domain_id = tx.value(
        int,
        "insert into domains (tenant_id, name, name_key, directory_name, enforcement_mode, fallback_action, "
        "first_factor, status, realms, created_at) values (:tenant_id, :name, :name_key, :directory_name, :mode, "
        ":fallback, :first_factor, 'active', :realms, :at) returning id",
        tenant_id=tenant_id,
        name=name,
        name_key=name.casefold(),
        directory_name=directory_name,
        mode=mode,
        fallback=fallback,
        first_factor=first_factor,
        realms="\n".join(realms),
        at=at,
    )
    assert domain_id is not None  # noqa: S101  an insert returns its row
    return domain_id


def set_mode(tx: Tx, domain_ids: list[int], mode: Mode, fallback: Fallback | None) -> None:
    """Store the mode, and the fallback action where one is given, of some domains."""
    for domain_id in domain_ids:
        tx.execute(
            "update domains set enforcement_mode = :mode, fallback_action = coalesce(:fallback, fallback_action) "
            "where id = :id",
            mode=mode,
            fallback=fallback,
            id=domain_id,
        )
