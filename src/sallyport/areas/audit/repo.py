"""The SQL that reads and deletes entries of the audit trail. `store/audit.py` writes the entries."""

import json
from dataclasses import dataclass
from typing import Annotated

from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.store import audit
from sallyport.store.model import Tx, Value, columns_of, without_case
from sallyport.store.search import bounded_total, from_end

FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry of the audit trail. at: the time of the change in microseconds. changes: the changed fields as JSON."""

    id: Annotated[int, Wire("Id of the entry; later entries have higher ids.", "auditId")]
    at: Annotated[int, Wire("Time of the change, ISO 8601 in UTC.", "time", iso)]
    tenant_id: int
    domain_id: Annotated[
        int | None, Wire("Id of the domain, or null if the change concerns no domain.", "domainId", after="target")
    ]
    actor_kind: Annotated[
        str, Wire("Kind of the actor: token, administrator, person, agent, command line or service.", "actorKind")
    ]
    actor: Annotated[str, Wire("Name of the actor.")]
    token_id: Annotated[int | None, Wire("Id of the actor's token, or null if the actor is not a token.", "tokenId")]
    action: Annotated[str, Wire("Action, such as `domain.add`.")]
    target: Annotated[str, Wire("Object that was changed, as text.")]
    changes: str
    request_id: Annotated[
        str | None,
        Wire(
            "X-Request-Id in the answer to the request that has made the change, or the trace id of the login that has "
            "caused it. Empty if there is neither, such as for a lock after logins that were decided at once.",
            "requestId",
            empty=True,
            after="changes",
        ),
    ]

    @Wire(
        "Changed fields, each as [before, after]. The values of secrets are hidden. Long values are "
        "truncated, and more so on a page with many long entries.",
        "changes",
    )
    def shown_changes(self, most: int) -> dict[str, object]:
        """Return the changes. If they have more than `most` characters, the values are truncated."""
        changes = json.loads(self.changes)
        return changes if len(self.changes) <= most else dict[str, object](audit.shortened(changes, most))


@dataclass(frozen=True, slots=True)
class NumberedRow(AuditRow):
    """An entry, with the numbers of the tenant to which it belongs. organization: the orgId. tenant: the tenantId. Both
    are None if the entry concerns the whole installation."""

    organization: int | None
    tenant: int | None


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """A query for one page of entries. If `domain_id` is given, the query selects the entries of this domain. If only
    `tenant_id` is given, the query selects the entries of this tenant. If neither is given, the query selects all
    entries.

    search: the text that an entry must contain, or empty for any text. since: the start of the period. until: the end
    of the period, which no longer belongs to the period. action, actor: the exact values, or empty for any value.
    before: the (at, id) of the last entry on the previous page.
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
        """Whether the query filters by anything other than domain and tenant."""
        return bool(self.search or self.action or self.actor or self.since or self.until < FOREVER)


_COLUMNS = ", ".join(columns_of(AuditRow))
_SEARCHED = ("action", "actor", "target", "changes", "request_id")


def newest(tx: Tx, query: AuditQuery) -> list[AuditRow]:
    """Return one page of entries, the newest first."""
    where, parameters = _filter(query)
    is_whole = query.offset and query.before is None and not query.narrowed
    reverse = from_end(_stored_total(tx, query), query.offset, query.limit) if is_whole else None
    order, (offset, limit) = ("asc", reverse) if reverse else ("desc", (query.offset, query.limit))
    if query.before is not None:
        parameters["before_at"], parameters["before_id"] = query.before
        where += " and at <= :before_at and (at < :before_at or id < :before_id)"
    found = tx.all(
        AuditRow,
        f"select {_COLUMNS} from audit_trail where {where} order by at {order}, id {order} limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **parameters,
    )
    return found[::-1] if reverse else found


def matching(tx: Tx, query: AuditQuery, found: int) -> int:
    """Return the number of entries that match the query. If the query has no filter, or filters only by domain or
    tenant, the number is read from the stored totals. Otherwise at most MAX_COUNTED entries are counted, and the
    number may be a `Minimum`. found: the number of entries on the page."""
    if query.narrowed:
        where, parameters = _filter(query)
        ids = f"select id from audit_trail where {where}"
        return bounded_total(tx, ids, found, offset=query.offset, limit=query.limit, **parameters)
    return _stored_total(tx, query)


def _stored_total(tx: Tx, query: AuditQuery) -> int:
    where, parameters = _of(query)
    return tx.value(int, f"select sum(value) from audit_totals where {where}", **parameters) or 0


def between(tx: Tx, after: int, last: int, limit: int) -> list[NumberedRow]:
    """Return at most `limit` entries. The id of each entry is greater than `after`, and not greater than `last`."""
    columns = ", ".join(f"audit_trail.{name} as {name}" for name in columns_of(AuditRow))
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
    """Return an SQL condition and its parameters, for the domain or the tenant of a query. If the query has no domain
    and no tenant, the condition selects all entries."""
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
    """Delete the oldest entries that are older than the time `at`, but at most `limit` of them. Return the number of
    deleted entries. A trigger of the database updates the stored totals."""
    oldest = "select id from audit_trail where at < :at order by at, id limit :limit"
    return tx.execute(f"delete from audit_trail where id in ({oldest})", at=at, limit=limit)
