"""SQL for reading and deleting entries of the audit trail; `store/audit.py` writes them."""

from dataclasses import dataclass

from sallyport.store.model import Tx, Value, without_case

FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry of the audit trail. at: the time in microseconds. changes: the changed fields in JSON."""

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
    """An entry with the orgId and tenantId of its tenant. organization, tenant: None for an entry about the whole
    installation."""

    organization: int | None
    tenant: int | None


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """A query for one page of entries. It selects the entries of a domain if `domain_id` is given, else of a tenant if
    `tenant_id` is given, else all entries.

    search: the text that an entry must contain; empty for any. since, until: the range of times; `until` is exclusive.
    action, actor: the exact values; empty for any. before: the (at, id) of the last entry on the previous page.
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
        """Whether the query has a filter other than domain and tenant."""
        return bool(self.search or self.action or self.actor or self.since or self.until < FOREVER)


_COLUMNS = ", ".join(AuditRow.__dataclass_fields__)
_SEARCHED = ("action", "actor", "target", "changes")


def newest(tx: Tx, query: AuditQuery) -> list[AuditRow]:
    """Return one page of entries, newest first."""
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
    """Return the number of matches. If the query has no filter other than domain and tenant, this is a stored total."""
    if query.narrowed:
        where, parameters = _filter(query)
        return tx.value(int, f"select count(*) from audit_trail where {where}", **parameters) or 0
    where, parameters = _of(query)
    return tx.value(int, f"select sum(value) from audit_totals where {where}", **parameters) or 0


def between(tx: Tx, after: int, last: int, limit: int) -> list[NumberedRow]:
    """Return at most `limit` entries after one id and up to another id."""
    columns = ", ".join(f"audit_trail.{name} as {name}" for name in AuditRow.__dataclass_fields__)
    return tx.all(
        NumberedRow,
        f"select {columns}, organization_id as organization, number as tenant "
        "from audit_trail left join tenants on tenants.id = audit_trail.tenant_id "
        "where audit_trail.id > :after and audit_trail.id <= :last order by audit_trail.id limit :limit",
        after=after,
        last=last,
        limit=limit,
    )


def _of(query: AuditQuery) -> tuple[str, dict[str, Value]]:
    """Return (SQL condition, parameters) for the entries of a domain, of a tenant, or for all entries."""
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
    """Delete the oldest entries before a time, at most `limit`; return their number. A trigger updates the stored
    totals."""
    oldest = "select id from audit_trail where at < :at order by at, id limit :limit"
    return tx.execute(f"delete from audit_trail where id in ({oldest})", at=at, limit=limit)
