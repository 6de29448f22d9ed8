"""The audit trail: the author, the time and the content of each change. The change and its entry are written in one
transaction, so that neither exists without the other.

    tx.execute(UPDATE, ...)
    audit.record(tx, "group.update", at=now, tenant_id=7, domain_id=1, target="group 3 ops", changes=changed(old, new))
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from sallyport.base import trace
from sallyport.base.actor import acting
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.store.model import Tx

OVERRIDE: Final = "configuration.override"
"""The action of the entry beside each entry of a change that was made although files manage the object. Its target has
the names of these objects."""
_COLUMNS: Final = (
    *("at", "tenant_id", "domain_id", "actor_kind", "actor", "token_id", "request_id"),
    *("action", "target", "changes"),
)
HIDDEN: Final = "********"
"""The text in place of a secret."""
INSTALLATION: Final = 0
"""The tenant_id of entries that belong to no tenant. The command line shows them; no tenant sees them."""
MAX_LENGTH: Final = 2000
"""Maximum number of characters of a recorded value. Without this limit, a page of a thousand entries could be too
large, because a single login rule may have a million characters."""
MAX_TOTAL_LENGTH: Final = 16_000
"""Maximum number of characters of all values of an entry, not counting the names of the fields. If they are more, each
value gets an equal share."""


def changed(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the changed fields, each as [value before, value after].

    Secrets must not be passed: the caller replaces each secret by HIDDEN. If both values of a field are HIDDEN, the
    field counts as changed.
    """
    fields = dict.fromkeys([*before, *after])
    return {
        field: [before.get(field), after.get(field)]
        for field in fields
        if before.get(field) != after.get(field) or HIDDEN in (before.get(field), after.get(field))
    }


def record(
    tx: Tx,
    action: str,
    *,
    at: int,
    tenant_id: int,
    target: str,
    domain_id: int | None = None,
    changes: Mapping[str, JSON] | None = None,
) -> None:
    """Write an entry of the audit trail. The author is the acting token, user or service.

    action: `noun.verb`, such as `client.add`. target: kind, id and name of the changed object or person. changes: the
    changed fields without secrets, as `changed` returns them; long values are truncated. at: the time in microseconds.
    """
    record_all(tx, action, [(target, as_kept(changes or {}))], at=at, tenant_id=tenant_id, domain_id=domain_id)


def record_all(
    tx: Tx,
    action: str,
    entries: Sequence[tuple[str, str]],
    *,
    at: int,
    tenant_id: int,
    domain_id: int | None = None,
) -> None:
    """Write one entry for each of several objects. entries: (target, changes) for each object, where the changes are in
    the form of `as_kept`."""
    actor, request = acting(), trace.current()
    by = (at, tenant_id, domain_id, actor.kind, actor.name, actor.token_id, request.request_id if request else None)
    rows = [(*by, action, target, changes) for target, changes in entries]
    if actor.overrides:
        rows.append((*by, OVERRIDE, actor.overrides.names, "{}"))
        actor.overrides.follow(tx)
    tx.insert(
        "audit_trail",
        _COLUMNS,
        rows,
    )
    count(tx, tenant_id, domain_id, len(rows))


def record_in(
    tx: Tx, action: str, domain_id: int, target: str, changes: Mapping[str, JSON] | None = None, *, at: int
) -> None:
    """Write an entry about an object of a domain to the audit trail of the domain's tenant.

    Raises NotFound if the domain was removed meanwhile. The caller's transaction then fails, so that nothing in a
    removed domain is changed.
    """
    record(tx, action, at=at, tenant_id=tenant_of(tx, domain_id), domain_id=domain_id, target=target, changes=changes)


def record_all_in(tx: Tx, action: str, domain_id: int, targets: Sequence[str], *, at: int) -> None:
    """For each of several objects of a domain, write one entry to the audit trail. The entries contain no changed
    fields. Raises NotFound if the domain was removed."""
    entries = [(target, "{}") for target in targets]
    record_all(tx, action, entries, at=at, tenant_id=tenant_of(tx, domain_id), domain_id=domain_id)


def count(tx: Tx, tenant_id: int, domain_id: int | None, change: int) -> None:
    """Add `change` to the stored number of audit entries. The number counts the entries of one tenant and one domain.
    domain_id: None for the number of the tenant's entries that belong to no domain."""
    tx.execute(
        "insert into audit_totals (tenant_id, domain_id, value) values (:t, :d, :change) "
        "on conflict (tenant_id, domain_id) do update set value = audit_totals.value + excluded.value",
        t=tenant_id,
        d=domain_id or 0,
        change=change,
    )


def tenant_of(tx: Tx, domain_id: int) -> int:
    """Return the id of a domain's tenant. Raises NotFound if the domain does not exist or was removed."""
    tenant_id = tx.value(int, "select tenant_id from domains where id = :id and removed_at is null", id=domain_id)
    if tenant_id is None:
        raise NotFound("domain not found")
    return tenant_id


def share_of(tx: Tx, domain_id: int) -> int:
    """Return the id of the tenant whose limits apply to a domain. The domain may be removed already, if its row still
    exists. Return 0 if the row does not exist."""
    return tx.value(int, "select tenant_id from domains where id = :id", id=domain_id) or 0


def as_kept(changes: Mapping[str, JSON]) -> str:
    """Return the changes as JSON, as the audit trail stores them. Long values are truncated."""
    text = json.dumps(_bounded(changes, MAX_LENGTH), ensure_ascii=False)
    return (
        text if len(text) <= MAX_TOTAL_LENGTH else json.dumps(shortened(changes, MAX_TOTAL_LENGTH), ensure_ascii=False)
    )


def shortened(changes: Mapping[str, JSON], most: int) -> dict[str, JSON]:
    """Return changes whose values have at most `most` characters altogether. Each value gets an equal share."""
    return _bounded(changes, min(MAX_LENGTH, most // (2 * len(changes) or 1)))


def _bounded(changes: Mapping[str, JSON], longest: int) -> dict[str, JSON]:
    return {
        field: [_beginning(each, longest) for each in value] if isinstance(value, list) else _beginning(value, longest)
        for field, value in changes.items()
    }


def _beginning(value: JSON, longest: int) -> JSON:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= longest else f"{text[:longest]}..."
