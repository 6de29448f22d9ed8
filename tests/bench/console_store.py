"""The store of the benchmark `console`: one domain with 1,000,000 devices, stations, sessions and logins, and large
lists of everything else that the console shows. `sallyport serve` creates the store first, with the people of a
directory, RADIUS clients, rules and policies. The other rows are then written into the stopped service's file.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sallyport.areas.devices import write_repo as inventory
from sallyport.areas.did.credentials import repo as credentials
from sallyport.areas.did.credentials.credential import Schema
from sallyport.areas.did.crypto import vc
from sallyport.areas.did.crypto.documents import key_did
from sallyport.areas.did.crypto.encoding import ED25519
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.crypto.keys import PrivateKey
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.did import DidKind, NewDid
from sallyport.areas.did.wallets import repo as wallets
from sallyport.areas.did.wallets.key import new_wallet_key
from sallyport.areas.did.wallets.wallet import NewWallet
from sallyport.areas.directory.directory import GROUP_COUNT
from sallyport.base.clock import SECOND, now_us
from sallyport.store import audit, counters
from sallyport.store.model import Tx, Value
from sallyport.store.search import SearchIndex
from sallyport.store.sqlite import SqliteStore
from tests.running_service import RunningService

from . import did, directory_file, endpoints
from .child import SECRET
from .inventory import LARGE_CITIES, RARE, devices
from .lists import open_store, tell
from .settings import BenchmarkError

DOMAIN = "bench"
LOGIN_USERS = 100
"""Number of users whose logins the load generator sends: user0 with the password pass0, and so on."""
USERS = 50_000
"""Number of different users of the stations, the sessions and the logins."""
TURN = 5_000
DAY = 86_400 * SECOND
REFUSED = ("wrong password", "unknown user", "not enrolled", "blocked by rule")


@dataclass(frozen=True, slots=True)
class Size:
    """The number of rows in each list. The defaults are those of the benchmark."""

    devices: int = 990_000
    stations: int = 1_000_000
    sessions: int = 1_000_000
    events: int = 1_000_000
    audit: int = 1_000_000
    users: int = 100_000
    instances: int = 100_000
    groups: int = 2_000
    people: int = 100_000
    credentials: int = 100_000
    wallets: int = 100_000
    dids: int = 100_000
    schemas: int = 9_000
    directory_groups: int = 100_000
    agents: int = 10_000
    lockouts: int = 10_000
    bypass: int = 100_000
    clients: int = 1_000
    rules: int = 50


def set_up(service: RunningService, directory: Path, size: Size) -> int:
    """Add everything that needs the running service, and return the id of the domain. directory: a directory for the
    file that is imported. Raises BenchmarkError if the import failed."""
    domain_id = service.add_domain(DOMAIN)
    for number in range(LOGIN_USERS):
        service.add_user(f"user{number}", f"pass{number}", DOMAIN)
    service.add_client("bench", "127.0.0.1", SECRET, DOMAIN)
    for number in range(1, size.clients):
        service.add_client(f"client-{number:04}", f"10.200.{number >> 8}.{number & 255}", SECRET, DOMAIN)
    for number in range(size.rules):
        service.add_rule(DOMAIN, name=f"rule {number}", action="block", users=[f"nobody-{number}"])
        policy = {"orgId": 1, "tenantId": 1, "policyName": f"policy {number}", "minlen": 12}
        service.run("/api/v1/instances/addPasswordPolicy", policy)
    _import(service, directory / "people.ldif", size.people)
    return domain_id


def _import(service: RunningService, file: Path, people: int) -> None:
    directory_file.write(file, people)
    job = service.call("directory.import_ldif", path=str(file), domain=DOMAIN)
    while (state := service.call("directory.job", job=job)["state"]) not in directory_file.OVER:
        time.sleep(0.5)
    if state != "DONE":
        raise BenchmarkError(f"the import is {state}")


async def fill(data: Path, domain_id: int, size: Size) -> str:
    """Write all other rows into the store of a stopped service. Return a line with the time that this took."""
    started = time.monotonic()
    async with open_store(data) as store:
        await _devices(store, domain_id, size.devices)
        filled = _Filled(domain_id, await store.read(partial(_first, "devices", domain_id)), size, now_us())
        await filled.write(store, "stations", size.stations, filled.station)
        await filled.write(store, "sessions", size.sessions, filled.session)
        for state, count in (("live", size.sessions // 50), ("stopped", size.sessions - size.sessions // 50)):
            await store.write(partial(counters.add, domain_id=domain_id, name=f"sessions.{state}", change=count))
        await filled.write(store, "events", size.events, filled.event)
        await store.write(partial(counters.add, domain_id=domain_id, name="events", change=size.events))
        tenant_id = await store.read(partial(audit.tenant_of, domain_id=domain_id))
        await filled.write(store, "audit_trail", size.audit, partial(filled.entry, tenant_id))
        totals = partial(audit.count, tenant_id=tenant_id, domain_id=domain_id, change=size.audit)
        await store.write(totals)
        await filled.write(store, "lockouts", size.lockouts, filled.lockout)
        await filled.write(store, "bypass_stations", size.bypass, filled.bypass)
        await _endpoints(store, domain_id, size)
        first = await store.read(partial(endpoints.first_instance, domain_id))
        await filled.write(store, "agents", size.agents, partial(filled.agent, first))
        await filled.write(store, "agent_drift", size.agents, partial(filled.drift, first))
        await filled.write(store, "api_keys", size.agents, partial(filled.key, first))
        await store.write(partial(counters.add, domain_id=domain_id, name="api_keys", change=size.agents))
        await _credentials(store, domain_id, tenant_id, size)
        directory = await store.read(partial(_first, "directories", domain_id))
        add = partial(_directory_group, domain_id, directory)
        await endpoints.in_turns(store, size.directory_groups, add, "groups of a directory")
    octets = (data / "sallyport.db").stat().st_size
    return f"The database has {octets / (1 << 30):.1f} GiB; it was filled in {time.monotonic() - started:,.0f} s."


async def _devices(store: SqliteStore, domain_id: int, count: int) -> None:
    made = devices(domain_id, count, LARGE_CITIES, RARE)
    for done in range(0, count, TURN):
        new = list(itertools.islice(made, min(TURN, count - done)))
        await store.write(lambda tx, new=new: inventory.register_all(tx, new))
        if done % 100_000 == 0:
            tell(f"{done:,} of {count:,} devices")


async def _endpoints(store: SqliteStore, domain_id: int, size: Size) -> None:
    in_turns = endpoints.in_turns
    await in_turns(store, size.instances, partial(endpoints.add_instance, domain_id), "instances")
    first = await store.read(partial(endpoints.first_instance, domain_id))
    await in_turns(store, size.users, partial(endpoints.add_user, domain_id, first, size.instances), "users")
    await in_turns(store, size.groups, partial(endpoints.add_group, domain_id, first), "groups", TURN // 100)


async def _credentials(store: SqliteStore, domain_id: int, tenant_id: int, size: Size) -> None:
    key = PrivateKey.new(ED25519)
    token = vc.sign(did.document(key_did(key.public)), Signer("did:key:z#z", key))
    add = await store.write(partial(did.begin, domain_id, token))
    await endpoints.in_turns(store, size.credentials, add, "credentials")
    await endpoints.in_turns(store, size.wallets, partial(_wallet, domain_id, tenant_id), "wallets")
    await endpoints.in_turns(store, size.dids, partial(_did, domain_id, tenant_id), "DIDs")
    issuer = await store.read(partial(_first, "dids", domain_id))
    await endpoints.in_turns(store, size.schemas, partial(_schema, domain_id, tenant_id, issuer), "schemas")


def _did(domain_id: int, tenant_id: int, tx: Tx, number: int) -> None:
    """Add a holder, or an issuer in place of each hundredth holder."""
    kind, name = (DidKind.USER, f"more holder {number}") if number % 100 else (DidKind.ISSUER, f"more issuer {number}")
    new = NewDid(domain_id, "key", name, "", ED25519.name)
    dids.add(tx, tenant_id, new, kind, f"did:key:zMore{number}", 0, wallet_id=None, issuer_id=None)


def _schema(domain_id: int, tenant_id: int, issuer: int, tx: Tx, number: int) -> None:
    new = Schema(0, tenant_id, domain_id, f"schema-{domain_id}-{number}", f"badge {number}", "{}")
    credentials.add_schema(tx, new, issuer, 0)


def _directory_group(domain_id: int, directory: int, tx: Tx, number: int) -> None:
    name, key = f"more group {number}", f"cn=more group {number}".encode()
    columns = ("domain_id", "directory_id", "external_id", "dn", "dn_key", "name", "digest", "seen")
    values = (domain_id, directory, f"more-{number}", key.decode(), key, name, b"", 0)
    added = ", ".join(f":{column}" for column in columns)
    sql = (
        f"insert into directory_groups ({', '.join(columns)}, created_at, updated_at) "  # noqa: S608
        f"values ({added}, 0, 0) returning id"
    )
    group = tx.value(int, sql, **dict(zip(columns, values, strict=True))) or 0
    SearchIndex("directory_groups_search").add(tx, domain_id, group, (name,))
    counters.add(tx, domain_id, GROUP_COUNT, 1)


def _wallet(domain_id: int, tenant_id: int, tx: Tx, number: int) -> None:
    sql = "insert into access_tokens (tenant_id, name, role, hash, created_at) values (:t, :n, 'wallet', :n, 0)"
    token = tx.value(int, f"{sql} returning id", t=tenant_id, n=f"wallet {number}") or 0
    new = NewWallet(domain_id, f"user{number}", f"user{number}@example.org", "")
    wallets.add(tx, new, new_wallet_key(), token, 0)


def _first(table: str, domain_id: int, tx: Tx) -> int:
    return tx.value(int, f"select min(id) from {table} where domain_id = :d", d=domain_id) or 0  # noqa: S608


Row = dict[str, Value]


@dataclass(frozen=True, slots=True)
class _Filled:
    """Functions that return the row with a given number. device: the id of the first device. now: the time of the
    newest row, in microseconds."""

    domain_id: int
    device: int
    size: Size
    now: int

    async def write(self, store: SqliteStore, table: str, count: int, row: Callable[[int], Row]) -> None:
        """Insert rows into a table."""
        columns = tuple(row(0))
        for done in range(0, count, TURN):
            rows = [tuple(row(number).values()) for number in range(done, min(done + TURN, count))]
            await store.write(lambda tx, rows=rows: tx.insert(table, columns, rows))
            if done % 100_000 == 0:
                tell(f"{done:,} of {count:,} rows of {table}")

    def _common(self, number: int) -> Row:
        return {"domain_id": self.domain_id, "device_id": self.device + number * 7 % self.size.devices}

    def _user(self, number: int) -> str:
        return f"{endpoints.FIRST[number % 10]}.{endpoints.LAST[number // 10 % 11]}-{number % USERS:06}@example.org"

    def _station(self, number: int) -> str:
        return f"02-{number >> 24 & 255:02X}-{number >> 16 & 255:02X}-{number >> 8 & 255:02X}-{number & 255:02X}-00"

    def station(self, number: int) -> Row:
        """A station."""
        times = {"first_seen": self.now - DAY, "last_seen": self.now, "request_count": 1 + number % 100}
        return {**self._common(number), "station": self._station(number), "user_name": self._user(number), **times}

    def session(self, number: int) -> Row:
        """A session. The last fiftieth of the sessions is live."""
        is_live = number >= self.size.sessions - self.size.sessions // 50
        began = self.now - 30 * DAY + 30 * DAY * number // self.size.sessions
        times: Row = {"started": began, "first_seen": began, "updated": began + 3600 * SECOND}
        counts: Row = dict.fromkeys(("input_octets", "output_octets", "input_packets", "output_packets"), number)
        return {
            **self._common(number),
            "acct_session_id": f"{number:08X}".encode(),
            "newest": 1,
            "user_name": self._user(number),
            "station": self._station(number),
            "called_station": "00-11-22-33-44-55:corp",
            "framed_ip": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
            "session_time": 3600,
            **counts,
            **times,
            "stopped": None if is_live else began + 3600 * SECOND,
            "state": "live" if is_live else "stopped",
            "records": 2,
            "recent": b"",
            "follows": 0,
        }

    def event(self, number: int) -> Row:
        """A login of the last 30 days. One of 25 logins is refused; none of the logins is of the last ten minutes."""
        reason = "" if number % 25 else REFUSED[number // 25 % len(REFUSED)]
        decision = "reject" if reason else "accept"
        common = self._common(2 * (number % USERS) + number // USERS % 2)  # each user logs in at two devices
        at = self.now - 30 * DAY + (30 * DAY - 600 * SECOND) * number // self.size.events
        return {
            **common,
            "at": at,
            "user_name": self._user(number),
            "ip_address": f"10.0.0.{number % 40}",
            "client_ip": f"10.{16 + (number >> 16 & 15)}.{number >> 8 & 255}.{number & 255}",
            "device_name": f"switch-{common['device_id']}",
            "station": self._station(number),
            "method": "PAP",
            "factor": "local",
            "decision": decision,
            "applied_decision": decision if number % 50 else "accept",
            "would_have_been": decision,
            "reason": reason,
            "latency_us": 1500,
        }

    def entry(self, tenant_id: int, number: int) -> Row:
        """An entry of the audit trail."""
        at = self.now - 30 * DAY + 30 * DAY * number // self.size.audit
        return {
            "at": at,
            "tenant_id": tenant_id,
            "domain_id": self.domain_id,
            "actor_kind": "token",
            "actor": f"admin-{number % 20}",
            "action": ("user.update", "group.update", "client.update")[number % 3],
            "target": f"user {number} {self._user(number)}",
            "changes": '{"status": ["active", "inactive"]}',
        }

    def lockout(self, number: int) -> Row:
        """A lock-out."""
        name = self._user(number) + f".{number}"
        named: Row = {"domain_id": self.domain_id, "kind": "user", "name_key": name, "name": name}
        return {**named, "since": self.now, "until": self.now + 30 * DAY, "failures": 10}

    def bypass(self, number: int) -> Row:
        """A station of the MAC authentication bypass."""
        return {"domain_id": self.domain_id, "station": f"02{number:010x}", "name": f"printer {number}", "added_at": 0}

    def agent(self, first: int, number: int) -> Row:
        """An endpoint agent. first: the id of the first instance."""
        times: Row = {"enrolled_at": self.now - DAY, "seen_at": self.now - number * SECOND, "changed_at": 0}
        return {"instance_id": first + number, "domain_id": self.domain_id, "machine": f"machine {number}", **times}

    def drift(self, first: int, number: int) -> Row:
        """An unexpected change on a host."""
        subject: Row = {"kind": "password", "subject": "root", "detail": "changed on the host", "put_back": 1}
        times: Row = {"first_at": self.now - DAY, "last_at": self.now, "ended_at": None if number % 10 else self.now}
        return {"domain_id": self.domain_id, "instance_id": first + number, **subject, **times}

    def key(self, first: int, number: int) -> Row:
        """The own key of an endpoint agent."""
        named: Row = {"instance_id": first + number, "kind": "own", "agent": "endpoint", "name": ""}
        times: Row = {"hash": f"key {number}", "created_at": self.now, "expires_at": self.now + 365 * DAY}
        return {"domain_id": self.domain_id, **named, **times}
