"""Request and response bodies of the RADIUS client operations."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretBytes

from sallyport.areas.clients.client import DROPPED, MAX_SECRET, REQUIRED, Client, MacForm, Signatures, State
from sallyport.base.addresses import canonical_host, parse_network
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.tags import MAX_TAGS
from sallyport.base.validation import Between, unfit
from sallyport.radius.dynamic import PORT
from sallyport.radius.vendors import PRODUCTS
from sallyport.web.bodies import (
    AddressOrText,
    Flag,
    Id,
    Many,
    Name,
    Octets,
    Paged,
    Scoped,
    Text,
    TotalCount,
    Whole,
    plain,
)
from sallyport.web.tags import OR_OBJECT, NewTags, Note, TagFilter, TagText

_PRODUCTS: Final = {name.casefold(): name for name in PRODUCTS}


def _network(value: str) -> str:
    try:
        network = parse_network(value.strip())
    except ValueError:
        network = None
    if network is None or "%" in value:  # the look-up of a client ignores the zone of a source address
        raise unfit("must be an IP address or a network such as 192.0.2.0/24")
    return str(network)


def _product(value: str) -> str:
    return _PRODUCTS.get(value.strip().casefold(), value.strip())


def _lower(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.casefold() if isinstance(value, str) else value


def _secret(value: SecretBytes) -> SecretBytes:
    if len(value) > MAX_SECRET:
        raise unfit(f"must have at most {MAX_SECRET} octets")
    return value


def _tls_name(value: str) -> str:
    if len(value) > 253 or not re.fullmatch(r"[!-~]([ -~]*[!-~])?", value):
        raise unfit("must be the name in a certificate: a host name, an IP address or a common name")
    return canonical_host(value)


def _fingerprint(value: str) -> str:
    digits = value.replace(":", "").lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise unfit("must be the SHA-256 fingerprint of a certificate, in 64 hexadecimal digits")
    return digits


def _or_empty(check: Callable[[str], str]) -> AfterValidator:
    return AfterValidator(lambda value: check(value.strip()) if value.strip() else "")


NetworkText = Annotated[
    Text,
    AfterValidator(_network),
    Field(description="IP address, or network such as 192.0.2.0/24. If networks overlap, the longest prefix wins."),
]
Product = Annotated[
    Text,
    AfterValidator(_product),
    Field(description="Product for the inventory. Empty if the product is detected from packets."),
]
"""A product name. A known product is stored in the spelling of `radius.vendors`, whatever case the caller uses."""
TlsName = Annotated[
    Text,
    _or_empty(_tls_name),
    Field(
        description="Host name, IP address or common name in the client's RadSec certificate. Empty if there is none."
    ),
]
"""A name in a client's certificate, in canonical form; empty if the client has none."""
Fingerprint = Annotated[
    Text,
    _or_empty(_fingerprint),
    Field(description="SHA-256 of the client's certificate for RadSec, 64 hex digits. Empty if there is none."),
]
"""The SHA-256 of a client's certificate, in lower case and without colons; empty if the client has none."""
CoaPort = Annotated[
    Whole,
    Between(0, 65535),
    Field(description="UDP port for Disconnect and CoA requests (RFC 5176). 0 if the client accepts no such requests."),
]
AnySignatures = Annotated[Signatures, BeforeValidator(_lower)]
ClientSecret = Annotated[
    Octets, BeforeValidator(plain), AfterValidator(_secret), Field(json_schema_extra={"maxLength": MAX_SECRET})
]
ClientId = Annotated[Id, Field(description="Id of the client, as ListClients gives it.")]


MacForms = Annotated[
    Many[Annotated[MacForm, BeforeValidator(_lower)]],
    Field(
        description="Forms of MAC authentication bypass that the client uses beside the usual one. `login-user` and "
        "`authenticate-only` are the Service-Type. `no-station`: the request has no Calling-Station-Id. `password`: "
        "all stations have the password macPassword instead of their address; the client must have a single address, "
        "and its requests must be signed."
    ),
]


Tags = Annotated[
    Many[TagText],
    OR_OBJECT,
    Field(
        max_length=MAX_TAGS,
        description="Tags of the client, each KEY=VALUE, such as site=Berlin, or an object. The client's devices take "
        "them over.",
    ),
]


class _ClientFields(Scoped):
    domainIds: Many[Whole] | None = Field(
        default=None,
        validation_alias=AliasChoices("domainIds", "domainId"),
        description=(
            "Ids of the client's domains, the default first. An empty array gives the client all domains of the tenant."
        ),
    )

    def claimed_domains(self) -> Sequence[int]:
        return self.domainIds or ()


class AddClient(_ClientFields):
    """Request body of the operation `AddClient`."""

    name: Name = Field(description="Name of the client; unique in the tenant.")
    address: NetworkText
    secret: ClientSecret | None = Field(
        default=None, description="Shared secret. If it is empty or absent, Sallyport generates a secret."
    )
    product: Product = ""
    requireMessageAuthenticator: AnySignatures = Field(
        default=Signatures.AUTO,
        description="Drop requests without Message-Authenticator. auto: once a client with one address has signed one.",
    )
    limitProxyState: AnySignatures = Field(
        default=Signatures.AUTO,
        description="Drop unsigned requests with Proxy-State. auto: once a client with one address has sent a "
        "request that was signed or without Proxy-State.",
    )
    passwordVerified: Flag = Field(
        default=False,
        description="Whether the client checks passwords itself, as a domain with the first factor `none` requires. "
        "The client must sign its requests.",
    )
    shadow: Flag = Field(
        default=False,
        description="Whether the client sends copies of the traffic of another server. They are recorded for the "
        "comparison, and never answered.",
    )
    coaPort: CoaPort = PORT
    tlsName: TlsName = ""
    tlsFingerprint: Fingerprint = ""
    macForms: MacForms = Field(default_factory=list)
    macPassword: ClientSecret | None = Field(
        default=None, description="Password of all stations, for the form `password`. No answer contains it."
    )
    tags: Tags = Field(default_factory=list)
    note: Note = Field(default="", description="Note about the client.")


class ClientAdded(Model):
    """Response body of the operation `AddClient`. No other answer contains the shared secret."""

    code: int = Field(default=200, description="HTTP status of the answer.")
    status: str = Field(default="Success", description="Success.")
    message: str = Field(description="Result in words.")
    clientId: int = Field(description="Id of the new client.")
    secret: str = Field(description="Shared secret; octets that are not valid UTF-8 are shown as U+FFFD.")
    warnings: list[str] = Field(description="Weaknesses of the secret, the address and the settings.")


class ClientUpdated(Done):
    """Response body of the operation `UpdateClient`."""

    warnings: list[str] = Field(description="Weaknesses of the secret, the address and the settings.")
    signatureRequired: bool = Field(description=REQUIRED)
    proxyStateLimited: bool = Field(description=DROPPED)


class UpdateClient(_ClientFields):
    """Request body of the operation `UpdateClient`: an absent field keeps its value."""

    clientId: ClientId
    name: Name | None = Field(default=None, description="New name.")
    address: NetworkText | None = Field(default=None, description="New IP address or network.")
    secret: ClientSecret | None = Field(
        default=None, description="New shared secret. An empty text keeps the present secret."
    )
    product: Product | None = Field(
        default=None, description="New product. An empty text means that the product is detected from packets."
    )
    requireMessageAuthenticator: AnySignatures | None = Field(
        default=None, description="Drop requests without Message-Authenticator: yes, no or auto, as AddClient has it."
    )
    limitProxyState: AnySignatures | None = Field(
        default=None, description="Drop unsigned requests with Proxy-State: yes, no or auto, as AddClient has it."
    )
    passwordVerified: Flag | None = Field(
        default=None,
        description="Whether the client checks passwords itself, as a domain with the first factor `none` requires.",
    )
    shadow: Flag | None = Field(
        default=None,
        description="Whether the client sends copies of the traffic of another server, which are never answered.",
    )
    tlsName: TlsName | None = Field(
        default=None, description="New name in the certificate for RadSec. An empty text removes the name."
    )
    tlsFingerprint: Fingerprint | None = Field(
        default=None, description="New SHA-256 of the certificate for RadSec, 64 hex digits. An empty text removes it."
    )
    coaPort: CoaPort | None = Field(
        default=None,
        description="New UDP port for Disconnect and CoA requests, up to 65535. 0 if the client accepts none.",
    )
    macForms: MacForms | None = Field(
        default=None,
        description="New forms of MAC authentication bypass, as AddClient has them. Without the form `password`, the "
        "password of all stations is removed.",
    )
    macPassword: ClientSecret | None = Field(
        default=None, description="New password of all stations. An empty text keeps the present one."
    )
    tags: NewTags | None = None
    note: Note | None = Field(default=None, description="New note about the client. An empty text removes it.")
    unlatch: Flag = Field(
        default=False, description="Forget what the client has learned with the setting auto; it may learn it again."
    )


class DeleteClient(Scoped):
    """Request body of the operation `DeleteClient`."""

    clientId: ClientId


class ListClients(Scoped, Paged):
    """Request body of the operation `ListClients`."""

    clientId: Id = Field(default=0, description="Id of the only client to return. 0 selects all clients.")
    search: AddressOrText = Field(
        default="", description="Part of a name, an address or a product. Leave it empty to list all clients."
    )
    tag: TagFilter = ""


@answer_of(Client)
class ClientEntry(Model):
    """A RADIUS client without its secret."""


class ClientActivity(Scoped, Paged):
    """Request body of ClientActivity."""

    state: Annotated[State | None, BeforeValidator(_lower)] = Field(
        default=None,
        description="`silent` selects the clients that have sent requests before, but none for a day. `unsigned` "
        "selects the clients that have sent requests without Message-Authenticator in the last day.",
    )
    clientIds: Many[ClientId] | None = Field(default=None, description="Ids of the only clients to return.")


class ActiveClient(Model):
    """When a RADIUS client has sent requests."""

    clientId: int = Field(description="Id of the client.")
    name: str = Field(description="Name of the client.")
    address: str = Field(description="IP address or network from which the client sends requests.")
    lastSeen: str = Field(
        description="Time of the last authentic request, ISO 8601 in UTC. Empty if there was none, or if all its "
        "devices were deleted."
    )
    lastUnsigned: str = Field(
        description="Time of the last authentic Access-Request without Message-Authenticator. Empty if there was none."
    )


class ClientsActivity(Model):
    """Response body of ClientActivity."""

    clients: list[ActiveClient] = Field(description="Clients of the page, ordered by clientId.")
    totalCount: TotalCount


class ClientList(Model):
    """Response body of the operation `ListClients`."""

    clients: list[ClientEntry] = Field(description="Clients of the page, ordered by clientId.")
    totalCount: TotalCount
