"""Triggers that count the rows of each tenant and enforce the tenant's limits, as in `schema.limits`, but in
PostgreSQL's SQL.

A trigger runs once for a statement, and counts all rows of the statement together. PostgreSQL makes a new version of a
counter at each change. So counting 100,000 rows one by one would read 100,000 versions.
"""

from collections.abc import Iterator
from typing import Final

from sallyport.settings.limits import HISTORIES, UNCHECKED
from sallyport.store.schema.limits import COUNTED, CountedTable

_BY_TIME: Final = ("audit_trail", "radius_client_history")
"""The histories whose rows belong to a tenant; their index is by time. In all other histories, a row belongs to a
domain,
and the index is by id."""


def triggers() -> Iterator[str]:
    """Yield the SQL that creates the functions and triggers of all limits."""
    for counted in COUNTED:
        table = counted.table
        check = "" if counted.limit in UNCHECKED else _check(counted)
        gained, lost = _count(counted, "changed", "1"), _count(counted, "former", "-1")
        yield from _trigger(counted, "added", f"insert on {table}", "new table as changed", gained + check)
        yield from _trigger(counted, "deleted", f"delete on {table}", "old table as former", lost)
        if "state" in counted.only:
            both = "old table as former new table as changed"
            yield from _trigger(counted, "updated", f"update on {table}", both, lost + gained + check)


def _trigger(counted: CountedTable, suffix: str, event: str, tables: str, body: str) -> Iterator[str]:
    name = f"{counted.table}_{counted.limit}_{suffix}"
    whole = f"declare over record; begin {body} return null; end"
    yield f"create function {name}() returns trigger language plpgsql as $$ {whole} $$"
    yield f"create trigger {name} after {event} referencing {tables} for each statement execute function {name}()"


def _count(counted: CountedTable, rows: str, step: str) -> str:
    """Return the statement that adds the number of rows in a transition table to the counters of their tenants."""
    tenant, only = counted.tenant.format(row="counted"), counted.only.format(row="counted")
    each = f"select {tenant} as tenant from {rows} as counted where {only}"
    return (
        f"insert into tenant_rows (tenant_id, name, value) select tenant, '{counted.limit}', {step} * count(*) "
        f"from ({each}) as owners where tenant is not null group by tenant order by tenant "
        "on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value; "
    )


def _check(counted: CountedTable) -> str:
    """Return the statements that a trigger runs after rows were added. If the rows exceed the limit, the statements
    reject the new rows. In a history, they delete the oldest rows instead."""
    owners = f"select {counted.tenant.format(row='counted')} from changed as counted"
    excess = (
        "select r.tenant_id, r.value - l.most as surplus from tenant_rows r join limits l on l.name = r.name "
        f"where r.name = '{counted.limit}' and r.value > l.most and r.tenant_id in ({owners})"
    )
    if counted.limit not in HISTORIES:
        return f"if exists ({excess}) then raise exception 'limit: {counted.limit}'; end if; "
    # Delete up to two rows for each new row, so that a lowered limit is reached gradually.
    most = "limit least(over.surplus, 2 * (select count(*) from changed))"
    if counted.table in _BY_TIME:
        oldest = f"select id from {counted.table} where tenant_id = over.tenant_id order by at, id {most}"
    else:  # one index look-up for each domain
        kept = counted.spares.format(row="t")
        of_domain = f"select t.id from {counted.table} t where t.domain_id = d.id and not ({kept}) order by t.id {most}"
        oldest = (
            f"select o.id from domains d cross join lateral ({of_domain}) as o where d.tenant_id = over.tenant_id "
            f"order by o.id {most}"
        )
    return f"for over in {excess} loop delete from {counted.table} where id in ({oldest}); end loop; "
