"""What a RADIUS client is, in the service and in the interface."""

import copy
import ipaddress
import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from sallyport.base.addresses import Network, canonical_host, parse_network
from sallyport.base.bounded import BoundedMap
from sallyport.base.model import Model
from sallyport.base.validation import Between, unfit
from sallyport.inventory.clients.issued import Issued
from sallyport.inventory.clients.weakness import Ranges
from sallyport.radius.authenticator import SharedSecret
from sallyport.radius.dynamic import PORT
from sallyport.vendors import PRODUCTS
from sallyport.web.paging import Paged
from sallyport.web.scope import AddressOrText, Flag, Id, Many, Name, PlainText, Scoped, Text, Whole

MAX_SECRET = 128
# What a client learns, by the column that keeps since when: it signs, and it needs no unsigned Proxy-State.
SIGNED: Final = "signed_since"
LIMITED: Final = "proxy_state_limited_since"
RADSEC: Final = SharedSecret(b"radsec")
"""The shared secret of every client over TLS, which is what proves who it is (RFC 6614 section 2.3)."""
_MEMO = 65_536
_PRODUCTS: Final = {name.casefold(): name for name in PRODUCTS}


class Signatures(StrEnum):
    """A BlastRADIUS setting (CVE-2024-3596): yes, no, or auto, which learns from what the client sends."""

    YES = "yes"
    NO = "no"
    AUTO = "auto"


class Client:
    """A RADIUS client as the login path sees it.

    signature_required and proxy_state_limited are what holds now: set by the admin, or learned (`auto`) by a client
    that is a single address. They become true here at once, and in the store right after.
    """

    __slots__ = (
        "all_domains",
        "coa_port",
        "domain_ids",
        "id",
        "learns_limit",
        "learns_signature",
        "limit_proxy_state",
        "name",
        "network",
        "password_verified",
        "product",
        "proxy_state_limited",
        "require_message_authenticator",
        "secret",
        "signature_required",
        "tenant_id",
        "tls_fingerprint",
        "tls_name",
    )

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
    ) -> None:
        self.id = id
        self.tenant_id = tenant_id
        self.name = name
        self.network: Network = ipaddress.ip_network(network)
        self.secret = SharedSecret(secret)
        self.all_domains = bool(all_domains)
        self.domain_ids = domain_ids
        self.product = product
        self.password_verified = bool(password_verified)
        self.tls_name = tls_name
        self.tls_fingerprint = tls_fingerprint
        self.coa_port = coa_port
        self.require_message_authenticator = Signatures(require_message_authenticator)
        self.limit_proxy_state = Signatures(limit_proxy_state)
        single = self.network.num_addresses == 1
        signature, limit = self.require_message_authenticator, self.limit_proxy_state
        learned = signed_since is not None
        limited = proxy_state_limited_since is not None
        self.signature_required = signature is Signatures.YES or (signature is Signatures.AUTO and learned)
        self.proxy_state_limited = limit is Signatures.YES or (limit is Signatures.AUTO and limited)
        self.learns_signature = signature is Signatures.AUTO and not learned and single
        self.learns_limit = limit is Signatures.AUTO and not limited and single

    def latch(self, what: str) -> None:
        """Hold it to what it has shown: SIGNED or LIMITED. Nothing happens where it does not learn that."""
        if what == SIGNED and self.learns_signature:
            self.learns_signature, self.signature_required = False, True
        elif what == LIMITED and self.learns_limit:
            self.learns_limit, self.proxy_state_limited = False, True

    def over_tls(self) -> "Client":
        """As it is over TLS: there its certificate proves what signatures prove elsewhere, and nothing is learned."""
        client = copy.copy(self)
        client.secret = RADSEC
        client.learns_signature = client.learns_limit = False
        return client

    @property
    def address(self) -> str:
        """The network as people write it: a single address without its prefix length."""
        return str(self.network.network_address if self.network.num_addresses == 1 else self.network)


class ClientTable:
    """All RADIUS clients, found by a packet's source address, where the longest prefix wins, or by a certificate."""

    def __init__(self, clients: Iterable[Client] = (), issued: Issued | None = None) -> None:
        self.issued = issued or Issued()
        self.by_id = {client.id: client for client in clients}
        self._by_prefix: dict[tuple[int, int], dict[int, Client]] = {}
        for client in self.by_id.values():
            network = client.network
            prefix = self._by_prefix.setdefault((network.version, network.prefixlen), {})
            prefix[int(network.network_address)] = client
        self._lengths = sorted(self._by_prefix, reverse=True)
        self._found = BoundedMap[str, Client](_MEMO)
        over_tls = [each.over_tls() for each in self.by_id.values() if each.tls_name or each.tls_fingerprint]
        self._by_fingerprint = {each.tls_fingerprint: each for each in over_tls if each.tls_fingerprint}
        self._by_tls_name = {each.tls_name: each for each in over_tls if each.tls_name}

    def foreign_ranges(self, tenant_id: int) -> Ranges:
        """The networks of all other tenants."""
        return Ranges(client.network for client in self.by_id.values() if client.tenant_id != tenant_id)

    def find(self, host: str) -> Client | None:
        """The client of a source address in text, or None."""
        client = self._found.get(host)
        if client is None:
            client = self._look(host)
            if client is not None:  # a stranger can send from any address: these are not remembered
                self._found.put(host, client, client.tenant_id)
        return client

    def certified(self, fingerprint: str, names: Iterable[str]) -> Client | None:
        """Return the client of a certificate, as it is over TLS: by SHA-256 in hex, then by names in canonical form.

        Return None if the certificate or its names belong to several tenants, or to another tenant than the client: no
        tenant receives another one's logins.
        """
        names = tuple(names)
        every = (self._by_fingerprint.get(fingerprint), *map(self._by_tls_name.get, names))
        found = [client for client in every if client is not None]
        owner = self.issued.by_fingerprint.get(fingerprint)
        owners = {self.issued.by_name.get(name) for name in names} - {None} if owner is None else {owner}
        return found[0] if found and len({client.tenant_id for client in found} | owners) == 1 else None

    def _look(self, host: str) -> Client | None:
        address = ipaddress.ip_address(host.partition("%")[0])
        number, bits = int(address), address.max_prefixlen
        for version, length in self._lengths:
            if version == address.version:
                client = self._by_prefix[version, length].get(number >> (bits - length) << (bits - length))
                if client is not None:
                    return client
        return None


def _network(value: str) -> str:
    try:
        network = parse_network(value.strip())
    except ValueError:
        network = None
    if network is None or "%" in value:  # a sender's zone is not looked at
        raise unfit("an IP address or a network such as 192.0.2.0/24")
    return str(network)


def _product(value: str) -> str:
    return _PRODUCTS.get(value.strip().casefold(), value.strip())


def _lower(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.casefold() if isinstance(value, str) else value


def _secret(value: str) -> str:
    if len(value.encode()) > MAX_SECRET:
        raise unfit(f"a secret of up to {MAX_SECRET} octets")
    return value


def _tls_name(value: str) -> str:
    if len(value) > 253 or not re.fullmatch(r"[!-~]([ -~]*[!-~])?", value):
        raise unfit("a name of a certificate: a host name, an IP address or a common name")
    return canonical_host(value)


def _fingerprint(value: str) -> str:
    digits = value.replace(":", "").lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise unfit("the SHA-256 of a certificate: 64 hex digits")
    return digits


def _or_empty(check: Callable[[str], str]) -> AfterValidator:
    return AfterValidator(lambda value: check(value.strip()) if value.strip() else "")


NetworkText = Annotated[Text, AfterValidator(_network)]
Product = Annotated[Text, AfterValidator(_product)]
"""What a client is: a product that is known here as it is spelled here, so that it stands in the inventory as the same
product does that is found in packets; any other as it came."""
TlsName = Annotated[Text, _or_empty(_tls_name)]
"""A name in a client's certificate, in canonical form; empty for none."""
Fingerprint = Annotated[Text, _or_empty(_fingerprint)]
"""The SHA-256 of a client's certificate, in lower case and without colons; empty for none."""
CoaPort = Annotated[Whole, Between(0, 65535)]
"""Where it takes Disconnect and CoA requests (RFC 5176); 0: nowhere."""
AnySignatures = Annotated[Signatures, BeforeValidator(_lower)]
SecretText = Annotated[PlainText, AfterValidator(_secret)]


class _ClientFields(Scoped):
    domainIds: Many[Whole] | None = Field(default=None, validation_alias=AliasChoices("domainIds", "domainId"))

    def claimed_domains(self) -> Sequence[int]:
        return self.domainIds or ()


class AddClient(_ClientFields):
    """Body of AddClient. Without a secret one is made; without a domain the client has all of the tenant's."""

    name: Name
    address: NetworkText
    secret: SecretText | None = None
    product: Product = ""
    requireMessageAuthenticator: AnySignatures = Signatures.AUTO
    limitProxyState: AnySignatures = Signatures.AUTO
    passwordVerified: Flag = False
    coaPort: CoaPort = PORT
    tlsName: TlsName = ""
    tlsFingerprint: Fingerprint = ""


class ClientAdded(Model):
    """Answer of AddClient: the only time that the secret is shown."""

    code: int = 200
    status: str = "Success"
    message: str
    clientId: int
    secret: str


class UpdateClient(_ClientFields):
    """Body of UpdateClient: absent fields and an empty secret keep their value; an empty product, tlsName or
    tlsFingerprint clears it."""

    clientId: Id
    name: Name | None = None
    address: NetworkText | None = None
    secret: SecretText | None = None
    product: Product | None = None
    requireMessageAuthenticator: AnySignatures | None = None
    limitProxyState: AnySignatures | None = None
    passwordVerified: Flag | None = None
    tlsName: TlsName | None = None
    tlsFingerprint: Fingerprint | None = None
    coaPort: CoaPort | None = None


class DeleteClient(Scoped):
    """Body of DeleteClient."""

    clientId: Id


class ListClients(Scoped, Paged):
    """Body of ListClients."""

    search: AddressOrText = ""


class ClientEntry(Model):
    """A RADIUS client without its secret. signatureRequired and proxyStateLimited are what holds now."""

    clientId: int
    name: str
    address: str
    domainIds: list[int]
    product: str
    requireMessageAuthenticator: Signatures
    limitProxyState: Signatures
    passwordVerified: bool
    coaPort: int
    tlsName: str
    tlsFingerprint: str
    signatureRequired: bool
    proxyStateLimited: bool


class ClientList(Model):
    """Answer of ListClients."""

    clients: list[ClientEntry]
    totalCount: int
