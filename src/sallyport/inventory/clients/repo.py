"""The SQL of RADIUS clients. A secret is sealed under the identity `radius_clients/ID/secret`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final, cast

from sallyport.base.addresses import Network
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.inventory.clients import issued
from sallyport.inventory.clients.client import LIMITED, SIGNED, Client, ClientTable, Ranges
from sallyport.store.model import Tx, Value
from sallyport.store.vault import Vault


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    tenant_id: int
    name: str
    network: str
    secret: bytes
    all_domains: int
    product: str
    require_message_authenticator: str
    limit_proxy_state: str
    password_verified: int
    signed_since: int | None
    proxy_state_limited_since: int | None
    coa_port: int
    tls_name: str
    tls_fingerprint: str


@dataclass(frozen=True, slots=True)
class NewRow:
    """A client that is about to be added. settings: by column. changes: as the audit trail keeps them."""

    network: Network
    settings: Mapping[str, str | int]
    secret: bytes
    domain_ids: tuple[int, ...]
    changes: str


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a client. columns: their new values. secret, domain_ids: None where they stay."""

    client_id: int
    columns: Mapping[str, Value]
    secret: bytes | None = None
    domain_ids: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of a client. name: as it was. fields: what differs without its secret, [before, after], spelled as
    the interface does."""

    name: str
    fields: dict[str, JSON]


@dataclass(frozen=True, slots=True)
class _Added:
    id: int
    name: str
    network: str


@dataclass(frozen=True, slots=True)
class _DomainOf:
    client_id: int
    domain_id: int


_COLUMNS = (
    "id, tenant_id, name, network, secret, all_domains, product, require_message_authenticator, limit_proxy_state, "
    "password_verified, signed_since, proxy_state_limited_since, coa_port, tls_name, tls_fingerprint"
)


SPELLED: Final = {
    "name": "name",
    "network": "address",
    "product": "product",
    "require_message_authenticator": "requireMessageAuthenticator",
    "limit_proxy_state": "limitProxyState",
    "password_verified": "passwordVerified",
    "tls_name": "tlsName",
    "tls_fingerprint": "tlsFingerprint",
    "coa_port": "coaPort",
}
"""The interface's spelling of each column."""
_ADDED: Final = ("tenant_id", "created_at", "name_key", "all_domains", *SPELLED)
LEARNED: Final = {SIGNED: "signatureLearned", LIMITED: "proxyStateLimitLearned"}
"""What a client has learned, in the audit trail."""


class Opened:
    """Opens sealed secrets once: a reload of thousands of clients costs no decryption of what has not changed."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._clear: dict[tuple[int, bytes], bytes] = {}

    def secrets(self, rows: list[_Row]) -> list[bytes]:
        """The clients' secrets; those of no row are forgotten. SecretError."""
        known, self._clear = self._clear, {}
        for row in rows:
            key = (row.id, row.secret)
            clear = known.get(key)
            self._clear[key] = self._vault.open(row.secret, _identity(row.id)) if clear is None else clear
        return list(self._clear.values())


def _identity(client_id: int) -> str:
    return f"radius_clients/{client_id}/secret"


def load(tx: Tx, opened: Opened) -> ClientTable:
    """All RADIUS clients of the installation. SecretError: the master key is not the one they were sealed under."""
    domains = _domains(tx, 0, tx.value(int, "select max(id) from radius_clients") or 0)
    rows = tx.all(_Row, f"select {_COLUMNS} from radius_clients order by id")
    clients = (
        Client(
            id=row.id,
            tenant_id=row.tenant_id,
            name=row.name,
            network=row.network,
            secret=secret,
            all_domains=row.all_domains,
            domain_ids=tuple(domains.get(row.id, ())),
            product=row.product,
            require_message_authenticator=row.require_message_authenticator,
            limit_proxy_state=row.limit_proxy_state,
            password_verified=row.password_verified,
            signed_since=row.signed_since,
            proxy_state_limited_since=row.proxy_state_limited_since,
            coa_port=row.coa_port,
            tls_name=row.tls_name,
            tls_fingerprint=row.tls_fingerprint,
        )
        for row, secret in zip(rows, opened.secrets(rows), strict=True)
    )
    return ClientTable(clients, issued.load(tx))


def foreign_ranges(tx: Tx, tenant_id: int) -> Ranges:
    """The networks of all other tenants."""
    return Ranges(tx.all(_network, "select network from radius_clients where tenant_id <> :t", t=tenant_id))


def has_others(tx: Tx, tenant_id: int) -> bool:
    """Return whether the installation has other tenants."""
    return tx.value(int, "select 1 from tenants where id <> :t limit 1", t=tenant_id) is not None


def _network(*, network: str) -> Network:
    return ip_network(network)


def add_all(tx: Tx, vault: Vault, tenant_id: int, clients: Sequence[NewRow], at: int) -> list[int]:
    """New clients; their ids. Conflict: a name, a network or a certificate is taken.

    In few statements, since nobody else's answer is written meanwhile. A secret is sealed under the id of its row, so
    that it comes second.
    """
    rows = [
        (tenant_id, at, fold(str(each.settings["name"])), int(not each.domain_ids), *map(each.settings.get, SPELLED))
        for each in clients
    ]
    last = tx.value(int, "select max(id) from radius_clients") or 0
    bare = ((b"", *row) for row in rows)
    tx.insert("radius_clients", ("secret", *_ADDED), bare, on_conflict="on conflict do nothing")
    ids = _ids(tx, tenant_id, clients, last)
    sealed = (
        (number, vault.seal(each.secret, _identity(number)), *row)
        for number, each, row in zip(ids, clients, rows, strict=True)
    )
    on_conflict = "on conflict (id) do update set secret = excluded.secret"
    tx.insert("radius_clients", ("id", "secret", *_ADDED), sealed, on_conflict=on_conflict)
    _add_domains(tx, zip(ids, (each.domain_ids for each in clients), strict=True))
    return ids


def _ids(tx: Tx, tenant_id: int, clients: Sequence[NewRow], last: int) -> list[int]:
    """The ids of clients that were added after that one. Conflict: one was not."""
    added = tx.all(_Added, "select id, name, network from radius_clients where id > :last", last=last)
    known, ids = {(each.name, each.network): each.id for each in added}, list[int]()
    for each in clients:
        number = known.pop((str(each.settings["name"]), str(each.network)), None)
        if number is None:
            raise Conflict(_taken(tx, 0, tenant_id, each.settings))
        ids.append(number)
    return ids


def told(tx: Tx, tenant_id: int, client_id: int) -> dict[str, JSON]:
    """What a tenant's client is now, without its secret, spelled as the interface does. NotFound."""
    row = _find(tx, tenant_id, [client_id])[client_id]
    return {
        **spelled(
            {column: getattr(row, column) for column in SPELLED},
            _domains(tx, client_id, client_id).get(client_id, ()),
        ),
        LEARNED[SIGNED]: row.signed_since is not None,
        LEARNED[LIMITED]: row.proxy_state_limited_since is not None,
    }


def spelled(settings: Mapping[str, str | int], domain_ids: Sequence[int]) -> dict[str, JSON]:
    """A client's settings, spelled as the interface does; it has learned nothing. domain_ids: in their order."""
    return {
        **{spelling: _spelled(column, settings[column]) for column, spelling in SPELLED.items()},
        "domainIds": list[JSON](dict.fromkeys(domain_ids)),
        LEARNED[SIGNED]: False,
        LEARNED[LIMITED]: False,
    }


def _spelled(column: str, value: Value) -> JSON:
    return bool(value) if column == "password_verified" else cast(JSON, value)


def _find(tx: Tx, tenant_id: int, client_ids: Collection[int]) -> dict[int, _Row]:
    """A tenant's clients, read in one go however many they are. NotFound: one of them."""
    sql = f"select {_COLUMNS} from radius_clients where id between :first and :last"
    found = tx.all(_Row, sql, first=min(client_ids, default=0), last=max(client_ids, default=0))
    rows = {row.id: row for row in found if row.tenant_id == tenant_id}
    if not rows.keys() >= set(client_ids):
        raise NotFound("client not found")
    return rows


def _domains(tx: Tx, first: int, last: int) -> dict[int, list[int]]:
    """The domains of the clients whose ids are in a range, in their order; none of those that have all."""
    domains: dict[int, list[int]] = {}
    for each in tx.all(
        _DomainOf,
        "select client_id, domain_id from radius_client_domains where client_id between :first and :last "
        "order by client_id, position",
        first=first,
        last=last,
    ):
        domains.setdefault(each.client_id, []).append(each.domain_id)
    return domains


def _add_domains(tx: Tx, domain_ids: Iterable[tuple[int, Sequence[int]]]) -> None:
    """Domains of clients that have none yet, by the clients' ids: the first is the default, none means all."""
    places = [(client_id, *place) for client_id, ids in domain_ids for place in enumerate(dict.fromkeys(ids))]
    tx.insert("radius_client_domains", ("client_id", "position", "domain_id"), places)


def update_all(tx: Tx, vault: Vault, tenant_id: int, changes: Sequence[Change]) -> list[Changed]:
    """Change a tenant's clients; what became of each. NotFound, Conflict.

    With little work for each, since nobody else's answer is written meanwhile.
    """
    rows = _find(tx, tenant_id, [each.client_id for each in changes])
    domains = _domains(tx, min(rows, default=0), max(rows, default=0))
    changed, moved = list[Changed](), list[tuple[int, Sequence[int]]]()
    for each in changes:
        row, columns = rows[each.client_id], dict(each.columns)
        if each.secret is not None:
            columns["secret"] = vault.seal(each.secret, _identity(row.id))
        if each.domain_ids is not None:
            columns["all_domains"] = int(not each.domain_ids)
        fields = _update(tx, tenant_id, row, columns)
        before = domains.get(row.id, [])
        if each.domain_ids is not None and (after := list(dict.fromkeys(each.domain_ids))) != before:
            fields["domainIds"] = [list[JSON](before), list[JSON](after)]
            moved.append((row.id, after))
            if before:
                tx.execute("delete from radius_client_domains where client_id = :id", id=row.id)
        changed.append(Changed(row.name, fields))
    _add_domains(tx, moved)
    return changed


def _update(tx: Tx, tenant_id: int, row: _Row, columns: dict[str, Value]) -> dict[str, JSON]:
    """Set columns of a client; the fields of `Changed`.

    Another address or another setting of signatures forgets what was learned under the old one.
    """
    if taken := _taken(tx, row.id, tenant_id, columns):
        raise Conflict(taken)
    other = {column for column, value in columns.items() if value != getattr(row, column)}
    if other & {"network", "require_message_authenticator"}:
        columns["signed_since"] = None
    if other & {"network", "limit_proxy_state"}:
        columns["proxy_state_limited_since"] = None
    assignments = "".join(f"{column} = :{column}, " for column in columns)
    key = fold(str(columns.get("name", row.name)))
    tx.execute(f"update radius_clients set {assignments}name_key = :key where id = :id", id=row.id, key=key, **columns)
    forgotten = (what for what in LEARNED if what in columns and getattr(row, what) is not None)
    return {
        **{SPELLED[c]: [_spelled(c, getattr(row, c)), _spelled(c, columns[c])] for c in SPELLED if c in other},
        **{LEARNED[what]: [True, False] for what in forgotten},
    }


def _taken(tx: Tx, client_id: int, tenant_id: int, columns: Mapping[str, Value]) -> str:
    """Return an error message if a value is taken: a name in the tenant; a network or certificate in the installation.

    Return an empty string if all values are free. columns: the columns to set.
    """
    name = str(columns.get("name", ""))
    sql = "select 1 from radius_clients where tenant_id = :t and name_key = :key and id <> :id"
    if name and tx.value(int, sql, t=tenant_id, key=fold(name), id=client_id) is not None:
        return "a RADIUS client with this name exists: choose another name"
    for column, called in (("network", "address"), ("tls_name", "tlsName"), ("tls_fingerprint", "tlsFingerprint")):
        value = str(columns.get(column, ""))
        sql = f"select 1 from radius_clients where {column} = :value and id <> :id"
        if value and tx.value(int, sql, value=value, id=client_id) is not None:
            return f"a RADIUS client with this {called} exists"
    return ""


def delete(tx: Tx, tenant_id: int, client_id: int) -> None:
    """Remove a tenant's client. NotFound."""
    if not tx.execute("delete from radius_clients where id = :id and tenant_id = :t", id=client_id, t=tenant_id):
        raise NotFound("client not found")


def learn(tx: Tx, client: Client, what: str, at: int | None) -> bool:
    """Keep since when a client is known to sign (SIGNED), or to need no unsigned Proxy-State (LIMITED); None forgets
    it. False: the client is gone, or was given another address meanwhile."""
    sql = f"update radius_clients set {what} = :at where id = :id and network = :network"
    return tx.execute(sql, at=at, id=client.id, network=str(client.network)) > 0


def remember(tx: Tx, client: Client, event: str, at: int) -> None:
    """Write a line of the client's history."""
    tx.execute(
        "insert into radius_client_history (tenant_id, client_id, name, event, at) "
        "values (:t, :id, :name, :event, :at)",
        t=client.tenant_id,
        id=client.id,
        name=client.name,
        event=event,
        at=at,
    )
