"""SQL of the objects that files manage."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.configuration.item import Plan
from sallyport.base.errors import Conflict
from sallyport.store.model import LISTED, LISTED_TEXTS, Tx, Value, listed

_SLICES: Final = "from configured_slices where tenant_id = :t"


class Outdated(Conflict):
    """The configuration has changed since a plan was made."""


@dataclass(frozen=True, slots=True)
class Noted:
    """What an object was before a transaction of several. number: counted from 0 in an apply. name: its form for
    comparison. fields: sealed; None for an object that must not exist at the end. removes: whether the apply removes
    it, and all other changes are written."""

    number: int
    kind: str
    name: str
    fields: bytes | None
    removes: bool = False


def domains(tx: Tx, tenant_id: int) -> dict[int, str]:
    """Return the names of a tenant's domains, by id."""
    sql = "select id, name from domains where tenant_id = :t and removed_at is null order by id"
    return {int(str(domain_id)): str(name) for domain_id, name in tx.rows(sql, t=tenant_id)}


def version(tx: Tx) -> int:
    """Return the version of the configuration."""
    return tx.value(int, "select version from config_version") or 0


def check_version(tx: Tx, plan: Plan) -> None:
    """Raise Outdated if the configuration has changed since a plan was made, or if another apply is unfinished. Until
    the transaction ends, no other node changes the configuration or begins an apply."""
    _lock(tx)
    if is_unfinished(tx):
        raise Outdated("another apply is being written: try again after its end")
    if version(tx) != plan.version:
        raise Outdated("the configuration has changed since the plan was made: make a new plan")


def managed(tx: Tx, tenant_id: int) -> dict[str, set[str]]:
    """Return the names of the tenant's objects that files manage, by kind."""
    found = dict[str, set[str]]()
    for kind, name in tx.rows("select kind, name from configured_items where tenant_id = :t", t=tenant_id):
        found.setdefault(str(kind), set()).add(str(name))
    return found


def manages(tx: Tx, tenant_id: int, kind: str) -> bool:
    """Return whether files manage an object of a kind."""
    sql = "select 1 from configured_items where tenant_id = :t and kind = :kind limit 1"
    return bool(tx.value(int, sql, t=tenant_id, kind=kind))


def managed_of_domain(tx: Tx, tenant_id: int, kind: str, domain: str) -> list[str]:
    """Return the names of a domain's objects that files manage. domain: the form for comparison of its name."""
    head = f"{domain}\n"
    sql = (
        "select name from configured_items where tenant_id = :t and kind = :kind "
        "and substr(name, 1, cast(:n as integer)) = :head"
    )
    return [str(name) for (name,) in tx.rows(sql, t=tenant_id, kind=kind, n=len(head), head=head)]


def managed_among(tx: Tx, tenant_id: int, kind: str, names: Sequence[str]) -> list[str]:
    """Return the names that belong to objects that files manage, in order."""
    sql = (
        f"select name from configured_items where tenant_id = :t and kind = :kind and name in {LISTED_TEXTS} "
        "order by name"
    )
    return [str(name) for (name,) in tx.rows(sql, t=tenant_id, kind=kind, ids=listed(names))]


def named(tx: Tx, names: str, ids: Iterable[int]) -> list[tuple[int, int, str]]:
    """Return the id, the owner and the name of objects. names: `Kind.names`."""
    sql = f"select id, owner, name from ({names}) as named where id in {LISTED} order by id"
    return [(int(str(id_)), int(str(owner)), str(name)) for id_, owner, name in tx.rows(sql, ids=listed(ids))]


def rename(tx: Tx, tenant_id: int, kind: str, before: str, after: str) -> None:
    """Let files manage an object under its new name. before, after: the forms for comparison of its names."""
    same: dict[str, Value] = {"t": tenant_id, "kind": kind, "after": after}
    tx.execute("delete from configured_items where tenant_id = :t and kind = :kind and name = :after", **same)
    sql = "update configured_items set name = :after where tenant_id = :t and kind = :kind and name = :before"
    tx.execute(sql, before=before, **same)


def manage(tx: Tx, tenant_id: int, names: Mapping[str, Sequence[str]], released: Mapping[str, Sequence[str]]) -> None:
    """Store that files manage objects, and that they manage others no more. names, released: by kind."""
    for kind, gone in released.items():
        sql = f"delete from configured_items where tenant_id = :t and kind = :kind and name in {LISTED_TEXTS}"
        tx.execute(sql, t=tenant_id, kind=kind, ids=listed(gone))
    rows = [(kind, name) for kind, several in names.items() for name in several]
    same = {"tenant_id": tenant_id}
    tx.insert("configured_items", ("kind", "name"), rows, same=same, on_conflict="on conflict do nothing")


def rename_domain(tx: Tx, tenant_id: int, kinds: Sequence[str], before: str, after: str) -> None:
    """Rename a domain in the names of objects that files manage. kinds: those whose objects belong to a domain. before,
    after: the forms for comparison of its names. Rows of a former domain with the new name are deleted."""
    if before == after:
        return
    own = (
        "where tenant_id = :t and (kind = 'domain' and name = :name "
        f"or kind in {LISTED_TEXTS} and substr(name, 1, cast(:n as integer)) = :head)"
    )
    old: dict[str, Value] = {"name": before, "head": f"{before}\n", "n": len(before) + 1}
    new: dict[str, Value] = {"name": after, "head": f"{after}\n", "n": len(after) + 1}
    tx.execute(f"delete from configured_items {own}", t=tenant_id, ids=listed(kinds), **new)
    renamed = "cast(:new as text) || substr(name, cast(:n as integer))"
    tx.execute(f"update configured_items set name = {renamed} {own}", t=tenant_id, ids=listed(kinds), new=after, **old)


# --- an apply in several transactions -------------------------------------------------------------------------------


def identity(tenant_id: int, number: int) -> str:
    """Return the associated data with which the fields of a `Noted` are sealed."""
    return f"configured_slices/{tenant_id}/{number}"


def note(tx: Tx, tenant_id: int, run: str, noted: Sequence[Noted], at: int) -> None:
    """Store what objects were before a transaction of several. run: of the apply. at: the time in microseconds."""
    rows = [(each.number, each.kind, each.name, each.fields, int(each.removes)) for each in noted]
    same: dict[str, Value] = {"tenant_id": tenant_id, "run": run, "at": at}
    tx.insert("configured_slices", ("number", "kind", "name", "fields", "removes"), rows, same=same)


def check_noted(tx: Tx, tenant_id: int, run: str, count: int) -> None:
    """Raise Outdated if another run has undone an apply meanwhile. Until the transaction ends, no other run takes it
    over. count: the number of objects that the apply has noted."""
    _lock(tx)
    if tx.value(int, f"select max(number) {_SLICES} and run = :run", t=tenant_id, run=run) != count - 1:
        raise _taken()


def take_over(tx: Tx, tenant_id: int, before: str, run: str, at: int) -> list[Noted]:
    """Let a new run end what an unfinished one has written. Return what that has noted, in the order of its changes;
    nothing if it has ended or was taken over. before: the unfinished run. at: the time in microseconds."""
    _lock(tx)
    columns = "number, kind, name, fields, removes"
    noted = tx.all(Noted, f"select {columns} {_SLICES} and run = :run order by number", t=tenant_id, run=before)
    sql = "update configured_slices set run = :run, at = :at where tenant_id = :t and run = :before"
    tx.execute(sql, t=tenant_id, run=run, at=at, before=before)
    return noted


def continue_undo(tx: Tx, tenant_id: int, run: str, at: int) -> None:
    """Show that an undo goes on. Raise Outdated if another run has taken it over. at: the time in microseconds."""
    _lock(tx)
    last = f"number = (select max(number) {_SLICES})"
    sql = f"update configured_slices set at = :at where tenant_id = :t and run = :run and {last}"
    if not tx.execute(sql, t=tenant_id, run=run, at=at):
        raise _taken()


def forget_noted(tx: Tx, tenant_id: int, run: str) -> None:
    """Forget what a run has noted or taken over, because it has ended."""
    tx.execute(f"delete {_SLICES} and run = :run", t=tenant_id, run=run)


def is_unfinished(tx: Tx) -> bool:
    """Return whether an apply in several transactions has neither ended nor been undone."""
    return tx.value(int, "select 1 from configured_slices limit 1") is not None


def unfinished(tx: Tx, before: int, after: int) -> list[tuple[int, str]]:
    """Return the tenants with an unfinished apply, and its run. before, after: only if its last transaction was before
    or after these times, in microseconds. A time in the future is of a clock that was set back."""
    sql = (
        "select tenant_id, max(run) from configured_slices group by tenant_id "
        "having max(at) < :before or max(at) > :after order by tenant_id"
    )
    return [(int(str(tenant_id)), str(run)) for tenant_id, run in tx.rows(sql, before=before, after=after)]


def _lock(tx: Tx) -> None:
    """Until the transaction ends, let no other node change the configuration, or write or undo an apply."""
    tx.execute("update config_version set version = version")


def _taken() -> Outdated:
    return Outdated("the changes were undone meanwhile, because they took too long: apply the files again")
