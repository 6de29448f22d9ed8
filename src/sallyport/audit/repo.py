"""The SQL of the audit trail, as it is read and as it ends; `store/audit.py` writes it."""

from dataclasses import dataclass

from sallyport.store.model import Tx, Value, without_case

FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry. at: microseconds. changes: JSON."""

    id: int
    at: int
    tenant_id: int
    domain_id: int | None
    actor_kind: str
    actor: str
    token_id: int | None
    action: str
    target: str
    changes: str


@dataclass(frozen=True, slots=True)
class NumberedRow(AuditRow):
    """One entry with its tenant as bodies call it; None: of the whole installation."""

    organization: int | None
    tenant: int | None


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which entries: of a domain, else of a tenant, else of the whole installation, from `since` up to `until`.

    action, actor: equal to this; empty for any. before: (at, id) of the last entry of the page before.
    """

    tenant_id: int | None = None
    domain_id: int | None = None
    search: str = ""
    action: str = ""
    actor: str = ""
    since: int = 0
    until: int = FOREVER
    before: tuple[int, int] | None = None
    offset: int = 0
    limit: int = 10

    @property
    def narrowed(self) -> bool:
        """Whether it is not all of the domain's, the tenant's or the installation's."""
        return bool(self.search or self.action or self.actor or self.since or self.until < FOREVER)


_COLUMNS = ", ".join(AuditRow.__dataclass_fields__)
_SEARCHED = ("action", "actor", "target", "changes")


def newest(tx: Tx, query: AuditQuery) -> list[AuditRow]:
    """One page of entries, newest first."""
    where, parameters = _filter(query)
    if query.before is not None:
        parameters["before_at"], parameters["before_id"] = query.before
        where += " and at <= :before_at and (at < :before_at or id < :before_id)"
    return tx.all(
        AuditRow,
        f"select {_COLUMNS} from audit_trail where {where} order by at desc, id desc limit :limit offset :offset",
        limit=query.limit,
        offset=query.offset,
        **parameters,
    )


def matching(tx: Tx, query: AuditQuery) -> int:
    """How many entries match on all pages: counted, or the kept total where all are asked for."""
    if query.narrowed:
        where, parameters = _filter(query)
        return tx.value(int, f"select count(*) from audit_trail where {where}", **parameters) or 0
    where, parameters = _of(query)
    return tx.value(int, f"select sum(value) from audit_totals where {where}", **parameters) or 0


def after(tx: Tx, entry_id: int, limit: int) -> list[NumberedRow]:
    """The entries that were written next."""
    columns = ", ".join(f"audit_trail.{name} as {name}" for name in AuditRow.__dataclass_fields__)
    return tx.all(
        NumberedRow,
        f"select {columns}, organization_id as organization, number as tenant "
        "from audit_trail left join tenants on tenants.id = audit_trail.tenant_id "
        "where audit_trail.id > :id order by audit_trail.id limit :limit",
        id=entry_id,
        limit=limit,
    )


def last(tx: Tx) -> int:
    """The newest entry's id; 0 where there is none."""
    return tx.value(int, "select max(id) from audit_trail") or 0


def _of(query: AuditQuery) -> tuple[str, dict[str, Value]]:
    """A domain's entries, a tenant's, or all."""
    if query.domain_id is not None:
        return "domain_id = :d", {"d": query.domain_id}
    if query.tenant_id is not None:
        return "tenant_id = :t", {"t": query.tenant_id}
    return "true", {}


def _filter(query: AuditQuery) -> tuple[str, dict[str, Value]]:
    where, parameters = _of(query)
    where += " and at >= :since and at < :until"
    parameters |= {"since": query.since, "until": query.until}
    for column, value in (("action", query.action), ("actor", query.actor)):
        if value:
            where += f" and {column} = :{column}"
            parameters[column] = value
    if query.search:
        text, parameters["search"] = without_case("{}", query.search)
        where += " and (" + " or ".join(f"instr({text.format(column)}, :search) > 0" for column in _SEARCHED) + ")"
    return where, parameters


def delete_older(tx: Tx, at: int, limit: int) -> int:
    """Delete the oldest entries from before a time, at most `limit`; return how many. A trigger keeps the totals."""
    oldest = "select id from audit_trail where at < :at order by at, id limit :limit"
    return tx.execute(f"delete from audit_trail where id in ({oldest})", at=at, limit=limit)
