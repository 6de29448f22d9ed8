"""The SQL of domains."""

from collections.abc import Sequence
from dataclasses import dataclass

from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.domains.domain import Domain, DomainTable, Fallback, FirstFactor, Mode
from sallyport.store.model import Tx

_COLUMNS = (
    "id, tenant_id, name, enforcement_mode, fallback_action, first_factor, status, realms, reverts_at, revert_set_at, "
    "disconnect_on_revoke, directory_name"
)


def load(tx: Tx) -> DomainTable:
    """Return all domains, in the order in which they were added."""
    return DomainTable(tx.all(_domain, f"select {_COLUMNS} from domains order by id"))


def _domain(
    *,
    id: int,
    tenant_id: int,
    name: str,
    enforcement_mode: str,
    fallback_action: str,
    first_factor: str,
    status: str,
    realms: str,
    reverts_at: int | None,
    revert_set_at: int | None,
    disconnect_on_revoke: int,
    directory_name: str,
) -> Domain:
    return Domain(
        id,
        tenant_id,
        name,
        Mode(enforcement_mode),
        Fallback(fallback_action),
        FirstFactor(first_factor),
        status,
        tuple(realms.split("\n")) if realms else (),
        reverts_at,
        revert_set_at,
        bool(disconnect_on_revoke),
        directory_name,
    )


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
    disconnect_on_revoke: bool,
    at: int,
) -> int:
    """Return the new domain's id. Conflict: the name or a realm belongs to another domain of the tenant."""
    table = load(tx)
    for place, realm in enumerate((name, *realms)):
        other = table.by_realm(tenant_id, realm)
        if other is not None:
            which = f"entry {place} of realms" if place else "the name"
            raise Conflict(f"{which} belongs to domain {other.id}")
    domain_id = tx.value(
        int,
        "insert into domains (tenant_id, name, name_key, directory_name, enforcement_mode, fallback_action, "
        "first_factor, status, realms, disconnect_on_revoke, created_at) values (:tenant_id, :name, :name_key, "
        ":directory_name, :mode, :fallback, :first_factor, 'active', :realms, :disconnect, :at) returning id",
        tenant_id=tenant_id,
        name=name,
        name_key=fold(name),
        directory_name=directory_name,
        mode=mode,
        fallback=fallback,
        first_factor=first_factor,
        realms="\n".join(realms),
        disconnect=int(disconnect_on_revoke),
        at=at,
    )
    assert domain_id is not None  # noqa: S101  an insert returns its row
    return domain_id


@dataclass(frozen=True, slots=True)
class Change:
    """A change by an admin. None: unchanged. reverts_at: when the change is reverted, in microseconds; None: it stays,
    and an earlier change that waits for its confirmation is confirmed."""

    mode: Mode | None
    fallback: Fallback | None = None
    reverts_at: int | None = None


def set_mode(tx: Tx, domain_ids: Sequence[int], change: Change, at: int) -> None:
    """Set the mode of some domains, and drop their state from before break-glass.

    A second unconfirmed change reverts to the state before the first: a repeated request must not confirm a change.
    """
    waiting = "reverts_at = null, revert_set_at = null, revert_mode = null, revert_fallback = null"
    if change.reverts_at is not None:
        waiting = (
            "reverts_at = :reverts_at, revert_set_at = :at, revert_mode = coalesce(revert_mode, enforcement_mode), "
            "revert_fallback = coalesce(revert_fallback, fallback_action)"
        )
    for domain_id in domain_ids:
        parameters = {} if change.reverts_at is None else {"reverts_at": change.reverts_at, "at": at}
        tx.execute(
            f"update domains set {waiting}, enforcement_mode = coalesce(:mode, enforcement_mode), "
            "fallback_action = coalesce(:fallback, fallback_action), glass_mode = null, glass_fallback = null "
            "where id = :id",
            mode=change.mode,
            fallback=change.fallback,
            id=domain_id,
            **parameters,
        )


@dataclass(frozen=True, slots=True)
class State:
    """The mode of a domain, and the mode that it returns to at `reverts_at` or after break-glass."""

    id: int
    tenant_id: int
    name: str
    enforcement_mode: str
    fallback_action: str
    reverts_at: int | None
    restore_mode: str | None
    restore_fallback: str | None


def states(tx: Tx) -> dict[int, State]:
    """Return the state of every domain. restore_mode, restore_fallback: only if they differ from the present ones."""
    rows = tx.all(
        State,
        "select id, tenant_id, name, enforcement_mode, fallback_action, reverts_at, "
        "nullif(glass_mode, enforcement_mode) as restore_mode, "
        "nullif(glass_fallback, fallback_action) as restore_fallback from domains",
    )
    return {row.id: row for row in rows}


def set_first_factor(tx: Tx, domain_id: int, factor: FirstFactor) -> None:
    """Choose where a domain's passwords are checked."""
    tx.execute("update domains set first_factor = :factor where id = :id", factor=factor.value, id=domain_id)


def set_disconnect_on_revoke(tx: Tx, domain_id: int, disconnects: bool) -> None:
    """Choose whether live sessions end when a user loses access."""
    tx.execute(
        "update domains set disconnect_on_revoke = :disconnects where id = :id",
        disconnects=int(disconnects),
        id=domain_id,
    )


def revert(tx: Tx, domain_id: int, reverts_at: int) -> bool:
    """Revert an unconfirmed change; False if it was confirmed or changed again.

    During break-glass a domain stays in monitor mode, and the state after break-glass is reverted.
    """
    changed = tx.execute(
        "update domains set "
        "enforcement_mode = case when glass_mode is null then revert_mode else enforcement_mode end, "
        "fallback_action = case when glass_mode is null then revert_fallback else fallback_action end, "
        "glass_mode = case when glass_mode is null then null else revert_mode end, "
        "glass_fallback = case when glass_mode is null then null else revert_fallback end, "
        "reverts_at = null, revert_set_at = null, revert_mode = null, revert_fallback = null "
        "where id = :id and reverts_at = :reverts_at",
        id=domain_id,
        reverts_at=reverts_at,
    )
    return changed > 0


def break_glass(tx: Tx, fallback: Fallback | None) -> int:
    """Monitor every domain and store its state, unless it is stored already. Return the number of domains."""
    tx.execute(
        "update domains set glass_mode = enforcement_mode, glass_fallback = fallback_action where glass_mode is null"
    )
    return tx.execute(
        "update domains set enforcement_mode = 'monitor', fallback_action = coalesce(:fallback, fallback_action)",
        fallback=fallback,
    )


def restore(tx: Tx) -> list[int]:
    """Restore the state before break-glass, except for domains that were set since. Return the restored domains."""
    remembered = tx.all(_id, "select id from domains where glass_mode is not null order by id")
    tx.execute(
        "update domains set enforcement_mode = glass_mode, fallback_action = glass_fallback, glass_mode = null, "
        "glass_fallback = null where glass_mode is not null"
    )
    return remembered


def _id(*, id: int) -> int:
    return id
