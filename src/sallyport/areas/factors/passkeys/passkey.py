"""A passkey, its owner, and the relying party for which it was made."""

import ipaddress
import json
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit

from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import Conflict
from sallyport.base.secret import token_hash
from sallyport.base.text import fold

MAX_PASSKEYS: Final = 10
"""Maximum number of passkeys of a person."""
MAX_OPEN: Final = 8
"""Maximum number of open challenges of a person, at all browsers and logins."""
MAX_CREDENTIAL_ID: Final = 1023
"""Maximum length of a credential id in octets (WebAuthn section 4)."""
MAX_NAME: Final = 64
LIFE_US: Final = 120 * SECOND
"""Time until a challenge expires, in microseconds."""
CHALLENGE_OCTETS: Final = 32
"""Length of a challenge. WebAuthn section 13.4.3 demands at least 16 octets."""
HANDLE_OCTETS: Final = 32
"""Length of a user handle. It is at most 64 octets, and contains nothing about the person (WebAuthn section 14.6.1)."""
TRANSPORTS: Final = ("usb", "nfc", "ble", "hybrid", "internal")
NO_HOST: Final = "passkeys need the setting public_url: an https URL with a host name in ASCII, not an address"


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey as it is stored.

    user_handle: random octets that name the person to authenticators. rp_id: the host for which it was made.
    public_key: the COSE key in CBOR. sign_count: the last counter of signatures, or 0 if the authenticator has none.
    backup_eligible, backed_up: the flags BE and BS of the authenticator. Times are in microseconds.
    """

    id: Annotated[int, Wire("Id of the passkey.", "passkeyId", title="Id")]
    domain_id: Annotated[int, Wire("Id of the domain.", "domainId", look="none")]
    user_name: Annotated[str, Wire("Name of the user.", "userName", title="User")]
    name: Annotated[str, Wire("Name that the user gave to the passkey.", title="Passkey")]
    rp_id: Annotated[str, Wire("Host for which the passkey was made (rpId).", "rpId", title="Host")]
    user_handle: bytes
    credential_id: bytes
    public_key: bytes
    sign_count: int
    backup_eligible: Annotated[
        bool,
        Wire("Whether the passkey can be synchronised to other devices.", "backupEligible", title="Synchronisable"),
    ]
    backed_up: Annotated[bool, Wire("Whether the passkey is synchronised.", "backedUp", title="Synchronised")]
    transports: Annotated[
        tuple[str, ...], Wire("How browsers reach the authenticator.", convert=list, kind=list[str], look="none")
    ]
    created_at: Annotated[
        int, Wire("When the passkey was registered, ISO 8601 UTC.", "createdAt", iso, title="Created")
    ]
    last_used_at: Annotated[
        int | None,
        Wire(
            "When the passkey was used last, ISO 8601 UTC. Empty: never.", "lastUsedAt", iso, empty=True, title="Used"
        ),
    ]

    @Wire("Whether the passkey can be used: its host is that of public_url.", after="rpId", title="Usable")
    def usable(self, host: str) -> bool:
        """Return whether the passkey was made for this host."""
        return self.rp_id == host


@dataclass(frozen=True, slots=True)
class Person:
    """A person of a domain, under the name that logins use."""

    domain_id: int
    name: str

    @property
    def key(self) -> str:
        """The name in the form for comparison."""
        return fold(self.name)


@dataclass(frozen=True, slots=True)
class Binding:
    """The browser and the login to which a challenge belongs.

    browser: the secret in the cookie of the browser. login: the id of the login, or of the sign-in of a page. Neither
    may be empty, because a challenge would then belong to several browsers.
    """

    browser: str
    login: str

    def __post_init__(self) -> None:
        if not self.browser or not self.login:
            raise ValueError("a challenge belongs to a browser and a login")

    def hash(self, purpose: str) -> str:
        """Return the key of the challenge for a purpose. It does not contain the secret of the browser."""
        return token_hash(json.dumps([purpose, self.browser, self.login]))


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The service as authenticators know it. id: the rpId. origin: the origin of the pages, as browsers spell it."""

    id: str
    origin: str


def relying_party(public_url: str) -> RelyingParty:
    """Return the relying party of the setting `public_url`. Raises Conflict if the setting allows no passkeys."""
    parts = urlsplit(public_url.lower())
    host = parts.hostname or ""
    if parts.scheme != "https" or not host or not host.isascii() or _is_address(host):
        raise Conflict(NO_HOST)
    port = "" if parts.port in (None, 443) else f":{parts.port}"
    return RelyingParty(host, f"https://{host}{port}")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
