"""The plan of an import: a step for each imported client. The plan is made before anything is changed.

An imported client updates the tenant's client of the same name. A field that the import does not contain keeps its
value. Examples are the product if the file does not contain it, and the domains if the command does not name any.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_network

from pydantic import TypeAdapter, ValidationError

from sallyport.base.text import fold
from sallyport.inventory.clients.client import MAX_SECRET, Client, ClientTable, Ranges
from sallyport.store.model import Value
from sallyport.web.scope import Name

_NAME: TypeAdapter[str] = TypeAdapter(Name)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A client to import. network: an address with its prefix length. product, domain_ids: None if they stay
    unchanged."""

    name: str
    network: str
    secret: bytes
    product: str | None
    require_message_authenticator: str
    limit_proxy_state: str
    domain_ids: tuple[int, ...] | None

    def columns(self) -> dict[str, Value]:
        """Return the values by column of the store, without secret and domains."""
        columns: dict[str, Value] = {
            "name": self.name,
            "network": self.network,
            "require_message_authenticator": self.require_message_authenticator,
            "limit_proxy_state": self.limit_proxy_state,
        }
        return columns if self.product is None else {**columns, "product": self.product}


class Action(StrEnum):
    """Effect of a step on the RADIUS clients."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Step:
    """The step for one imported client.

    client_id: the existing client of the same name. columns: new values by column. secret, domain_ids: None if they
    stay unchanged. reason: the reason why the client cannot be imported.
    """

    wanted: Wanted
    action: Action
    client_id: int = 0
    columns: dict[str, Value] | None = None
    secret: bytes | None = None
    domain_ids: tuple[int, ...] | None = None
    reason: str = ""

    def changes(self) -> list[str]:
        """Return the names of the changed fields, in the form that the command line shows."""
        names = [name.replace("network", "address") for name in self.columns or {}]
        names += ["secret"] if self.secret is not None else []
        return names + (["domains"] if self.domain_ids is not None else [])


def plan(wanted: Iterable[Wanted], tenant_id: int, table: ClientTable) -> list[Step]:
    """Return a step for each imported client, in the given order."""
    own = [client for client in table.by_id.values() if client.tenant_id == tenant_id]
    present = Present(
        by_name={fold(client.name): client for client in own},
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
    """The existing clients: the tenant's clients by name and by network, and the networks of other tenants."""

    by_name: dict[str, Client]
    by_network: dict[str, Client]
    foreign: Ranges


def _twice(wanted: Wanted, names: dict[str, Wanted], networks: dict[str, Wanted]) -> str:
    if fold(wanted.name) in names:
        return "the name is used twice: the first counts"
    if wanted.network in networks:
        return f"the address is that of {networks[wanted.network].name}, which comes first"
    return ""


def _refusal(wanted: Wanted, present: Present) -> str:
    """Return the reason why a client cannot be imported; empty if it can be imported."""
    try:
        _NAME.validate_python(wanted.name)
    except ValidationError:
        return "a name has 1 to 255 characters, not all of them white space, and no control characters"
    if not 1 <= len(wanted.secret) <= MAX_SECRET:
        return f"a secret has 1 to {MAX_SECRET} octets"
    owner = present.by_network.get(wanted.network)
    if owner is not None and fold(owner.name) != fold(wanted.name):
        return f"the address is that of the RADIUS client {owner.name}"
    if present.foreign.touch(ip_network(wanted.network)):
        return "the address touches a range of another tenant"
    return ""


def _step(wanted: Wanted, present: Present) -> Step:
    client = present.by_name.get(fold(wanted.name))
    if client is None:
        return Step(wanted, Action.NEW)
    now = _columns(client)
    columns = {name: value for name, value in wanted.columns().items() if value != now[name]}
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
    }
