"""What self-service needs of other areas."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from sallyport.areas.domains.domain import DomainTable
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.mfa.provider import Strength


class PasswordResult(Enum):
    """The result of checking a password. REFUSED: the name or the password is wrong, or the account is locked; a page
    does not say which. UNAVAILABLE: the password cannot be checked now. UNSUPPORTED: the domain's first factor checks
    no passwords of pages."""

    RIGHT = auto()
    REFUSED = auto()
    UNAVAILABLE = auto()
    UNSUPPORTED = auto()


@dataclass(frozen=True, slots=True)
class CheckedPassword:
    """The result of checking a password. person: the person, under the name that logins use, if it is right. stamp: see
    `ChecksPasswords.stamp`."""

    result: PasswordResult
    person: Person | None = None
    stamp: str = ""


class ChecksPasswords(Protocol):
    """The first factor of all domains, with the lock-outs that logins have too. Each call may raise StoreError."""

    async def check(self, domain_id: int, user: str, password: str) -> CheckedPassword:
        """Check a password, and count a wrong one, which locks the user only at pages."""

    async def stamp(self, person: Person) -> str:
        """Return a text that changes when the password is changed, or when the account is disabled or removed, as far
        as the first factor shows it. Raises Conflict if the first factor cannot be asked."""

    def is_locked(self, person: Person) -> bool:
        """Return whether a person is locked out."""

    async def count_wrong_code(self, person: Person) -> None:
        """Count a wrong code of a person."""

    def forgive(self, person: Person) -> None:
        """Reset the counts of a person after a sign-in."""


class OwnLogin(Protocol):
    """A login of the person. Times are in microseconds."""

    @property
    def at(self) -> int:
        """The time of the login."""

    @property
    def device_name(self) -> str:
        """The name of the network device."""

    @property
    def station(self) -> str:
        """The Calling-Station-Id."""

    @property
    def applied_decision(self) -> str:
        """The answer: accept, reject or challenge."""

    @property
    def reason(self) -> str:
        """The reason of the answer."""


class OwnSession(Protocol):
    """A live session of the person at a network device."""

    @property
    def id(self) -> int:
        """The id of the session."""

    @property
    def nas_identifier(self) -> str:
        """The name of the network device."""

    @property
    def client_ip(self) -> str:
        """The address of the network device."""

    @property
    def station(self) -> str | None:
        """The Calling-Station-Id."""

    @property
    def framed_ip(self) -> str | None:
        """The address of the station."""


class AcceptedFactors(Protocol):
    """The factors that a domain accepts, see `mfa.fields.OwnFields`."""

    @property
    def factors(self) -> str:
        """The names of the factors, separated by commas."""

    @property
    def changeStrength(self) -> Strength:  # noqa: N802
        """The strength of the proof with which a person may change factors."""

    @property
    def ownCodes(self) -> int:  # noqa: N802
        """The number of bypass codes that a person may make."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of other areas. Functions take the id of a domain and the name of a user.

    domains: returns all domains. passwords: the first factor. logins: returns the last logins. sessions: returns the
    live sessions. end_session: asks the device to end a session, and returns whether it did. own: returns the
    configuration of the factors that the service checks itself, or None if the domain does not use them.
    """

    domains: Callable[[], DomainTable]
    passwords: ChecksPasswords
    logins: Callable[[int, str], Awaitable[Sequence[OwnLogin]]]
    sessions: Callable[[int, str], Awaitable[Sequence[OwnSession]]]
    end_session: Callable[[int, int], Awaitable[bool]]
    own: Callable[[int], AcceptedFactors | None]

    def permits(self, domain_id: int, factor: str) -> bool:
        """Return whether a domain accepts a factor. A domain with another provider accepts all of them at /me."""
        own = self.own(domain_id)
        return own is None or factor in own.factors.split(",")

    def own_codes(self, domain_id: int) -> int:
        """Return the number of bypass codes that a person may make; 0 if the domain does not allow it."""
        own = self.own(domain_id)
        return 0 if own is None else own.ownCodes

    def minimum(self, domain_id: int) -> Strength:
        """Return the strength that a domain demands of a sign-in that changes factors."""
        own = self.own(domain_id)
        return Strength.ANY if own is None else own.changeStrength
