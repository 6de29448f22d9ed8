"""A tenant at its limits, whose names are costly to fold. The rows are written in bulk while the service is stopped.

The tenant has the organization 3. Its actors are the administrators of the console that a tenant can have, and tokens.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sallyport.base.secret import token_hash
from sallyport.base.text import fold
from sallyport.store.vault import Vault, load_master_keys
from tests.running_service import RunningService
from tests.torture import costly

ORG: Final = 3
CLIENTS, DEVICES, DOMAINS, TOKENS, ENTRIES = 50_000, 10_000, 1_000, 1_000_000, 300
REALMS: Final = 64
"""Number of realms of each of the costly domains."""
COSTLY_DOMAINS: Final = 48
SECRET: Final = "a secret of the full tenant"
ISSUER: Final = "http://127.0.0.1:9/realm"
SETTINGS: Final = f"""
[identity_providers.company]
issuer = "{ISSUER}"
client_id = "sallyport"
client_secret_env = "COMPANY_SECRET"
roles = [{{ group = "netops", role = "admin", org = {ORG}, tenant = 1 }}]
"""
SOURCE: Final = "127.0.0.3"
"""The address of the client that sends the logins of the tenant."""
_TAIL: Final = costly.MARKS[:240]
_FOLDED: Final = fold(_TAIL)
_TEXT: Final = costly.MARKS[:60_000]
_NUMBERS: Final = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :most)"


def hostile(number: int) -> str:
    """Return a name that takes long to fold. Each number has another name."""
    return f"{number}{_TAIL}"


@dataclass(frozen=True)
class Actor:
    """An owner of a session of the console. key: the key in its cookie."""

    name: str
    key: str


ACTORS: Final = tuple(Actor(name, f"key of the {name}") for name in ("token", "administrator", "identity"))


class FullTenant:
    """The tenant. token: an access token with the role admin. last_client: the id of its last RADIUS client."""

    def __init__(self, service: RunningService) -> None:
        self.service = service
        (service.directory / "sallyport.toml").write_text(SETTINGS)
        self.domain = service.add_domain("full", org=ORG)
        service.add_client("logins", SOURCE, SECRET, "full", org=ORG)
        self.token = service.ok("token", "create", "--org", str(ORG), "--tenant", "1").strip()
        service.stop()
        with closing(sqlite3.connect(service.data_dir / "sallyport.db")) as database, database:
            rows = _Rows(database, service.data_dir, self.domain)
            rows.fill()
            self.last_client = rows.last_client
        service.start()


class _Rows:
    """The rows of the tenant. domain: the id of the domain that has the devices. last_client: the id of the last RADIUS
    client, known after `fill`."""

    def __init__(self, database: sqlite3.Connection, data_dir: Path, domain: int) -> None:
        self._database = database
        self._vault = Vault(load_master_keys(data_dir, {}, may_make=False))
        self._domain = domain
        self.last_client = 0
        self._now = time.time_ns() // 1000
        self._tenant = int(self._value("select tenant_id from domains where id = ?", domain))

    def fill(self) -> None:
        """Write all rows."""
        with self._uncounted("access_tokens"):
            self._add_tokens()
        self._add_clients()
        self._add_domains()
        self._add_devices()
        self._add_entries()
        self._add_actors()
        self._database.execute("update config_version set version = version + 1")

    def _value(self, sql: str, *parameters: object) -> int:
        return int(self._database.execute(sql, parameters).fetchone()[0])

    def _last_id(self, table: str) -> int:
        return self._value(f"select coalesce(max(id), 0) from {table}")  # noqa: S608

    def _insert(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Insert rows, which all have the same columns."""
        rows = iter(rows)
        first = next(rows)
        places = ", ".join(f":{column}" for column in first)
        sql = f"insert into {table} ({', '.join(first)}) values ({places})"  # noqa: S608
        self._database.execute(sql, first)
        self._database.executemany(sql, rows)

    @contextmanager
    def _uncounted(self, table: str) -> Iterator[None]:
        """Drop the triggers of a table during the block, because they would take most of the time. Afterwards, write
        the number of the tenant's rows, which the triggers keep."""
        found = self._database.execute(
            "select name, sql from sqlite_master where type = 'trigger' and tbl_name = ?", (table,)
        ).fetchall()
        for name, _ in found:
            self._database.execute(f"drop trigger {name}")
        yield
        for _, sql in found:
            self._database.execute(sql)
        counted = f"select count(*) from {table} where tenant_id = :t"  # noqa: S608
        self._database.execute(
            f"insert into tenant_rows (tenant_id, name, value) values (:t, :name, ({counted})) "  # noqa: S608
            "on conflict (tenant_id, name) do update set value = excluded.value",
            {"t": self._tenant, "name": table},
        )

    def _add_tokens(self) -> None:
        """Add tokens. Their names are short, because the database would have 500 MB otherwise."""
        present = self._value("select count(*) from access_tokens where tenant_id = ?", self._tenant)
        columns = "tenant_id, name, role, hash, created_at"
        self._database.execute(
            f"insert into access_tokens ({columns}) {_NUMBERS} "  # noqa: S608
            "select :t, 'é token ' || n, 'auditor', printf('%064x', n), :at from numbers",
            {"t": self._tenant, "at": self._now, "most": TOKENS - present},
        )

    def _add_clients(self) -> None:
        first = self._last_id("radius_clients") + 1
        added = CLIENTS - self._value("select count(*) from radius_clients where tenant_id = ?", self._tenant)
        self.last_client = first + added - 1
        self._insert(
            "radius_clients",
            (
                {
                    "id": first + each,
                    "tenant_id": self._tenant,
                    "name": hostile(each),
                    "name_key": f"{each}{_FOLDED}",
                    "network": f"10.{each >> 8}.{each & 255}.1/32",
                    "secret": self._vault.seal(b"secret", f"radius_clients/{first + each}/secret"),
                    "all_domains": 1,
                    "product": "",
                    "require_message_authenticator": "no",
                    "limit_proxy_state": "no",
                    "password_verified": 0,
                    "created_at": self._now,
                }
                for each in range(added)
            ),
        )

    def _add_domains(self) -> None:
        realms = [json.dumps([hostile(each * REALMS + n) for n in range(REALMS)]) for each in range(COSTLY_DOMAINS)]
        present = self._value("select count(*) from domains where tenant_id = ?", self._tenant)
        self._insert(
            "domains",
            (
                {
                    "tenant_id": self._tenant,
                    "name": hostile(each),
                    "directory_name": "",
                    "enforcement_mode": "monitor",
                    "fallback_action": "deny",
                    "first_factor": "local",
                    "status": "active",
                    "realms": realms[each] if each < COSTLY_DOMAINS else "[]",
                    "created_at": self._now,
                    "name_key": f"{each}{_FOLDED}",
                }
                for each in range(DOMAINS - present)
            ),
        )

    def _add_devices(self) -> None:
        """Add a device behind each of the first clients. It was silent for a day, or has sent unsigned requests."""
        self._insert(
            "devices",
            (
                {
                    "domain_id": self._domain,
                    "ip_address": f"10.{each >> 8}.{each & 255}.1",
                    "client_ip": f"10.{each >> 8}.{each & 255}.1",
                    "nas_identifier": hostile(each),
                    "nas_identifier_key": f"{each}{_FOLDED}",
                    "device_name": hostile(each),
                    "device_type": "Unknown",
                    "device_type_key": "unknown",
                    "device_type_certainty": "",
                    "nas_device_type": "",
                    "nas_port_type": "Unknown",
                    "nas_port_type_key": "unknown",
                    "first_seen": 1,
                    "last_seen": self._now if each % 2 else self._now - 2 * 86_400_000_000,
                    "request_count": 1,
                    "registrations": 1,
                    "evidence": "{}",
                }
                for each in range(DEVICES)
            ),
        )

    def _add_entries(self) -> None:
        """Add entries of the audit trail with long texts."""
        self._insert(
            "audit_trail",
            (
                {
                    "at": self._now + each,
                    "tenant_id": self._tenant,
                    "actor_kind": "token",
                    "actor": hostile(each),
                    "action": "client.update",
                    "target": f"client {hostile(each)}",
                    "changes": json.dumps({f"field {n}": ["", _TEXT[:3000]] for n in range(20)}),
                }
                for each in range(ENTRIES)
            ),
        )

    def _add_actors(self) -> None:
        """Add a session of each kind of actor, and many sessions of other tokens."""
        owners = {
            "token": ("token_id", self._value("select max(id) from access_tokens where role = 'admin'")),
            "administrator": ("administrator_id", self._administrator()),
            "identity": ("identity_id", self._identity()),
        }
        for actor in ACTORS:
            column, owner = owners[actor.name]
            self._insert("console_sessions", [{**self._session(token_hash(actor.key)), column: owner}])
        self._database.execute(
            "insert into console_sessions (hash, token_id, source, agent, created_at, seen_at, ends_at) "
            "select 's' || hash, id, '192.0.2.1', :agent, :at, :at, :end from access_tokens "
            "where tenant_id = :t and role = 'auditor' limit 60000",
            {"t": self._tenant, "agent": _TAIL[:200], "at": self._now, "end": self._now + 10**12},
        )

    def _session(self, hashed: str) -> dict[str, object]:
        until = self._now + 10**12
        return {"hash": hashed, "source": "127.0.0.1", "agent": "", "created_at": self._now, "seen_at": self._now,
                "ends_at": until}  # fmt: skip

    def _administrator(self) -> int:
        self._insert(
            "administrators",
            [
                {
                    "name": "ann",
                    "name_key": "ann",
                    "role": "admin",
                    "tenant_id": self._tenant,
                    "password": b"",
                    "seed": b"",
                    "created_at": self._now,
                }
            ],
        )
        return self._last_id("administrators")

    def _identity(self) -> int:
        self._insert(
            "identities",
            [
                {
                    "issuer": ISSUER,
                    "subject": "ann",
                    "name": "ann",
                    "role": "admin",
                    "tenant_id": self._tenant,
                    "member_of": '["netops"]',
                    "created_at": self._now,
                    "signed_in_at": self._now,
                }
            ],
        )
        return self._last_id("identities")
