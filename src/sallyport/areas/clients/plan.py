"""The plan of an import: what the import would change for each client.

If the tenant has a client of the same name, the import changes this client. A field keeps its value if the import does
not contain the field. For example, the product stays if the file does not contain it, and the domains stay if the
command names none.

`sallyport import` and `sallyport apply` have another plan (`areas.configuration`), which is written as a whole or not
at all. This one decides about each client: with --skip-refused, the clients that can be imported are imported, and the
others are listed with their reasons. It needs only the clients in memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_network

from pydantic import TypeAdapter, ValidationError

from sallyport.areas.clients.client import MAX_SECRET, Client, ClientTable, Ranges
from sallyport.base.tags import as_stored, changed_tags
from sallyport.base.text import fold
from sallyport.store.model import Value
from sallyport.web.bodies import Name

_NAME: TypeAdapter[str] = TypeAdapter(Name)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A client to import.

    network: a network in CIDR notation. product: None keeps the existing product. domain_ids: None keeps the existing
    domains. tags: the tags to change; see `changed_tags`.
    """

    name: str
    network: str
    secret: bytes
    product: str | None
    require_message_authenticator: str
    limit_proxy_state: str
    domain_ids: tuple[int, ...] | None
    tags: tuple[str, ...] = ()

    def columns(self) -> dict[str, Value]:
        """Return the client's values by column of the store, without the secret and the domains."""
        columns: dict[str, Value] = {
            "name": self.name,
            "network": self.network,
            "require_message_authenticator": self.require_message_authenticator,
            "limit_proxy_state": self.limit_proxy_state,
        }
        return columns if self.product is None else {**columns, "product": self.product}


class Action(StrEnum):
    """What a step does to the RADIUS client."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Step:
    """The planned change for one imported client.

    client_id: the id of the existing client of the same name; 0 if there is none. columns: the new values by column of
    the store. secret: None keeps the secret. domain_ids: None keeps the domains. reason: why the client cannot be
    imported.
    """

    wanted: Wanted
    action: Action
    client_id: int = 0
    columns: dict[str, Value] | None = None
    secret: bytes | None = None
    domain_ids: tuple[int, ...] | None = None
    reason: str = ""

    def changes(self) -> list[str]:
        """Return the names of the changed fields, as the command line prints them."""
        names = [name.replace("network", "address") for name in self.columns or {}]
        names += ["secret"] if self.secret is not None else []
        return names + (["domains"] if self.domain_ids is not None else [])


def plan(wanted: Iterable[Wanted], tenant_id: int, table: ClientTable) -> list[Step]:
    """Return a step for each imported client, in the order of `wanted`."""
    own = table.of_tenant(tenant_id)
    present = Present(
        by_name={client.name_key: client for client in own},
        by_network={str(client.network): client for client in own},
        foreign=table.foreign_ranges(tenant_id),
    )
    names: dict[str, Wanted] = {}
    networks: dict[str, Wanted] = {}
    steps = []
    for each in wanted:
        reason = _twice(each, names, networks) or _refusal(each, present)
        names.setdefault(fold(each.name), each)
        networks.setdefault(each.network, each)
        steps.append(Step(each, Action.REFUSED, reason=reason) if reason else _step(each, present))
    return steps


@dataclass(frozen=True, slots=True)
class Present:
    """The existing clients that an import may collide with.

    by_name, by_network: the clients of the tenant. foreign: the networks of all other tenants.
    """

    by_name: dict[str, Client]
    by_network: dict[str, Client]
    foreign: Ranges


def _twice(wanted: Wanted, names: dict[str, Wanted], networks: dict[str, Wanted]) -> str:
    if fold(wanted.name) in names:
        return "the name is used twice; only the first client is imported"
    if wanted.network in networks:
        return f"the client {networks[wanted.network].name} in the file has the same address"
    return ""


def _refusal(wanted: Wanted, present: Present) -> str:
    """Return the reason why a client cannot be imported, or an empty string."""
    try:
        _NAME.validate_python(wanted.name)
    except ValidationError:
        return "the name must have 1 to 255 characters, at least one that is not white space, and no control characters"
    if not 1 <= len(wanted.secret) <= MAX_SECRET:
        return f"the secret must have 1 to {MAX_SECRET} octets"
    owner = present.by_network.get(wanted.network)
    if owner is not None and owner.name_key != fold(wanted.name):
        return f"the RADIUS client {owner.name} has the same address"
    if present.foreign.touch(ip_network(wanted.network)):
        return "the address overlaps a network of another tenant"
    return ""


def _step(wanted: Wanted, present: Present) -> Step:
    client = present.by_name.get(fold(wanted.name))
    if client is None:
        return Step(wanted, Action.NEW)
    now = _columns(client)
    new = wanted.columns() | {"tags": as_stored(changed_tags(client.tags, wanted.tags))}
    columns = {name: value for name, value in new.items() if value != now[name]}
    secret = wanted.secret if wanted.secret != client.secret.octets else None
    domain_ids = wanted.domain_ids if wanted.domain_ids not in (None, client.domain_ids) else None
    if not columns and secret is None and domain_ids is None:
        return Step(wanted, Action.UNCHANGED, client.id)
    return Step(wanted, Action.CHANGED, client.id, columns, secret, domain_ids)


def _columns(client: Client) -> dict[str, Value]:
    return {
        "name": client.name,
        "network": str(client.network),
        "product": client.product,
        "require_message_authenticator": client.require_message_authenticator.value,
        "limit_proxy_state": client.limit_proxy_state.value,
        "tags": as_stored(client.tags),
    }
