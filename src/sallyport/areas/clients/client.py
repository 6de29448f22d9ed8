"""A RADIUS client, and the table of all clients."""

import copy
import ipaddress
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from sallyport.areas.clients import weakness
from sallyport.areas.clients.issued import Issued
from sallyport.base.addresses import Network
from sallyport.base.answer import Wire
from sallyport.base.bounded import BoundedMap
from sallyport.base.errors import NotFound, invalid_field
from sallyport.base.secret import Secret
from sallyport.base.tags import Tags, as_object, of_store
from sallyport.base.text import fold
from sallyport.radius.attributes import CONNECT_INFO, NAS_IDENTIFIER
from sallyport.radius.duplicates import Source
from sallyport.radius.dynamic import PORT
from sallyport.radius.packet import Request, SharedSecret

if TYPE_CHECKING:
    from sallyport.store.snapshot import (
        Snapshot,
    )  # imported for the type alone, because the command line reads this module

MAX_SECRET: Final = 128
REQUIRED: Final = (
    "Whether requests without Message-Authenticator are dropped: the setting is `yes`, or it is `auto` and the service "
    "has learned that the client signs its requests."
)
DROPPED: Final = (
    "Whether unsigned requests with Proxy-State are dropped: the setting is `yes`, or it is `auto` and the service has "
    "learned that it may drop them."
)
# The settings that a client learns. The name of each is the column that stores the time at which it was learned.
SIGNED: Final = "signed_since"
LIMITED: Final = "proxy_state_limited_since"
CHECK: Final = b"sallyport-check"
"""The Connect-Info of each request of `sallyport check`, and the NAS-Identifier unless another one is given."""
RADSEC: Final = SharedSecret(b"radsec")
"""The shared secret of every client over TLS, where the certificate proves the client's identity (RFC 6614 section
2.3)."""
_MEMO: Final = 65_536


class State(StrEnum):
    """A state of a RADIUS client that needs attention: it has sent requests before, but none for a day; or it has sent
    unsigned requests in the last day."""

    SILENT = "silent"
    UNSIGNED = "unsigned"


def is_check(request: Request) -> bool:
    """Return whether a request comes from `sallyport check`. The service learns nothing about the device from it."""
    return CHECK in (request.first.get(NAS_IDENTIFIER), request.first.get(CONNECT_INFO))


class Signatures(StrEnum):
    """A BlastRADIUS setting (CVE-2024-3596): yes, no, or auto (learned from the client's requests)."""

    YES = "yes"
    NO = "no"
    AUTO = "auto"


class MacForm(StrEnum):
    """A form of MAC authentication bypass that only some products use, so that a client must be set to it.

    login-user, authenticate-only: the Service-Type. no-station: the request has no Calling-Station-Id. password: all
    stations have the same password.
    """

    LOGIN_USER = "login-user"
    AUTHENTICATE_ONLY = "authenticate-only"
    NO_STATION = "no-station"
    PASSWORD = "password"  # noqa: S105


NO_FORMS: Final = frozenset[str]()


def joined_forms(forms: Iterable[MacForm]) -> str:
    """Return forms of MAC authentication bypass as the store has them."""
    given = set(forms)
    return ",".join(form.value for form in MacForm if form in given)


def in_order(forms: frozenset[str]) -> list[MacForm]:
    """Return forms of MAC authentication bypass in the order of their declaration."""
    return [form for form in MacForm if form.value in forms]


def check_mac_forms(forms: str, network: Network, *, given: bool, kept: bool = False) -> None:
    """Check the forms of a client. Raises Invalid.

    A password that all stations have proves no station, so only a single device may use it. forms: as `joined_forms`
    returns them. given: whether the change sets a password for all stations. kept: whether the client has one already.
    """
    if MacForm.PASSWORD not in forms.split(","):
        if given:
            raise invalid_field("macPassword", "needs the form `password` in macForms")
    elif network.num_addresses > 1:
        raise invalid_field("macForms", "must not contain `password`, because the client has more than one address")
    elif not given and not kept:
        raise invalid_field("macPassword", "is required for the form `password`")


class Client:
    """A RADIUS client as the login path sees it.

    Each of signature_required and proxy_state_limited is true if an admin has set it. If its setting is `auto`, the
    value becomes true when the service learns it from the client's requests. The service learns only about clients with
    a single address. A learned value applies at once, and is stored within about a second.

    is_single: whether the client has a single address. mac_forms: the values of `MacForm` that the client uses.
    mac_password: the password that all stations behind the client have, or None.

    stored: the rows of the store from which the client was made, to compare them with the rows of a reload. is_latched:
    whether a setting was learned since then. name_key: the folded name, as the store has it, because to fold the names
    of 50,000 clients may take 4 s.
    """

    __slots__ = (
        "all_domains", "coa_port", "domain_ids", "id", "is_latched", "is_single", "learns_limit", "learns_signature",
        "limit_proxy_state", "mac_forms", "mac_password", "name", "name_key", "network", "note", "password_verified",
        "product", "proxy_state_limited", "require_message_authenticator", "secret", "shadow", "signature_required",
        "stored",
        "tags", "tenant_id", "tls_fingerprint", "tls_name",
    )  # fmt: skip

    id: Annotated[int, Wire("Id of the client.", "clientId", title="Id")]
    name: Annotated[str, Wire("Name of the client.", title="Client")]
    domain_ids: Annotated[
        tuple[int, ...],
        Wire(
            "Ids of the client's domains, the default first. Empty if the client has all domains of the tenant.",
            "domainIds",
            kind=list[int],
            after="address",
            look="none",
        ),
    ]
    product: Annotated[str, Wire("Product for the inventory. Empty if the product is detected from packets.")]
    require_message_authenticator: Annotated[
        Signatures,
        Wire(
            "Drop requests without Message-Authenticator.", "requireMessageAuthenticator", title="Setting of signatures"
        ),
    ]
    limit_proxy_state: Annotated[
        Signatures, Wire("Drop unsigned requests with Proxy-State.", "limitProxyState", title="Setting of Proxy-State")
    ]
    password_verified: Annotated[
        bool, Wire("Whether the client checks passwords itself.", "passwordVerified", title="Checks passwords itself")
    ]
    shadow: Annotated[
        bool,
        Wire(
            "Whether the client sends copies of the traffic of another server, which are never answered.",
            title="Sends copies",
        ),
    ]
    coa_port: Annotated[
        int,
        Wire(
            "UDP port for Disconnect and CoA requests. 0 if the client accepts no such requests.",
            "coaPort",
            title="Port for Disconnect",
        ),
    ]
    tls_name: Annotated[
        str,
        Wire(
            "Name in the client's certificate for RadSec, in canonical form. Empty if there is none.",
            "tlsName",
            title="Name in its certificate",
        ),
    ]
    tls_fingerprint: Annotated[
        str,
        Wire(
            "SHA-256 of the client's certificate for RadSec, in hex. Empty if there is none.",
            "tlsFingerprint",
            title="Fingerprint of its certificate",
            look="code",
        ),
    ]
    mac_forms: Annotated[
        frozenset[str],
        Wire(
            "Forms of MAC authentication bypass that the client uses beside the usual one.",
            "macForms",
            in_order,
            title="MAC authentication",
        ),
    ]
    signature_required: Annotated[bool, Wire(REQUIRED, "signatureRequired", title="Signature required")]
    proxy_state_limited: Annotated[bool, Wire(DROPPED, "proxyStateLimited", title="Unsigned Proxy-State dropped")]
    tags: Annotated[Tags, Wire("Tags, which the devices of the client take over.", convert=as_object)]
    note: Annotated[str, Wire("Note about the client.")]

    def __init__(
        self,
        *,
        id: int,
        tenant_id: int,
        name: str,
        network: str,
        secret: bytes,
        all_domains: int,
        domain_ids: tuple[int, ...],
        product: str,
        require_message_authenticator: str,
        limit_proxy_state: str,
        password_verified: int,
        signed_since: int | None,
        proxy_state_limited_since: int | None,
        coa_port: int = PORT,
        tls_name: str = "",
        tls_fingerprint: str = "",
        name_key: str = "",
        mac_forms: str = "",
        mac_password: bytes = b"",
        tags: str = "",
        note: str = "",
        shadow: int = 0,
        stored: object = None,
    ) -> None:
        self.id = id
        self.tenant_id = tenant_id
        self.name = name
        self.name_key = name_key or fold(name)
        self.stored = stored
        self.is_latched = False
        self.network: Network = ipaddress.ip_network(network)
        self.secret = SharedSecret(secret)
        self.all_domains = bool(all_domains)
        self.domain_ids = domain_ids
        self.product = product
        self.tags = of_store(tags)
        self.note = note
        self.password_verified = bool(password_verified)
        self.shadow = bool(shadow)
        self.tls_name = tls_name
        self.tls_fingerprint = tls_fingerprint
        self.coa_port = coa_port
        self.require_message_authenticator = Signatures(require_message_authenticator)
        self.limit_proxy_state = Signatures(limit_proxy_state)
        self.is_single = single = self.network.num_addresses == 1
        self.mac_forms = frozenset(mac_forms.split(",")) if mac_forms else NO_FORMS
        self.mac_password = Secret(mac_password) if mac_password and single else None
        signature, limit = self.require_message_authenticator, self.limit_proxy_state
        learned = signed_since is not None
        limited = proxy_state_limited_since is not None
        self.signature_required = signature is Signatures.YES or (signature is Signatures.AUTO and learned)
        self.proxy_state_limited = limit is Signatures.YES or (limit is Signatures.AUTO and limited)
        self.learns_signature = signature is Signatures.AUTO and not learned and single
        self.learns_limit = limit is Signatures.AUTO and not limited and single

    def latch(self, what: str) -> None:
        """Apply a setting that the service has learned.

        what: SIGNED to require signatures, or LIMITED to drop unsigned requests with Proxy-State.
        """
        self.is_latched = True
        if what == SIGNED:
            self.learns_signature, self.signature_required = False, True
        else:
            self.learns_limit, self.proxy_state_limited = False, True

    def over_tls(self) -> "Client":
        """Return a copy of the client for RadSec. The copy has the secret `radsec` and learns no settings."""
        client = copy.copy(self)
        client.secret = RADSEC
        client.learns_signature = client.learns_limit = False
        return client

    def proves(self, request: Request) -> bool:
        """Return whether the sender of a request has proved that it is this client: by a certificate over TLS, or by a
        signature, if no other host can send as this client. Otherwise the attributes of the request are only claims."""
        return self.secret is RADSEC or (request.signed and self.is_single)

    @property
    @Wire("IP address or network from which the client sends requests.", after="name", look="code")
    def address(self) -> str:
        """The client's network as text; a single address has no prefix length."""
        return str(self.network.network_address if self.network.num_addresses == 1 else self.network)

    @property
    @Wire("Weaknesses of the secret, the address and the settings.")
    def warnings(self) -> list[str]:
        """A line for each weakness of the client."""
        return weakness.of_client(self)

    def contains(self, folded: str) -> bool:
        """Return whether the name, the address or the product contains a folded text."""
        return folded in self.name_key or folded in str(self.network) or folded in self.product.casefold()


class Ranges:
    """A set of networks, to test whether another network overlaps the set."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._known = set(networks)
        self._lengths = {(network.version, network.prefixlen) for network in self._known}
        self._starts = sorted((network.version, int(network.network_address)) for network in self._known)

    def touch(self, network: Network) -> bool:
        """Return whether a network has an address in common with a network of this set."""
        version, first = network.version, int(network.network_address)
        at = bisect_left(self._starts, (version, first))
        if at < len(self._starts) and self._starts[at] <= (version, first + network.num_addresses - 1):
            return True
        return any(
            network.supernet(new_prefix=length) in self._known
            for other, length in self._lengths
            if other == version and length < network.prefixlen
        )


class Opened(NamedTuple):
    """The shared secret and the password of all stations of a client, as they are stored and in clear."""

    sealed: bytes = b""
    secret: bytes = b""
    sealed_password: bytes | None = None
    mac_password: bytes = b""


class ClientTable:
    """All RADIUS clients, by source address and by certificate. If networks overlap, the longest prefix wins.

    opened: for each client id, the client's secrets, so that a reload decrypts only the secrets that have changed.
    """

    def __init__(
        self,
        clients: Iterable[Client] = (),
        issued: Issued | None = None,
        opened: Mapping[int, Opened] = MappingProxyType({}),
    ) -> None:
        self.issued = issued or Issued()
        self.opened = opened
        self.by_id = {client.id: client for client in clients}
        self._by_tenant: dict[int, list[Client]] = {}
        self._by_prefix: dict[tuple[int, int], dict[int, Client]] = {}
        for client in self.by_id.values():
            self._by_tenant.setdefault(client.tenant_id, []).append(client)
            network = client.network
            prefix = self._by_prefix.setdefault((network.version, network.prefixlen), {})
            prefix[int(network.network_address)] = client
        self._lengths = sorted(self._by_prefix, reverse=True)
        self._found = BoundedMap[str, Client](_MEMO)
        over_tls = [each.over_tls() for each in self.by_id.values() if each.tls_name or each.tls_fingerprint]
        self._by_fingerprint = {each.tls_fingerprint: each for each in over_tls if each.tls_fingerprint}
        self._by_tls_name = {each.tls_name: each for each in over_tls if each.tls_name}

    def present(self, client_id: int) -> Client:
        """Return the client with an id. Raises NotFound if the client does not exist."""
        found = self.by_id.get(client_id)
        if found is None:
            raise NotFound("client not found")
        return found

    def of_tenant(self, tenant_id: int) -> Sequence[Client]:
        """Return a tenant's clients, ordered by id."""
        return self._by_tenant.get(tenant_id, ())

    def foreign_ranges(self, tenant_id: int) -> Ranges:
        """Return the networks of the clients of all tenants except the given tenant."""
        return Ranges(client.network for client in self.by_id.values() if client.tenant_id != tenant_id)

    def find(self, host: str) -> Client | None:
        """Return the RADIUS client for a source address, or None if the address is unknown."""
        client = self._found.get(host)
        if client is None:
            client = self.look_up(host)
            if client is not None:  # unknown senders are not cached, because their addresses may be spoofed
                self._found.put(host, client, client.tenant_id)
        return client

    def certified(self, fingerprint: str, names: Iterable[str]) -> Client | None:
        """Return the RadSec client that a certificate identifies, or None.

        fingerprint: the SHA-256 of the certificate, in hex. names: the names in the certificate, in canonical form. A
        client with this fingerprint is preferred to a client with one of the names.

        Return None if clients of several tenants match, or if the certificate was issued for one tenant and the client
        belongs to another. A tenant must not receive the logins of another tenant.
        """
        names = tuple(names)
        every = (self._by_fingerprint.get(fingerprint), *map(self._by_tls_name.get, names))
        found = [client for client in every if client is not None]
        owner = self.issued.by_fingerprint.get(fingerprint)
        owners = {self.issued.by_name.get(name) for name in names} - {None} if owner is None else {owner}
        return found[0] if found and len({client.tenant_id for client in found} | owners) == 1 else None

    def look_up(self, host: str) -> Client | None:
        """Return the RADIUS client for a source address like `find`, without the cache. Any thread may call this
        method."""
        address = ipaddress.ip_address(host.partition("%")[0])
        number, bits = int(address), address.max_prefixlen
        for version, length in self._lengths:
            if version == address.version:
                client = self._by_prefix[version, length].get(number >> (bits - length) << (bits - length))
                if client is not None:
                    return client
        return None


def finder(table: "Snapshot[ClientTable]") -> Callable[[Source], Client | None]:
    """Return a function that finds the RADIUS client with the source address of a datagram in the current table. It
    returns None if the address is unknown."""

    def find(source: Source) -> Client | None:
        return table.value.find(source[0])

    return find
