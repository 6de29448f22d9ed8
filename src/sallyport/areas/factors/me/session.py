"""A sign-in at /me, and what it permits."""

from dataclasses import dataclass
from typing import Final

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.mfa.provider import Strength
from sallyport.base.clock import SECOND

LIFE_US: Final = 1800 * SECOND
"""Time until a sign-in ends, in microseconds."""
FIRST_US: Final = 600 * SECOND
"""Time that a person has for the second step, in microseconds."""
FRESH_US: Final = 300 * SECOND
"""Time after a proof in which factors may be changed, in microseconds."""
MAX_WRONG: Final = 5
"""Number of wrong proofs that ends a sign-in."""
MAX_SESSIONS: Final = 16
"""Maximum number of sign-ins of a person. A new one ends the oldest."""


@dataclass(frozen=True, slots=True)
class PersonSession:
    """A sign-in as it is stored, see the schema. Times are in microseconds."""

    id: int
    domain_id: int
    user_name: str
    factor: str
    strength: str
    is_by_link: int
    wrong: int
    source: str
    begun_at: int
    proven_at: int
    expires_at: int
    stamp: str

    @property
    def person(self) -> Person:
        """The signed-in person."""
        return Person(self.domain_id, self.user_name)

    @property
    def is_complete(self) -> bool:
        """Whether the person has proved a second factor, or has come with a link."""
        return self.proven_at > 0

    def may_add(self, needed: Strength, now: int) -> bool:
        """Return whether the person may add a factor now. needed: the strength that a proof must have."""
        return self._is_fresh(now) and (bool(self.is_by_link) or self._is_strong(needed))

    def may_remove(self, needed: Strength, now: int) -> bool:
        """Return whether the person may remove a factor now. A link does not suffice."""
        return self._is_fresh(now) and self._is_strong(needed)

    def _is_fresh(self, now: int) -> bool:
        return self.is_complete and self.proven_at > now - FRESH_US

    def _is_strong(self, needed: Strength) -> bool:
        return self.strength != "" and Strength(self.strength) >= needed
