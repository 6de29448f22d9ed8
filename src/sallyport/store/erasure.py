"""The deletion of a removed domain's rows, table by table, in slices of at most SLICE rows.

The list of tables is ordered: a table comes before the tables that it refers to. Before a row is deleted, the rows of
other tables that belong only to this row (`DependentTable`) are deleted. So no statement reads a whole large table. A
test compares the list with the schema: a new table with a domain_id needs an entry here. The audit trail belongs to the
tenant and is kept.

The last tables in the list have no index by domain. They are small, and are read only when all other tables are empty.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from sallyport.store.model import LISTED, Tx, listed
from sallyport.store.search import SearchIndex
from sallyport.store.slices import SLICE, delete_slice

MOST_COUNTED: Final = 100_000
"""Maximum number that is counted for one kind of rows. The numbers are shown before a domain is removed."""
MERGED_BY_HAND: Final = "directory_users"
KEPT: Final = ("audit_trail", "audit_totals")
"""Tables with a domain_id whose rows stay after the domain's removal."""
PRESENT: Final = "exists (select 1 from domains where domains.id = domain_id and removed_at is null)"
"""SQL condition for rows whose domain exists and is not removed."""
OF_TENANT: Final = "domain_id in (select id from domains where tenant_id = :t and removed_at is null)"
"""SQL condition for rows that belong to a domain of the tenant `:t`, except removed domains."""
_LISTED: Final = f"in {LISTED}"


@dataclass(frozen=True, slots=True)
class DependentTable:
    """A table of dependent rows. Each row belongs to one row of another table, its owner.

    key: the columns of the primary key. column: the column that contains the owner's id.
    """

    table: str
    key: str
    column: str


@dataclass(frozen=True, slots=True)
class Rows:
    """A table with rows of a domain.

    name: the name of the rows in messages; empty if the rows are not counted. key: the columns of the primary key; must
    be `id` if the table has parts. searched: the id that the keys of the search index contain, `domain_id` or
    `tenant_id`; empty if the table has no search index.
    """

    table: str
    name: str = ""
    key: str = "id"
    parts: tuple[DependentTable, ...] = ()
    searched: Literal["", "domain_id", "tenant_id"] = ""

    def erase(self, tx: Tx, domain_id: int) -> int:
        """Delete up to SLICE rows of the domain, or of the parts of these rows. Return the number of deleted rows."""
        if not self.parts and not self.searched:
            return delete_slice(tx, self.table, self.key, "domain_id = :d", d=domain_id)
        found = tx.rows(f"select id from {self.table} where domain_id = :d limit {SLICE}", d=domain_id)  # noqa: S608
        return self._erase(tx, domain_id, [int(str(row[0])) for row in found]) if found else 0

    def _erase(self, tx: Tx, domain_id: int, ids: list[int]) -> int:
        for part in self.parts:
            gone = delete_slice(tx, part.table, part.key, f"{part.column} {_LISTED}", ids=listed(ids))
            if gone:
                return gone
        if self.searched:
            self._remove_from_search(tx, domain_id, ids)
        return tx.execute(f"delete from {self.table} where id {_LISTED}", ids=listed(ids))  # noqa: S608

    def _remove_from_search(self, tx: Tx, domain_id: int, ids: list[int]) -> None:
        index, number = SearchIndex(f"{self.table}_search"), domain_id
        if self.searched == "tenant_id":
            number = tx.value(int, "select tenant_id from domains where id = :d", d=domain_id) or 0
        index.remove(tx, number, ids)
        if self.table == MERGED_BY_HAND:
            index.merge(tx)


@dataclass(frozen=True, slots=True)
class _Wallets(Rows):
    """The wallets of a domain. The access token of a wallet is deleted with the wallet."""

    def erase(self, tx: Tx, domain_id: int) -> int:
        sql = f"select id, token_id from wallets where domain_id = :d limit {SLICE}"  # noqa: S608
        found = [(int(str(wallet_id)), int(str(token_id))) for wallet_id, token_id in tx.rows(sql, d=domain_id)]
        gone = self._erase(tx, domain_id, [wallet_id for wallet_id, _ in found])
        tokens = listed(token_id for _, token_id in found)
        tx.execute(f"delete from access_tokens where id {_LISTED}", ids=tokens)  # noqa: S608
        return gone


_OF_INSTANCES = (
    DependentTable("agent_orders", "id", "instance_id"),
    DependentTable("agent_discovered", "instance_id, kind, name", "instance_id"),
    DependentTable("agent_grants", "instance_id, user_id, group_id", "instance_id"),
    DependentTable("endpoint_instance_users", "instance_id, user_id", "instance_id"),
    DependentTable("endpoint_instance_groups", "instance_id, group_id", "instance_id"),
    DependentTable("policy_instances", "policy_id, instance_id", "instance_id"),
)
_OF_GROUPS = (
    DependentTable("endpoint_credential_policies", "id", "group_id"),
    DependentTable("endpoint_group_users", "group_id, user_id", "group_id"),
)
_OF_USERS = (
    DependentTable("totp_enrolments", "user_id", "user_id"),
    DependentTable("agent_hashes", "user_id", "user_id"),
    DependentTable("endpoint_user_wallets", "user_id, wallet_id", "user_id"),
    DependentTable("endpoint_user_credentials", "user_id, credential_id", "user_id"),
)

ROWS: Final[tuple[Rows, ...]] = (
    Rows("api_keys", "API keys", parts=(DependentTable("api_key_machines", "key_id, machine", "key_id"),)),
    Rows("mfa_providers", "MFA provider", "domain_id"),
    Rows("first_factors", "first-factor settings", "domain_id, kind"),
    Rows("login_rules", "login rules"),
    Rows("bypass_stations", "MAC bypass stations"),
    Rows("presentation_requests", "presentation requests"),
    Rows("credential_users", key="credential_id"),
    Rows("credentials", "credentials", parts=(DependentTable("credential_tokens", "credential_id", "credential_id"),)),
    Rows("credential_schemas", "credential schemas"),
    Rows(
        "dids",
        "DIDs",
        parts=(DependentTable("did_keys", "id", "did_id"), DependentTable("status_lists", "id", "issuer_id")),
        searched="tenant_id",
    ),
    Rows("agent_settings", key="domain_id, instance_id"),
    Rows("agent_takeovers", "taken-over accounts", "instance_id, account"),
    Rows("agent_passwords", "escrowed passwords"),
    Rows("agent_reports", "agent reports"),
    Rows("agent_drift", "drift reports"),
    Rows("agents", "endpoint agents", "instance_id"),
    Rows("agent_signers", key="domain_id"),
    Rows("endpoint_instances", "endpoint instances", parts=_OF_INSTANCES, searched="domain_id"),
    Rows("endpoint_groups", "endpoint groups", parts=_OF_GROUPS, searched="domain_id"),
    Rows("endpoint_users", "endpoint users", parts=_OF_USERS, searched="domain_id"),
    _Wallets("wallets", "wallets", searched="domain_id"),
    Rows("directory_schedules", "directory schedules", "directory_id"),
    Rows("directory_runs"),
    Rows("directory_jobs", "imports"),
    Rows("directory_names", key="domain_id, name_key, user_id"),
    Rows(
        "directory_users",
        "directory users",
        parts=(DependentTable("directory_attributes", "user_id", "user_id"),),
        searched="domain_id",
    ),
    Rows("directory_groups", "directory groups", searched="domain_id"),
    Rows("directory_units", "organizational units"),
    Rows(
        "directories",
        "directories",
        parts=(DependentTable("directory_members", "directory_id, member_key, group_key, told", "directory_id"),),
    ),
    Rows("events", "logins in the log"),
    Rows("accounting_records", "accounting records"),
    Rows("sessions", "sessions"),
    Rows("stations", "stations"),
    Rows("device_history", "entries of the device history"),
    Rows(
        "devices",
        "network devices",
        parts=(DependentTable("device_posture", "device_id", "device_id"),),
        searched="domain_id",
    ),
    Rows("lockouts", "lock-outs"),
    Rows("counters", key="domain_id, name"),
    Rows("domain_realms", key="domain_id, realm"),
    Rows("radius_client_domains", "lists of RADIUS clients", "client_id, position"),
    Rows("device_restarts", key="device_id"),
    Rows("challenges"),
    Rows("revocations"),
)
"""All rows of a domain, in the order of their deletion."""


def counts(tx: Tx, domain_id: int) -> Iterator[tuple[str, int]]:
    """Yield (name, number) for each kind of rows that a domain has. The number is at most MOST_COUNTED."""
    for rows in ROWS:
        if rows.name:
            some = f"select 1 from {rows.table} where domain_id = :d limit {MOST_COUNTED}"  # noqa: S608
            count = tx.value(int, f"select count(*) from ({some}) as listed", d=domain_id) or 0  # noqa: S608
            if count:
                yield rows.name, count
