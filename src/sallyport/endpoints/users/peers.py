"""What endpoint users need of other areas: password policies, and the credentials in wallets."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sallyport.endpoints.users.account import WalletAssignment
from sallyport.store.model import Tx


class Failure(Protocol):
    """A rule that a password does not meet."""

    @property
    def rule(self) -> str:
        """The name of the rule."""

    @property
    def message(self) -> str:
        """The demand of the rule, without the password."""


class PasswordPolicies(Protocol):
    """Knows which policies are assigned to which instances."""

    def check(
        self, tx: Tx, instance_ids: Sequence[int], policy_ids: Sequence[int], user_name: str, password: str
    ) -> Sequence[Failure]:
        """Return the rules of these instances' policies, and of these policies, that a password does not meet."""


class Credentials(Protocol):
    """Knows wallet users and the credentials of endpoint users."""

    def assign(self, tx: Tx, wanted: WalletAssignment) -> None:
        """Assign wallet users and credentials. NotFound: one of them, or the issuer, is not the domain's."""

    def of_users(self, tx: Tx, user_ids: Sequence[int]) -> Mapping[int, str]:
        """Return the ids of the users' credentials, by user."""

    def type_of(self, tx: Tx, user_id: int) -> str:
        """Return the credentialType of the user's newest credential; empty without one."""

    def holder(self, tx: Tx, domain_id: int, credential_id: str) -> int | None:
        """Return the id of the endpoint user with this credential, or None."""

    def unlink(self, tx: Tx, user_ids: Sequence[int]) -> int:
        """Take wallets and credentials from endpoint users that are to be deleted, some at a time; return how many."""
