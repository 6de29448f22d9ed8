"""The limits of a tenant: every table that a token can add rows to is counted, and no tenant exceeds its limits."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sallyport.base.errors import LimitReached
from sallyport.settings.limits import DEFAULTS, HISTORIES, UNCHECKED
from sallyport.store import audit
from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.schema.limits import COUNTED, CountedTable
from tests.areas import new_database, running_store

OTHER_ROWS = {
    "one for each counted row": {
        "agent_hashes", "agent_settings", "agent_signers", "agents", "credential_tokens", "credential_users",
        "directory_attributes", "directory_names", "directory_runs", "directory_schedules",
        "endpoint_credential_policies", "first_factors", "mfa_providers", "totp_enrolments",
    },
    "one for 65,536 credentials of an issuer": {"status_lists"},
    "one for the name and each realm of a domain": {"domain_realms"},
    "at most 200 of a tenant": {"server_certificates"},
    "at most 200 in a domain": {"login_roles"},
    "at most one of each kind in a domain": {"further_providers"},
    "at most 10 for each person who has proved a factor": {"passkeys"},
    "at most 10 for each person, and 20,000 in a domain": {"bypass_codes"},
    "at most 10 for each person, after a strong second factor": {"remembered_stations"},
    "at most 8 for each person, for two minutes": {"passkey_challenges"},
    "at most 50,000 in a domain": {"enrolment_links"},
    "at most 16 for each person whose password was right, for 30 minutes": {"people_sessions"},
    "at most 2 open ones of a person, deleted five minutes after their end": {"stepups"},
    "at most 50 in a domain": {"network_profiles"},
    "one for each object of the files of an administrator of the installation": {"configured_items"},
    "one for each change of an apply of an administrator of the installation, until its end": {"configured_slices"},
    "at most 64 of a tenant": {"authorities"},
    "at most 256 for each authority": {"authority_domains"},
    "at most 16 for each authority": {"revocation_lists"},
    "at most 128 MiB of a tenant": {"revocation_entries"},
    "at most 50,000 devices and 10,000,000 characters of a tenant": {"device_tags"},
    "at most 32 with an SSID for each device, and some for each method": {"device_usage"},
    "at most 10,000 of a tenant, those seen last": {"unknown_stations"},
    "at most 10,000 of a tenant, those stored last": {"revoked_certificates"},
    "added by RADIUS traffic, not by a token": {
        "accounting_records", "answers", "certified_users", "challenges", "device_posture", "events", "lockouts",
        "prompt_pauses",
        "sessions",
    },
    "deleted two minutes after a login": {"session_limits"},
    "at most 10 of a domain": {"reauthorizations"},
    "at most 200,000 of a tenant, those recorded last": {"shadow_logins"},
    "at most one for each live session and re-authorization": {"reauthorized_sessions"},
    "deleted as soon as it is done": {"device_restarts", "revocations"},
    "at most 50 for each token, administrator and identity": {"console_sessions"},
    "one for each person with a role at an identity provider": {"identities"},
    "kept totals": {"audit_totals", "counters", "tenant_rows"},
    "of the installation": {
        "administrators", "certificate_files", "config_version", "issued_certificates", "limits", "organizations",
        "outlet_places", "settled_time", "tenants",
    },
    "some for each address and name that signs in, for two minutes": {"sign_in_attempts"},
}  # fmt: skip


REFUSED = [each for each in COUNTED if each.limit not in HISTORIES | UNCHECKED]
PRUNED = [each for each in COUNTED if each.limit in HISTORIES]
# Columns that name a row without a foreign key.
_NAMED = {"domain_id": "domains", "tenant_id": "tenants", "instance_id": "endpoint_instances"}
_UNIQUE = {"uuid", "place"}


@dataclass
class Rows:
    """Adds rows to the tables of a database for the tenants 1 and 2."""

    connection: sqlite3.Connection
    numbers: dict[str, int] = field(default_factory=dict)
    parents: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, table: str, tenant: int, **values: object) -> int:
        """Add a row with new values, and the rows that it refers to; return its number."""
        number = self.numbers[table] = self.numbers.get(table, 100) + 1
        row: dict[str, object] = {}
        keys = self.connection.execute(f"pragma foreign_key_list({table})").fetchall()
        named = {**_NAMED, **{str(key[3]): str(key[2]) for key in keys}}
        for _, name, kind, required, default, primary in self.connection.execute(
            f"pragma table_info({table})"
        ).fetchall():
            if name in named:
                row[name] = self._parent(named[name], tenant, shared=not primary and name != "token_id")
            elif (required and default is None and name != "id") or name in _UNIQUE:
                row[name] = {"integer": number, "bigint": number, "text": str(number), "bytea": b"%d" % number}[
                    kind.lower()
                ]
        row |= values
        marks = ", ".join("?" * len(row))
        sql = f"insert into {table} ({', '.join(row)}) values ({marks})"
        return self.connection.execute(sql, list(row.values())).lastrowid or 0

    def _parent(self, table: str, tenant: int, *, shared: bool) -> int:
        """Return a row of the tenant. shared: the same one each time."""
        if table == "tenants":
            return tenant
        if not shared:
            return self.add(table, tenant)
        if (table, tenant) not in self.parents:
            self.parents[table, tenant] = self.add(table, tenant)
        return self.parents[table, tenant]

    def add_counted(self, counted: CountedTable, tenant: int) -> int:
        """Add a row that counts towards a limit; return its number."""
        values = {"state": "QUEUED"} if counted.limit == "waiting_imports" else {}
        return self.add(counted.table, tenant, **values)

    def kept(self, limit: str, tenant: int) -> int:
        """Return the kept count of a tenant."""
        sql = "select value from tenant_rows where tenant_id = ? and name = ?"
        return int((self.connection.execute(sql, (tenant, limit)).fetchone() or (0,))[0])

    def set_limit(self, limit: str, most: int) -> None:
        """Change a limit."""
        self.connection.execute("update limits set most = ? where name = ?", (most, limit))

    def ids(self, table: str) -> list[int]:
        """Return the ids of all rows of a table."""
        return [row[0] for row in self.connection.execute(f"select id from {table} order by id")]


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    """A new database with two tenants."""
    path = tmp_path / "s.db"
    path.write_bytes(new_database())
    with closing(open_connection(path)) as connection:
        connection.execute("pragma synchronous = off")
        connection.execute("insert into organizations (id, name, created_at) values (1, 'o', 0)")
        for tenant in (1, 2):
            connection.execute("insert into tenants values (?, 1, ?, 't', 0)", (tenant, tenant))
        yield Rows(connection)


def _id(counted: CountedTable) -> str:
    return f"{counted.limit}-{counted.table}"


@pytest.mark.parametrize("counted", REFUSED, ids=_id)
def test_a_row_too_many_is_refused(rows: Rows, counted: CountedTable) -> None:
    """A tenant adds rows up to its limit and no more; another tenant adds rows all the same."""
    rows.add_counted(counted, 1)
    rows.add_counted(counted, 2)
    here, there = rows.kept(counted.limit, 1), rows.kept(counted.limit, 2)
    rows.set_limit(counted.limit, here + 1)
    rows.add_counted(counted, 1)
    with pytest.raises(sqlite3.IntegrityError, match=f"^limit: {counted.limit}$"):
        rows.add_counted(counted, 1)
    rows.set_limit(counted.limit, there + 1)
    rows.add_counted(counted, 2)
    assert (rows.kept(counted.limit, 1), rows.kept(counted.limit, 2)) == (here + 1, there + 1)


@pytest.mark.parametrize("counted", COUNTED, ids=_id)
def test_a_deleted_row_makes_room(rows: Rows, counted: CountedTable) -> None:
    """The count of a tenant follows deletions, and no other tenant's count does."""
    rows.add_counted(counted, 1)
    rows.add_counted(counted, 2)
    before, other = rows.kept(counted.limit, 1), rows.kept(counted.limit, 2)
    rows.connection.execute("pragma foreign_keys = off")
    tenant = counted.tenant.format(row="t")
    identity = "(" + ", ".join(_key(rows, counted.table)) + ")"
    mine = f"select {identity[1:-1]} from {counted.table} t where {tenant} = 1 limit 1"
    assert rows.connection.execute(f"delete from {counted.table} where {identity} = ({mine})").rowcount == 1
    assert (rows.kept(counted.limit, 1), rows.kept(counted.limit, 2)) == (before - 1, other)


def _key(rows: Rows, table: str) -> list[str]:
    """Return the primary key's columns."""
    return [found[1] for found in rows.connection.execute(f"pragma table_info({table})") if found[5]]


@pytest.mark.parametrize("counted", PRUNED, ids=_id)
def test_a_history_loses_its_oldest_row(rows: Rows, counted: CountedTable) -> None:
    """The newest rows of a tenant's history are kept; those of another tenant are not concerned."""
    other = rows.add_counted(counted, 2)
    for _ in range(3):
        rows.add_counted(counted, 1)
    rows.set_limit(counted.limit, 2)
    added = [rows.add_counted(counted, 1) for _ in range(3)]
    assert rows.ids(counted.table) == [other, *added[-2:]]
    assert rows.kept(counted.limit, 1) == 2


def test_an_import_that_ends_makes_room(rows: Rows) -> None:
    """Only imports that wait or run count towards waiting_imports; a confirmed one counts again."""
    job, counts = rows.add("directory_jobs", 1, state="QUEUED"), []
    for state in ("RUNNING", "FAILED", "QUEUED", "DONE"):
        rows.connection.execute("update directory_jobs set state = ? where id = ?", (state, job))
        counts.append(rows.kept("waiting_imports", 1))
    assert counts == [1, 0, 1, 0]


def test_an_import_that_waits_is_kept(rows: Rows) -> None:
    """The history of imports loses the oldest import that has ended, not one that waits."""
    first = rows.add("directory_jobs", 1, state="QUEUED")
    rows.set_limit("import_jobs", 2)
    later = [rows.add("directory_jobs", 1, state="DONE") for _ in range(3)]
    assert rows.ids("directory_jobs") == [first, later[-1]]


@pytest.mark.parametrize(
    ("parent", "limit", "table"),
    [
        ("endpoint_instances", "escrowed_passwords", "agent_passwords"),
        ("endpoint_instances", "agent_orders", "agent_orders"),
        ("endpoint_instances", "discovered_accounts", "agent_discovered"),
        ("endpoint_instances", "taken_over_accounts", "agent_takeovers"),
        ("endpoint_instances", "agent_grants", "agent_grants"),
        ("endpoint_users", "agent_grants", "agent_grants"),
        ("radius_clients", "client_domains", "radius_client_domains"),
    ],
)
def test_rows_that_go_with_their_parent_make_room(rows: Rows, parent: str, limit: str, table: str) -> None:
    """Rows that a foreign key deletes with an instance, a user or a client are no longer counted."""
    rows.add(table, 1)
    assert rows.kept(limit, 1) == 1
    rows.connection.execute(f"delete from {parent}")
    assert rows.kept(limit, 1) == 0


def test_a_repeated_assignment_at_the_limit_holds(rows: Rows) -> None:
    """An insert that changes nothing, since the row is there, is not refused."""
    rows.add("endpoint_instance_users", 1)
    rows.set_limit("endpoint_assignments", 1)
    sql = "insert into endpoint_instance_users select * from endpoint_instance_users where true on conflict do nothing"
    assert rows.connection.execute(sql).rowcount == 0


def test_totals_of_the_audit_trail_follow_its_limit(rows: Rows) -> None:
    """An audit entry that is deleted for a newer one leaves the kept total too."""
    rows.set_limit("audit_entries", 2)
    for number in range(5):
        audit.record(SqliteTx(rows.connection), "a.b", at=number, tenant_id=1, target="t")
    assert rows.connection.execute("select value from audit_totals where tenant_id = 1").fetchall() == [(2,)]


async def test_the_setting_takes_effect_at_the_start(tmp_path: Path) -> None:
    """A store that is opened with another limit refuses by that one; nothing of the transaction is kept."""
    async with running_store(tmp_path / "s.db", limits={**DEFAULTS, "domains": 1}) as store:
        rows = "insert into domains (tenant_id, name, name_key, directory_name, enforcement_mode, fallback_action, first_factor, status, realms, created_at) values (:t, :n, :n, '', '', '', '', '', '', 0)"  # noqa: E501
        await store.write(lambda tx: tx.execute("insert into organizations (id, name, created_at) values (1, 'o', 0)"))
        await store.write(lambda tx: tx.execute("insert into tenants values (1, 1, 1, 't', 0)"))
        with pytest.raises(LimitReached, match=r"limits\.domains"):
            await store.write(lambda tx: [tx.execute(rows, t=1, n=name) for name in "ab"])
        assert await store.read(lambda tx: tx.value(int, "select count(*) from domains")) == 0


def test_every_table_is_counted_or_known(rows: Rows) -> None:
    """A new table needs a limit, or a reason to have none."""
    names = rows.connection.execute("select name from sqlite_master where type = 'table'").fetchall()
    tables = {name for (name,) in names if "_search" not in name and "sqlite_" not in name}
    assert tables == {each.table for each in COUNTED}.union(*OTHER_ROWS.values())


def test_every_limit_is_checked() -> None:
    """The limits of the settings and those of the triggers are the same."""
    assert {each.limit for each in COUNTED} == set(DEFAULTS)
