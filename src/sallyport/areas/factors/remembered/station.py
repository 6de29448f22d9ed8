"""A station of a login, and a remembered station."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.mac import mac_text

MAX_STATIONS: Final = 10
"""Maximum number of remembered stations of a person. A further one replaces the one that was used longest ago."""


class StationKind(StrEnum):
    """The kinds of stations that can be remembered."""

    MAC = "mac"
    CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True)
class SeenStation:
    """The station of a login. station: the MAC address as 12 hex digits, or the SHA-256 of the certificate in hex.
    client_id: the RADIUS client of a MAC address; 0 for a certificate. provider: the name of the MFA provider.
    password: a stamp that changes with the password of the person."""

    person: Person
    kind: StationKind
    station: str
    client_id: int
    client_name: str
    provider: str
    password: str


def _shown(station: str) -> str:
    """Return a station as people read it."""
    return mac_text(station) if len(station) == 12 else station


@dataclass(frozen=True, slots=True)
class RememberedStation:
    """A remembered station as it is stored. Times are in microseconds."""

    id: Annotated[int, Wire("Id of the remembered station.", "rememberedId", title="Id", look="none")]
    domain_id: int
    user_name: Annotated[str, Wire("Name of the user.", "userName", title="User")]
    kind: Annotated[str, Wire("`mac` or `certificate`.")]
    station: Annotated[
        str, Wire("MAC address, or SHA-256 of the client certificate in hex.", convert=_shown, look="long")
    ]
    client_name: Annotated[
        str, Wire("RADIUS client of a MAC address; empty for a certificate.", "clientName", title="RADIUS client")
    ]
    provider: Annotated[str, Wire("MFA provider at which the user has proved the second factor.")]
    since: Annotated[int, Wire("When the user has proved it, ISO 8601 UTC.", convert=iso)]
    until: Annotated[int, Wire("Until when the station is remembered, ISO 8601 UTC.", convert=iso)]
    last_used_at: Annotated[
        int | None,
        Wire(
            "Last login without the second factor, ISO 8601 UTC. Empty: none.",
            "lastUsedAt",
            iso,
            empty=True,
            title="Last login without a prompt",
        ),
    ]

    @property
    def label(self) -> str:
        """The station as its owner knows it: the MAC address, or the begin of the certificate's SHA-256."""
        return _shown(self.station) if self.kind == StationKind.MAC else f"certificate {self.station[:16]}"
