"""The SQL of RADIUS clients. A client's secret is encrypted under the identity `radius_clients/ID/secret`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final, cast

from sallyport.areas.clients import issued
from sallyport.areas.clients.client import (
    LIMITED,
    SIGNED,
    Client,
    ClientTable,
    MacForm,
    Opened,
    Ranges,
    check_mac_forms,
)
from sallyport.base.addresses import Network, network_bits
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.tags import NO_TAGS, Tags, changed_tags, of_store
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import LISTED, LISTED_TEXTS, Tx, Value, columns_of, listed
from sallyport.store.vault import Vault


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    tenant_id: int
    name: str
    name_key: str
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
    mac_forms: str
    mac_password: bytes | None
    tags: str
    note: str
    shadow: int


@dataclass(frozen=True, slots=True)
class NewRow:
    """A client to add.

    settings: the client's values by column. changes: the text of the entry for the audit trail. mac_password: empty if
    the client has none.
    """

    network: Network
    settings: Mapping[str, str | int]
    secret: bytes
    domain_ids: tuple[int, ...]
    changes: str
    mac_password: bytes = b""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a client.

    columns: the new values by column. secret, mac_password: None keeps them. domain_ids: None keeps the domains.
    """

    client_id: int
    columns: Mapping[str, Value]
    secret: bytes | None = None
    domain_ids: Sequence[int] | None = None
    mac_password: bytes | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of a change.

    name: the client's name before the change. fields: for each changed field, a list with the value before and the
    value after the change. The key is the field's name in the API. The secret is left out.
    """

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


_COLUMNS = ", ".join(columns_of(_Row))
API_NAMES: Final = {
    "name": "name",
    "network": "address",
    "product": "product",
    "require_message_authenticator": "requireMessageAuthenticator",
    "limit_proxy_state": "limitProxyState",
    "password_verified": "passwordVerified",
    "shadow": "shadow",
    "tls_name": "tlsName",
    "tls_fingerprint": "tlsFingerprint",
    "coa_port": "coaPort",
    "mac_forms": "macForms",
    "tags": "tags",
    "note": "note",
}
"""The API's name of each column."""
_ADDED: Final = ("tenant_id", "created_at", "name_key", "all_domains", "network_bits", *API_NAMES)
LEARNED: Final = {SIGNED: "signatureLearned", LIMITED: "proxyStateLimitLearned"}
"""The name under which the audit trail shows each learned setting."""


def _identity(client_id: int, column: str = "secret") -> str:
    return f"radius_clients/{client_id}/{column}"


def load(tx: Tx, vault: Vault, before: ClientTable) -> ClientTable:
    """Return all RADIUS clients of the installation. Raises SecretError if a secret was sealed under another master
    key.

    before: an earlier result. A client whose rows are the same is taken from it, because a reload may read thousands of
    clients of which one has changed: to make and to drop all of them would hold up the event loop. `before` is not
    changed: other threads may read it at the same time.
    """
    domains = _domains(tx, None)
    clients: list[Client] = []
    opened: dict[int, Opened] = {}
    for row in tx.all(_Row, f"select {_COLUMNS} from radius_clients order by id"):
        known = opened[row.id] = _opened(vault, row, before.opened.get(row.id, _UNKNOWN))
        stored = row, tuple(domains.get(row.id, ()))
        client = before.by_id.get(row.id)
        if client is None or client.stored != stored or client.is_latched:
            client = _client(row, known, stored)
        clients.append(client)
    return ClientTable(clients, issued.load(tx), opened)


def _client(row: _Row, known: Opened, stored: tuple[_Row, tuple[int, ...]]) -> Client:
    settings = {name: getattr(row, name) for name in _PLAIN}
    return Client(**settings, secret=known.secret, mac_password=known.mac_password, domain_ids=stored[1], stored=stored)


_SEALED: Final = ("secret", "mac_password")
_PLAIN: Final = tuple(name for name in columns_of(_Row) if name not in _SEALED)
_UNKNOWN: Final = Opened()


def _opened(vault: Vault, row: _Row, known: Opened) -> Opened:
    """Return the secrets of a client. known: the secrets before, which are returned if none has changed."""
    if known.sealed == row.secret and known.sealed_password == row.mac_password:
        return known
    word, secret = b"", vault.open(row.secret, _identity(row.id))
    if row.mac_password is not None:
        word = vault.open(row.mac_password, _identity(row.id, "mac_password"))
    return Opened(row.secret, secret, row.mac_password, word)


def touch_others(tx: Tx, tenant_id: int, networks: Sequence[Network]) -> bool:
    """Return whether a network has an address in common with a network of another tenant.

    An index finds the overlapping networks. A network that a node of an earlier release has written is not in the
    index; see the schema.
    """
    around = f"select 1 from radius_clients where network_bits in {LISTED_TEXTS} and tenant_id <> :t limit 1"
    inside = "select 1 from radius_clients where network_bits > :b and network_bits < :e and tenant_id <> :t limit 1"
    for bits in map(network_bits, networks):
        wider = listed(bits[:length] for length in range(1, len(bits) + 1))
        if tx.rows(around, t=tenant_id, ids=wider) or tx.rows(inside, t=tenant_id, b=bits, e=f"{bits}2"):
            return True
    unknown = "select network from radius_clients where network_bits is null and tenant_id <> :t"
    return any(map(Ranges(tx.all(_network, unknown, t=tenant_id)).touch, networks))


def has_others(tx: Tx, tenant_id: int) -> bool:
    """Return whether the installation has a tenant besides the given tenant."""
    return tx.value(int, "select 1 from tenants where id <> :t limit 1", t=tenant_id) is not None


def _network(*, network: str) -> Network:
    return ip_network(network)


def add_all(tx: Tx, vault: Vault, tenant_id: int, clients: Sequence[NewRow], at: int) -> list[int]:
    """Insert clients, and return their ids. Raises Conflict if a name, a network or a certificate is taken.

    The function uses few statements, because it blocks all other transactions. To seal a client's secret, the function
    needs the id of the client's row. Therefore a second statement writes the secrets after the insert.
    """
    rows = [
        (
            tenant_id,
            at,
            fold(str(each.settings["name"])),
            int(not each.domain_ids),
            network_bits(each.network),
            *map(each.settings.get, API_NAMES),
        )
        for each in clients
    ]
    last = tx.value(int, "select max(id) from radius_clients") or 0
    bare = ((b"", *row) for row in rows)
    tx.insert("radius_clients", ("secret", *_ADDED), bare, on_conflict="on conflict do nothing")
    ids = _ids(tx, tenant_id, clients, last)
    sealed = (
        (number, vault.seal(each.secret, _identity(number)), _sealed_word(vault, each.mac_password, number), *row)
        for number, each, row in zip(ids, clients, rows, strict=True)
    )
    on_conflict = "on conflict (id) do update set secret = excluded.secret, mac_password = excluded.mac_password"
    tx.insert("radius_clients", ("id", *_SEALED, *_ADDED), sealed, on_conflict=on_conflict)
    _add_domains(tx, zip(ids, (each.domain_ids for each in clients), strict=True))
    return ids


def _sealed_word(vault: Vault, word: bytes, client_id: int) -> bytes | None:
    return vault.seal(word, _identity(client_id, "mac_password")) if word else None


def _ids(tx: Tx, tenant_id: int, clients: Sequence[NewRow], last: int) -> list[int]:
    """Return the ids of the inserted clients. Raises Conflict if a client was not inserted.

    last: the highest id before the insert.
    """
    added = tx.all(_Added, "select id, name, network from radius_clients where id > :last", last=last)
    known, ids = {(each.name, each.network): each.id for each in added}, list[int]()
    for each in clients:
        number = known.pop((str(each.settings["name"]), str(each.network)), None)
        if number is None:
            raise Conflict(_taken(tx, 0, tenant_id, each.settings))
        ids.append(number)
    return ids


def described(tx: Tx, tenant_id: int, client_id: int) -> dict[str, JSON]:
    """Return the fields of a tenant's client by their names in the API, without the secret. Raises NotFound."""
    row = _find(tx, tenant_id, [client_id])[client_id]
    return {
        **api_fields(
            {column: getattr(row, column) for column in API_NAMES}, _domains(tx, [client_id]).get(client_id, ())
        ),
        LEARNED[SIGNED]: row.signed_since is not None,
        LEARNED[LIMITED]: row.proxy_state_limited_since is not None,
    }


def tags_after(tx: Tx, client_id: int, tags: Sequence[str]) -> Tags:
    """Return the tags of a client after a change of them. Raises Invalid. tags: see `Clients.update`."""
    present = tx.value(str, "select tags from radius_clients where id = :id", id=client_id) or ""
    return changed_tags(of_store(present), tags) if tags else NO_TAGS


def api_fields(settings: Mapping[str, str | int], domain_ids: Sequence[int]) -> dict[str, JSON]:
    """Return the fields of a new client by their names in the API. domain_ids: the ids of the domains, the default
    first."""
    return {
        **{name: as_json(column, settings[column]) for column, name in API_NAMES.items()},
        "domainIds": list[JSON](dict.fromkeys(domain_ids)),
        LEARNED[SIGNED]: False,
        LEARNED[LIMITED]: False,
    }


def as_json(column: str, value: Value) -> JSON:
    """Return the value of a column as the API has it."""
    if column == "mac_forms":
        return list[JSON](str(value).split(",")) if value else []
    if column == "tags":
        return list[JSON](of_store(str(value)))
    return bool(value) if column in ("password_verified", "shadow") else cast(JSON, value)


def _find(tx: Tx, tenant_id: int, client_ids: Collection[int]) -> dict[int, _Row]:
    """Return a tenant's clients by id, with one query. Raises NotFound if the tenant does not have one of the
    clients."""
    sql = f"select {_COLUMNS} from radius_clients where id in {LISTED} and tenant_id = :t"
    rows = {row.id: row for row in tx.all(_Row, sql, ids=listed(client_ids), t=tenant_id)}
    if not rows.keys() >= set(client_ids):
        raise NotFound("client not found")
    return rows


def _domains(tx: Tx, client_ids: Collection[int] | None) -> dict[int, list[int]]:
    """Return the domain ids of clients, the default domain first. client_ids: None for all clients.

    The result has no entry for a client with all domains.
    """
    domains: dict[int, list[int]] = {}
    some, given = ("", {}) if client_ids is None else (f"where client_id in {LISTED} ", {"ids": listed(client_ids)})
    sql = f"select client_id, domain_id from radius_client_domains {some}order by client_id, position"
    for each in tx.all(_DomainOf, sql, **given):
        domains.setdefault(each.client_id, []).append(each.domain_id)
    return domains


def _add_domains(tx: Tx, domain_ids: Iterable[tuple[int, Sequence[int]]]) -> None:
    """Insert the domains of clients that have none yet. Raises NotFound if a domain does not exist any more.

    domain_ids: pairs of a client's id and the ids of the client's domains. The first domain is the default. A client
    without domain ids has all domains.
    """
    places = [(client_id, *place) for client_id, ids in domain_ids for place in enumerate(dict.fromkeys(ids))]
    for domain_id in {domain_id for _, _, domain_id in places}:
        audit.tenant_of(tx, domain_id)
    tx.insert("radius_client_domains", ("client_id", "position", "domain_id"), places)


def update_all(tx: Tx, vault: Vault, tenant_id: int, changes: Sequence[Change]) -> list[Changed]:
    """Change clients of a tenant, and return the result for each. Raises NotFound, Conflict.

    The function does little work for each client, because it blocks all other transactions.
    """
    rows = _find(tx, tenant_id, [each.client_id for each in changes])
    domains = _domains(tx, rows)
    changed, moved = list[Changed](), list[tuple[int, Sequence[int]]]()
    for each in changes:
        row, columns = rows[each.client_id], dict(each.columns)
        if each.secret is not None:
            columns["secret"] = vault.seal(each.secret, _identity(row.id))
        if each.mac_password is not None:
            columns["mac_password"] = _sealed_word(vault, each.mac_password, row.id)
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
    """Set columns of a client, and return the fields for `Changed`.

    If a signature setting gets a new value, the function resets what the service has learned for this setting. If only
    the address changes, nothing is reset: an operator may change an address, but only an admin may relax the checks of
    signatures.
    """
    if taken := _taken(tx, row.id, tenant_id, columns):
        raise Conflict(taken)
    _settle_forms(row, columns)
    other = {column for column, value in columns.items() if value != getattr(row, column)}
    if "require_message_authenticator" in other:
        columns["signed_since"] = None
    if "limit_proxy_state" in other:
        columns["proxy_state_limited_since"] = None
    assignments = "".join(f"{column} = :{column}, " for column in columns)
    key = fold(str(columns.get("name", row.name)))
    bits = network_bits(ip_network(str(columns.get("network", row.network))))
    sql = f"update radius_clients set {assignments}name_key = :key, network_bits = :bits where id = :id"
    tx.execute(sql, id=row.id, key=key, bits=bits, **columns)
    forgotten = (what for what in LEARNED if what in columns and getattr(row, what) is not None)
    return {
        **{API_NAMES[c]: [as_json(c, getattr(row, c)), as_json(c, columns[c])] for c in API_NAMES if c in other},
        **{LEARNED[what]: [True, False] for what in forgotten},
    }


def _settle_forms(row: _Row, columns: dict[str, Value]) -> None:
    """Check the forms of MAC authentication bypass after a change. Without the form `password`, the client's password
    of all stations is removed. Raises Invalid."""
    forms, kept = str(columns.get("mac_forms", row.mac_forms)), row.mac_password is not None
    network = ip_network(str(columns.get("network", row.network)))
    check_mac_forms(forms, network, given="mac_password" in columns, kept=kept)
    if kept and MacForm.PASSWORD not in forms.split(","):
        columns["mac_password"] = None


def _taken(tx: Tx, client_id: int, tenant_id: int, columns: Mapping[str, Value]) -> str:
    """Return an error message if another client has one of the values that are to be set. Otherwise return an empty
    string.

    A name must be unique in its tenant. A network and a certificate must be unique in the installation. columns: the
    columns to set.
    """
    name = str(columns.get("name", ""))
    sql = "select 1 from radius_clients where tenant_id = :t and name_key = :key and id <> :id"
    if name and tx.value(int, sql, t=tenant_id, key=fold(name), id=client_id) is not None:
        return "a RADIUS client already has this name: choose another name"
    for column, called in (("network", "address"), ("tls_name", "tlsName"), ("tls_fingerprint", "tlsFingerprint")):
        value = str(columns.get(column, ""))
        sql = (
            "select case when tenant_id = :t then name else '' end from radius_clients "
            f"where {column} = :value and {column} <> '' and id <> :id"
        )
        if value and (other := tx.value(str, sql, t=tenant_id, value=value, id=client_id)) is not None:
            holder = f"the RADIUS client {other}" if other else "a RADIUS client"
            return f"{holder} already has this {called}: choose another {called}, or change that client"
    return ""


def characters(tx: Tx, tenant_id: int) -> int:
    """Return the number of characters of the tags and notes of a tenant's clients."""
    sql = "select sum(length(tags) + length(note)) from radius_clients where tenant_id = :t"
    return tx.value(int, sql, t=tenant_id) or 0


def delete(tx: Tx, tenant_id: int, client_id: int) -> None:
    """Remove a tenant's client. Raises NotFound."""
    if not tx.execute("delete from radius_clients where id = :id and tenant_id = :t", id=client_id, t=tenant_id):
        raise NotFound("client not found")


def learn(tx: Tx, client: Client, what: str, at: int | None) -> bool:
    """Store the time at which the service learned a setting of a client. Return False if the client was deleted.

    what: the setting, SIGNED or LIMITED. at: the time in microseconds; None resets the setting.
    """
    return tx.execute(f"update radius_clients set {what} = :at where id = :id", at=at, id=client.id) > 0


def remember(tx: Tx, client: Client, event: str, at: int) -> None:
    """Insert an entry into the client's history. at: the time in microseconds."""
    tx.execute(
        "insert into radius_client_history (tenant_id, client_id, name, event, at) "
        "values (:t, :id, :name, :event, :at)",
        t=client.tenant_id,
        id=client.id,
        name=client.name,
        event=event,
        at=at,
    )
