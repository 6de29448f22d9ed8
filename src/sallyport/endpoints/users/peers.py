"""What users need of other areas: the policies of their passwords, and the credentials in their wallets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sallyport.store.model import Tx


class Failure(Protocol):
    """A rule that a password does not meet."""

    @property
    def rule(self) -> str:
        """Its name."""

    @property
    def message(self) -> str:
        """What it demands, without the password."""


class PasswordPolicies(Protocol):
    """Knows which policies are assigned to which instances."""

    def check(
        self, tx: Tx, instance_ids: Sequence[int], policy_ids: Sequence[int], user_name: str, password: str
    ) -> Sequence[Failure]:
        """The rules of these instances' policies, and of these policies, that a password does not meet; none where
        there is no policy."""


@dataclass(frozen=True, slots=True)
class WalletAssignment:
    """What is assigned to endpoint users of a domain. several: beside what they have, not in its place; issuer_id 0:
    any issuer."""

    domain_id: int
    user_ids: Sequence[int]
    wallet_user_ids: Sequence[int]
    credential_ids: Sequence[int]
    credential_type: str
    issuer_id: int
    several: bool


class Credentials(Protocol):
    """Knows wallet users and the credentials of endpoint users."""

    def assign(self, tx: Tx, wanted: WalletAssignment) -> None:
        """Assign wallet users and credentials. NotFound: one of them, or the issuer, is not the domain's."""

    def of_users(self, tx: Tx, user_ids: Sequence[int]) -> Mapping[int, str]:
        """The credential that a user has, of those that have one."""

    def type_of(self, tx: Tx, user_id: int) -> str:
        """Return the credentialType of the user's newest credential; empty without one."""

    def holder(self, tx: Tx, domain_id: int, credential_id: str) -> int | None:
        """The endpoint user who has this credential."""

    def unlink(self, tx: Tx, user_ids: Sequence[int]) -> int:
        """Take wallets and credentials from endpoint users that are to be deleted, some at a time; how many."""
