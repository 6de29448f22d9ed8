"""The SQL of domains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sallyport.areas.domains.domain import (
    MAX_REALMS,
    CertificateNames,
    Domain,
    DomainTable,
    Fallback,
    FirstFactor,
    Mode,
    RuleOrder,
    UnknownStations,
)
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.text import fold
from sallyport.store.model import LISTED, LISTED_TEXTS, Tx, Value, listed

_COLUMNS = (
    "id, tenant_id, name, enforcement_mode, fallback_action, first_factor, status, realms, reverts_at, revert_set_at, "
    "disconnect_on_revoke, directory_name, issuer_name, glass_mode, unknown_stations, "
    "rule_order, directory_max_age_h, stale_directory, certificate_names, lock_on_not_me, remember_h"
)


def load(tx: Tx) -> DomainTable:
    """Return all domains, ordered by the time of their addition."""
    keys = _keys(tx, "true")
    shape = partial(_domain, keys)
    return DomainTable(tx.all(shape, f"select {_COLUMNS} from domains where removed_at is null order by id"))


def find(tx: Tx, domain_id: int) -> Domain | None:
    """Return a domain, or None if it does not exist."""
    keys = _keys(tx, "domain_id = :id", id=domain_id)
    sql = f"select {_COLUMNS} from domains where id = :id and removed_at is null"
    return tx.one(partial(_domain, keys), sql, id=domain_id)


def get(tx: Tx, domain_id: int) -> Domain:
    """Return a domain. Raises NotFound."""
    if (found := find(tx, domain_id)) is None:
        raise NotFound("no such domain")
    return found


def _keys(tx: Tx, condition: str, **parameters: int) -> Mapping[tuple[int, str], str]:
    """Return the form for comparison of each realm, by the domain's id and the realm."""
    sql = f"select domain_id, realm, realm_key from domain_realms where {condition}"
    return {(int(str(domain_id)), str(realm)): str(key) for domain_id, realm, key in tx.rows(sql, **parameters)}


def _domain(
    keys: Mapping[tuple[int, str], str],
    /,
    *,
    id: int,
    name: str,
    enforcement_mode: str,
    fallback_action: str,
    first_factor: str,
    realms: str,
    disconnect_on_revoke: int,
    glass_mode: str | None,
    unknown_stations: str,
    rule_order: str,
    stale_directory: str,
    certificate_names: str,
    lock_on_not_me: int,
    **others: Value,
) -> Domain:
    return Domain(
        id=id,
        name=name,
        mode=Mode(enforcement_mode),
        fallback=Fallback(fallback_action),
        first_factor=FirstFactor(first_factor),
        realms=tuple(realms.split("\n")) if realms else (),
        disconnect_on_revoke=bool(disconnect_on_revoke),
        realm_keys=_folded(keys, id, name, realms),
        glass_mode=None if glass_mode is None else Mode(glass_mode),
        unknown_stations=UnknownStations(unknown_stations),
        rule_order=RuleOrder(rule_order),
        stale_directory=Fallback(stale_directory),
        certificate_names=CertificateNames(certificate_names),
        lock_on_not_me=bool(lock_on_not_me),
        **others,  # type: ignore[arg-type]  # columns that are stored as they are
    )


def _folded(keys: Mapping[tuple[int, str], str], domain_id: int, name: str, realms: str) -> tuple[str, ...]:
    """Return a domain's realm keys. A realm that a node of the previous release has added has no stored key yet."""
    return tuple(
        fold(realm) if (key := keys.get((domain_id, realm))) is None else key
        for realm in (name, *filter(None, realms.split("\n")))
    )


def add(tx: Tx, domain: Domain, keys: Mapping[str, str], at: int) -> int:
    """Insert a domain, and return its id. keys: the form for comparison of the name and of each realm.

    Raises Conflict if the name or a realm belongs to another domain of the tenant.
    """
    realms = (domain.name, *domain.realms)
    _refuse_taken(tx, domain.tenant_id, 0, "entry {} of realms", [keys[realm] for realm in realms])
    domain_id = tx.value(
        int,
        "insert into domains (tenant_id, name, name_key, directory_name, enforcement_mode, fallback_action, "
        "first_factor, status, realms, disconnect_on_revoke, issuer_name, unknown_stations, rule_order, "
        "directory_max_age_h, stale_directory, certificate_names, lock_on_not_me, remember_h, created_at) values "
        "(:tenant_id, :name, :name_key, :directory_name, :mode, :fallback, :first_factor, :status, :realms, "
        ":disconnect_on_revoke, :issuer_name, :unknown_stations, :rule_order, :directory_max_age_h, :stale_directory, "
        ":certificate_names, :lock_on_not_me, :remember_h, :at) returning id",
        tenant_id=domain.tenant_id,
        mode=domain.mode,
        fallback=domain.fallback,
        first_factor=domain.first_factor,
        status=domain.status,
        at=at,
        **_settings(domain, keys[domain.name]),
    )
    assert domain_id is not None  # noqa: S101  an insert returns its row
    _put_realms(tx, domain.tenant_id, domain_id, [(realm, keys[realm]) for realm in dict.fromkeys(realms)])
    return domain_id


def _settings(domain: Domain, name_key: str) -> dict[str, Value]:
    """Return the columns that `update` can change. name_key: the form for comparison of the name."""
    return {
        "name": domain.name,
        "name_key": name_key,
        "directory_name": domain.directory_name,
        "realms": "\n".join(domain.realms),
        "disconnect_on_revoke": int(domain.disconnect_on_revoke),
        "issuer_name": domain.issuer_name,
        "unknown_stations": domain.unknown_stations,
        "rule_order": domain.rule_order,
        "directory_max_age_h": domain.directory_max_age_h,
        "stale_directory": domain.stale_directory,
        "certificate_names": domain.certificate_names,
        "remember_h": domain.remember_h,
        "lock_on_not_me": int(domain.lock_on_not_me),
    }


def _put_realms(tx: Tx, tenant_id: int, domain_id: int, realms: Sequence[tuple[str, str]]) -> None:
    tx.execute("delete from domain_realms where domain_id = :d", d=domain_id)
    same = {"domain_id": domain_id, "tenant_id": tenant_id}
    tx.insert("domain_realms", ("realm", "realm_key"), realms, same=same)


def _refuse_taken(tx: Tx, tenant_id: int, domain_id: int, entry: str, keys: Sequence[str]) -> None:
    """Raise Conflict if the name or a realm belongs to another domain of the tenant.

    entry: a format string for the message, which shows the position of the realm in the request. keys: the name and the
    realms in the form for comparison.
    """
    rows = tx.rows(
        "select realm_key, min(domain_id) from domain_realms join domains on domains.id = domain_id "
        f"where domain_realms.tenant_id = :t and realm_key in {LISTED_TEXTS} and domain_id <> :d "
        "and removed_at is null group by realm_key",
        t=tenant_id,
        d=domain_id,
        ids=listed(dict.fromkeys(keys)),
    )
    taken = {str(key): str(other) for key, other in rows}
    for index, key in enumerate(keys):
        if key in taken:
            which = entry.format(index) if index else "the name"
            raise Conflict(f"{which} belongs to domain {taken[key]}: choose another one")


@dataclass(frozen=True, slots=True)
class Update:
    """A change of a domain's settings.

    name: the new name, or None to keep the name. The former name becomes a realm. settings: the new values of further
    fields of `Domain`, by name.
    """

    name: str | None = None
    add_realms: Sequence[str] = ()
    remove_realms: Sequence[str] = ()
    settings: Mapping[str, object] = field(default_factory=dict)


def update(tx: Tx, domain_id: int, change: Update, keys: Mapping[str, str]) -> tuple[Domain, Domain]:
    """Change a domain, and return the domain before and after the change. keys: the form for comparison of each name
    and realm in `change`.

    Raises NotFound. Raises Conflict if a name or realm belongs to another domain, or if the domain would have too many
    realms.
    """
    before = get(tx, domain_id)
    name = before.name if change.name is None else change.name
    keys = {**dict(zip((before.name, *before.realms), before.realm_keys, strict=True)), **keys}
    realms = {keys[realm]: realm for realm in (*before.realms, before.name, *change.add_realms)}
    for gone in (name, *change.remove_realms):  # the name is always a realm
        realms.pop(keys[gone], None)
    if len(realms) > MAX_REALMS:
        raise Conflict(f"a domain has at most {MAX_REALMS} realms: remove some realms first")
    new = [keys[realm] for realm in (name, *change.add_realms)]
    _refuse_taken(tx, before.tenant_id, domain_id, "new realm {}", new)
    changed: dict[str, object] = {"name": name, "realms": (*realms.values(),), "realm_keys": (keys[name], *realms)}
    after = replace(before, **change.settings, **changed)  # type: ignore[arg-type]
    columns = _settings(after, keys[name])
    tx.execute(
        f"update domains set {', '.join(f'{each} = :{each}' for each in columns)} where id = :id",
        **columns,
        id=domain_id,
    )
    named = zip((after.name, *after.realms), after.realm_keys, strict=True)
    _put_realms(tx, after.tenant_id, domain_id, list(named))
    return before, after


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the mode by an admin. A setting that is None stays unchanged.

    reverts_at: the time in microseconds at which the change is reverted. None makes this change permanent. If an
    earlier change waits for its confirmation, None also confirms the earlier change.
    """

    mode: Mode | None
    fallback: Fallback | None = None
    reverts_at: int | None = None


def set_mode(tx: Tx, domain_ids: Sequence[int], change: Change, at: int) -> None:
    """Set the mode of domains. Raises NotFound if a domain does not exist.

    A new mode ends break-glass for these domains: their modes from before it are deleted. Without a new mode, the
    function confirms an earlier change, and break-glass stays.

    A domain may already have an unconfirmed change when this change is made. Then the revert restores the state before
    the first change. Otherwise a repeated request would confirm the first change.
    """
    waiting = "reverts_at = null, revert_set_at = null, revert_mode = null, revert_fallback = null"
    if change.reverts_at is not None:
        waiting = (
            "reverts_at = :reverts_at, revert_set_at = :at, revert_mode = coalesce(revert_mode, enforcement_mode), "
            "revert_fallback = coalesce(revert_fallback, fallback_action)"
        )
    glass = "glass_mode = null, glass_fallback = null"
    if change.mode is None:
        glass = "glass_fallback = case when glass_mode is null then null else coalesce(:fallback, glass_fallback) end"
    for domain_id in domain_ids:
        parameters = {} if change.reverts_at is None else {"reverts_at": change.reverts_at, "at": at}
        changed = tx.execute(
            f"update domains set {waiting}, enforcement_mode = coalesce(:mode, enforcement_mode), "
            f"fallback_action = coalesce(:fallback, fallback_action), {glass} "
            "where id = :id and removed_at is null",
            mode=change.mode,
            fallback=change.fallback,
            id=domain_id,
            **parameters,
        )
        if not changed:
            raise NotFound("no such domain")


@dataclass(frozen=True, slots=True)
class State:
    """The mode of a domain, the time of its revert, and the mode to which the domain returns after break-glass."""

    id: int
    tenant_id: int
    name: str
    enforcement_mode: str
    fallback_action: str
    reverts_at: int | None
    restore_mode: str | None
    restore_fallback: str | None


def states(tx: Tx, domain_ids: Sequence[int] | None) -> dict[int, State]:
    """Return the states of domains by id. domain_ids: None for all domains of the installation.

    `restore_mode` and `restore_fallback` are None if break-glass has changed nothing.
    """
    these, given = ("true", {}) if domain_ids is None else (f"id in {LISTED}", {"ids": listed(domain_ids)})
    rows = tx.all(
        State,
        "select id, tenant_id, name, enforcement_mode, fallback_action, reverts_at, "
        "nullif(glass_mode, enforcement_mode) as restore_mode, "
        "nullif(glass_fallback, fallback_action) as restore_fallback from domains "
        f"where removed_at is null and {these}",
        **given,
    )
    return {row.id: row for row in rows}


def is_web(tx: Tx, domain_id: int) -> bool:
    """Return whether the first factor of a domain is `web`."""
    sql = "select 1 from domains where id = :id and first_factor = 'web' and removed_at is null"
    return tx.value(int, sql, id=domain_id) is not None


def set_first_factor(tx: Tx, domain_id: int, factor: FirstFactor) -> None:
    """Set a domain's first factor. Raises NotFound."""
    sql = "update domains set first_factor = :factor where id = :id and removed_at is null"
    if not tx.execute(sql, factor=factor.value, id=domain_id):
        raise NotFound("no such domain")


def revert(tx: Tx, domain_id: int, reverts_at: int) -> bool:
    """Revert an unconfirmed change. Return False if an admin has confirmed the change, or has changed the mode again.

    During break-glass the domain stays in monitor mode. In this case, the function reverts the stored mode, to which
    the domain returns after break-glass.
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


def set_kept_mode(tx: Tx, domain_id: int, mode: Mode, fallback: Fallback) -> None:
    """Set the mode of a domain for good, if it differs. During break-glass, set the mode to which it returns."""
    tx.execute(
        "update domains set enforcement_mode = case when glass_mode is null then :mode else enforcement_mode end, "
        "fallback_action = case when glass_mode is null then :fallback else fallback_action end, "
        "glass_mode = case when glass_mode is null then null else :mode end, "
        "glass_fallback = case when glass_mode is null then null else :fallback end, "
        "reverts_at = null, revert_set_at = null, revert_mode = null, revert_fallback = null where id = :id "
        "and (coalesce(glass_mode, enforcement_mode) <> :mode "
        "or coalesce(glass_fallback, fallback_action) <> :fallback)",
        id=domain_id,
        mode=mode,
        fallback=fallback,
    )


def break_glass(tx: Tx, fallback: Fallback | None) -> int:
    """Switch every domain to monitor, and return the number of domains. The function stores the former mode of each
    domain. If a former mode is already stored, the stored mode is kept."""
    tx.execute(
        "update domains set glass_mode = enforcement_mode, glass_fallback = fallback_action "
        "where glass_mode is null and removed_at is null"
    )
    return tx.execute(
        "update domains set enforcement_mode = 'monitor', fallback_action = coalesce(:fallback, fallback_action) "
        "where removed_at is null",
        fallback=fallback,
    )


def restore(tx: Tx) -> list[int]:
    """Restore the modes before break-glass, and return the restored domains.

    A domain whose mode was set after break-glass keeps its mode.
    """
    remembered = tx.all(_id, "select id from domains where glass_mode is not null order by id")
    tx.execute(
        "update domains set enforcement_mode = glass_mode, fallback_action = glass_fallback, glass_mode = null, "
        "glass_fallback = null where glass_mode is not null"
    )
    return remembered


def clients_by_default(tx: Tx, domain: Domain) -> list[str]:
    """Return the names of the RADIUS clients whose default domain is this domain.

    The default domain of a client is the first domain in its list. For a client of all domains, the default is the
    tenant's first domain.
    """
    first = "select min(id) from domains where tenant_id = :t and removed_at is null"
    rows = tx.rows(
        "select c.name, c.id from radius_client_domains d join radius_clients c on c.id = d.client_id "
        "where d.domain_id = :d and d.position = 0 union "
        f"select name, id from radius_clients where tenant_id = :t and all_domains = 1 and :d = ({first}) order by 2",
        d=domain.id,
        t=domain.tenant_id,
    )
    return [str(name) for name, _ in rows]


def has_open_imports(tx: Tx, domain_id: int) -> bool:
    """Return whether an import of the domain is waiting or running."""
    sql = "select 1 from directory_jobs where domain_id = :d and state in ('QUEUED', 'RUNNING') limit 1"
    return tx.value(int, sql, d=domain_id) is not None


def mark_removed(tx: Tx, domain_id: int, at: int) -> None:
    """Mark a domain as removed, free its name and its realms, and delete its configuration."""
    tx.execute(
        "update domains set removed_at = :at, name_key = :key, realms = '', status = 'removed', reverts_at = null, "
        "revert_set_at = null, revert_mode = null, revert_fallback = null, glass_mode = null, glass_fallback = null "
        "where id = :id",
        at=at,
        key=f"\n{domain_id}",  # a line end, because no name contains one
        id=domain_id,
    )
    for table in (
        "domain_realms",
        "mfa_providers",
        "further_providers",
        "first_factors",
        "server_certificates",
        "directory_schedules",
        "radius_client_domains",
    ):
        tx.execute(f"delete from {table} where domain_id = :id", id=domain_id)


def removed(tx: Tx) -> list[tuple[int, int]]:
    """Return (id, time of the removal) for each removed domain whose row still exists."""
    rows = tx.rows("select id, removed_at from domains where removed_at is not null order by id")
    return [(int(str(domain_id)), int(str(at))) for domain_id, at in rows]


def delete(tx: Tx, domain_id: int) -> None:
    """Delete the row of a removed domain. All rows that refer to the domain must be deleted already."""
    tx.execute("delete from domains where id = :id and removed_at is not null", id=domain_id)


def _id(*, id: int) -> int:
    return id
