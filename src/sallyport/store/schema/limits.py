"""Triggers that count the rows of each tenant and enforce the tenant's limits (`settings/limits.py`).

A trigger counts a row when a statement adds or deletes the row, so no code can bypass a limit. If a new row exceeds the
limit, the trigger aborts the statement with the message `limit: NAME`. In a history, the trigger deletes the tenant's
oldest rows instead.

The journal of logins adds devices and stations of many tenants in one transaction. An aborted statement would fail the
logins of other tenants. So `inventory/devices/repo` checks `exceeds` before it adds a row.

`transform()` of sqlite-utils drops triggers. So a migration that uses `transform()` on one of these tables must create
the triggers again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sallyport.settings.limits import HISTORIES, UNCHECKED
from sallyport.store.model import Tx

_TENANT = "{row}.tenant_id"
_DOMAIN = "(select tenant_id from domains where id = {row}.domain_id)"
_OPEN = "{row}.state in ('QUEUED', 'RUNNING')"


def _through(table: str, column: str) -> str:
    """Return SQL for the tenant of a row that has no domain_id. The row refers to a row of `table`, which has a
    domain_id. column: the column with the id of the row of `table`."""
    owner = f"select domain_id from {table} where id = {{row}}.{column}"
    return f"(select tenant_id from domains where id = ({owner}))"


@dataclass(frozen=True, slots=True)
class CountedTable:
    """A table whose rows count towards a limit.

    tenant: SQL for the tenant of a row. only: SQL condition for the rows that count. spares: only for a history; SQL
    condition for the rows that are never deleted.
    """

    limit: str
    table: str
    tenant: str = _DOMAIN
    only: str = "true"
    spares: str = "false"


COUNTED = (
    CountedTable("access_tokens", "access_tokens", _TENANT),
    CountedTable("agent_orders", "agent_orders", _through("endpoint_instances", "instance_id")),
    CountedTable("agent_grants", "agent_grants", _through("endpoint_instances", "instance_id")),
    CountedTable("api_keys", "api_keys"),
    CountedTable("api_key_machines", "api_key_machines", _through("api_keys", "key_id")),
    CountedTable("bypass_stations", "bypass_stations"),
    CountedTable(
        "client_domains", "radius_client_domains", "(select tenant_id from radius_clients where id = {row}.client_id)"
    ),
    CountedTable("credentials", "credentials", _TENANT),
    CountedTable("devices", "devices"),
    CountedTable("did_keys", "did_keys", "(select tenant_id from dids where id = {row}.did_id)"),
    CountedTable("dids", "dids", _TENANT),
    CountedTable("directories", "directories"),
    CountedTable("directory_groups", "directory_groups"),
    CountedTable("directory_members", "directory_members", _through("directories", "directory_id")),
    CountedTable("directory_units", "directory_units"),
    CountedTable("directory_users", "directory_users"),
    CountedTable("discovered_accounts", "agent_discovered", _through("endpoint_instances", "instance_id")),
    CountedTable("domains", "domains", _TENANT),
    CountedTable("endpoint_assignments", "endpoint_instance_users", _through("endpoint_instances", "instance_id")),
    CountedTable("endpoint_assignments", "endpoint_instance_groups", _through("endpoint_instances", "instance_id")),
    CountedTable("endpoint_assignments", "endpoint_group_users", _through("endpoint_groups", "group_id")),
    CountedTable("endpoint_groups", "endpoint_groups"),
    CountedTable("endpoint_instances", "endpoint_instances"),
    CountedTable("endpoint_users", "endpoint_users"),
    CountedTable("escrowed_passwords", "agent_passwords"),
    CountedTable("login_rules", "login_rules"),
    CountedTable("password_policies", "password_policies", _TENANT),
    CountedTable(
        "policy_assignments",
        "policy_instances",
        "(select tenant_id from password_policies where id = {row}.policy_id)",
    ),
    CountedTable("presentation_requests", "presentation_requests", only="{row}.challenge_id is null"),
    CountedTable("radius_clients", "radius_clients", _TENANT),
    CountedTable("schemas", "credential_schemas", _TENANT),
    CountedTable("stations", "stations"),
    CountedTable("taken_over_accounts", "agent_takeovers"),
    CountedTable("waiting_imports", "directory_jobs", only=_OPEN),
    CountedTable("wallet_assignments", "endpoint_user_wallets", _through("endpoint_users", "user_id")),
    CountedTable("wallet_assignments", "endpoint_user_credentials", _through("endpoint_users", "user_id")),
    CountedTable("wallets", "wallets"),
    CountedTable("agent_reports", "agent_reports"),
    CountedTable("audit_entries", "audit_trail", _TENANT, only="{row}.tenant_id > 0"),
    CountedTable("client_history", "radius_client_history", _TENANT),
    CountedTable("device_history", "device_history"),
    CountedTable("drift_reports", "agent_drift"),
    CountedTable("import_jobs", "directory_jobs", spares=_OPEN),
)


def triggers() -> Iterator[str]:
    """Yield the SQL that creates all triggers of the limits."""
    for counted in COUNTED:
        yield from _triggers(counted, is_history=counted.limit in HISTORIES)


def exceeds(limit: str, domain: str, rows: str = "1") -> str:
    """Return an SQL condition. It is true if a domain's tenant would exceed a limit with additional rows.

    limit: the name of the limit. domain: SQL for the domain's id. rows: SQL for the number of additional rows.
    """
    tenant = f"(select tenant_id from domains where id = {domain})"
    kept = f"select value from tenant_rows where tenant_id = {tenant} and name = '{limit}'"
    return f"exists (select 1 from limits where name = '{limit}' and most < {rows} + coalesce(({kept}), 0))"


def replace_limits(tx: Tx, limits: Mapping[str, int]) -> None:
    """Replace the limits that the triggers read."""
    tx.execute("delete from limits")
    for name, most in limits.items():
        tx.execute("insert into limits (name, most) values (:name, :most)", name=name, most=most)


def _triggers(counted: CountedTable, *, is_history: bool) -> Iterator[str]:
    name, table = counted.limit, counted.table
    prefix = f"create trigger {table}_{name}"
    tenant, only = ({row: sql.format(row=row) for row in ("new", "old")} for sql in (counted.tenant, counted.only))
    insert = "insert into tenant_rows (tenant_id, name, value) select tenant"
    conflict = "on conflict (tenant_id, name) do update set value = tenant_rows.value + excluded.value"
    add = f"{insert}, '{name}', 1 from (select {tenant['new']} as tenant) where tenant is not null {conflict}"
    if name not in UNCHECKED:
        add += f"; {_enforced(counted, is_history=is_history)}"
    remove = f"update tenant_rows set value = value - 1 where tenant_id = {tenant['old']} and name = '{name}'"
    yield f"{prefix}_added after insert on {table} when {only['new']} begin {add}; end"
    yield f"{prefix}_deleted after delete on {table} when {only['old']} begin {remove}; end"
    if "state" in counted.only:
        gained, lost = f"{only['new']} and not {only['old']}", f"{only['old']} and not {only['new']}"
        yield f"{prefix}_gained after update of state on {table} when {gained} begin {add}; end"
        yield f"{prefix}_lost after update of state on {table} when {lost} begin {remove}; end"


def _enforced(counted: CountedTable, *, is_history: bool) -> str:
    """Return the statements that a trigger runs after a row was added, to enforce the limit."""
    tenant = counted.tenant.format(row="new")
    excess = (
        "tenant_rows r join limits l on l.name = r.name "
        f"where r.tenant_id = {tenant} and r.name = '{counted.limit}' and r.value > l.most"
    )
    if not is_history:
        return f"select raise(abort, 'limit: {counted.limit}') from {excess}"
    if counted.tenant == _TENANT:
        first = f"select id from {counted.table} where tenant_id = {tenant} order by at limit 1"
    else:  # one look-up in an index for each domain
        spared = counted.spares.format(row="t")
        each = f"select min(t.id) from {counted.table} t where t.domain_id = d.id and not ({spared})"
        first = f"select min(id) from (select ({each}) as id from domains d where d.tenant_id = {tenant})"
    delete = f"delete from {counted.table} where id = case when exists (select 1 from {excess}) then ({first}) end"
    return f"{delete}; {delete}"  # two rows, so that a history shrinks slowly after its limit was lowered
