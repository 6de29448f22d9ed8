"""RADIUS clients in files (`sallyport apply`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sallyport.areas.clients.bodies import AddClient
from sallyport.areas.clients.client import Client
from sallyport.areas.clients.operations import new_client
from sallyport.areas.clients.repo import API_NAMES, NewRow
from sallyport.areas.clients.repo import Change as RowChange
from sallyport.areas.clients.service import Clients, new_rows
from sallyport.areas.configured import Change, Kind, Stored
from sallyport.base.answer import answer
from sallyport.base.errors import invalid_field
from sallyport.base.tags import canonical_tags
from sallyport.store.model import Tx

_SHOWN = (*API_NAMES.values(),)


class ClientKind(Kind[AddClient]):
    """RADIUS clients."""

    name = "client"
    body = AddClient
    refers = "domains"
    keeps = frozenset({"secret"})
    names = "select id, tenant_id as owner, name from radius_clients"
    listed_by = ("/network_device/ListClients", "clients")
    changed_by = MappingProxyType(
        {"/network_device/UpdateClient": "clientId", "/network_device/DeleteClient": "clientId"}
    )
    harmless = frozenset({"unlatch"})

    def __init__(self, service: Clients) -> None:
        self._service = service

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        return [_stored(client, domains) for client in self._service.read(tx, tenant_id)]

    def values(self, body: AddClient) -> dict[str, object]:
        return {**super().values(body), "tags": canonical_tags(body.tags), "macForms": frozenset(body.macForms)}

    def check(self, body: AddClient, before: Stored | None) -> None:
        if not body.secret:
            raise invalid_field("secret", "is missing: give a file: or an env: reference")
        new_rows([new_client(body)])

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[AddClient]]) -> None:
        removed = [int(each.before.id) for each in changes if each.before and each.body is None]
        rows, changed = list[NewRow](), list[RowChange]()
        for each in changes:
            if each.body is not None:
                (row,) = new_rows([replace(new_client(each.body), domain_ids=each.domains)])
                if each.before is None:
                    rows.append(row)
                else:
                    changed.append(_changed(int(each.before.id), row, each))
        self._service.write(tx, tenant_id, rows, changed, removed)


def _stored(client: Client, domains: Mapping[int, str]) -> Stored:
    shown = answer(client)
    fields: dict[str, object] = {name: shown[name] for name in _SHOWN}
    fields |= {
        "secret": {"hex": client.secret.octets.hex()},
        "domains": [domains[domain_id] for domain_id in client.domain_ids],
        "tags": list(client.tags),
    }
    if client.mac_password is not None:
        fields["macPassword"] = {"hex": client.mac_password.reveal().hex()}
    return Stored(client.id, fields)


def _changed(client_id: int, row: NewRow, change: Change[AddClient]) -> RowChange:
    columns = {column: row.settings[column] for column, name in API_NAMES.items() if name in change.fields}
    return RowChange(
        client_id,
        columns,
        row.secret if "secret" in change.fields else None,
        change.domains if "domains" in change.fields else None,
        row.mac_password or None if "macPassword" in change.fields else None,
    )
