"""The wallets and credentials of endpoint users: what updateUserWallet assigns.

A credential that is assigned to a user opens doors for that user, whatever its epmUsername; in a wallet that is
assigned to a user, so do the credentials without an epmUsername. Where one wallet is named with credentials, they are
put into it.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import NotFound
from sallyport.did.credentials.service import NO_CREDENTIAL
from sallyport.did.dids.service import NO_ISSUER
from sallyport.did.held import repo
from sallyport.did.held.model import HeldCredential
from sallyport.did.wallets import repo as wallets
from sallyport.did.wallets.service import assign_in
from sallyport.store import audit
from sallyport.store.model import Tx


class Assignment(Protocol):
    """What is assigned to endpoint users; see `endpoints.users.peers`."""

    @property
    def domain_id(self) -> int:
        """Whose users, wallets and credentials."""

    @property
    def user_ids(self) -> Sequence[int]:
        """Endpoint users, which exist."""

    @property
    def wallet_user_ids(self) -> Sequence[int]:
        """Wallets."""

    @property
    def credential_ids(self) -> Sequence[int]:
        """Credentials."""

    @property
    def credential_type(self) -> str:
        """As it was said."""

    @property
    def issuer_id(self) -> int:
        """Whose credentials alone; 0: anybody's."""

    @property
    def several(self) -> bool:
        """Beside what the users have, not in its place."""


class UserCredentials:
    """Satisfies endpoints.users.peers.Credentials."""

    def __init__(self, clock: Clock = now_us) -> None:
        self._clock = clock

    def assign(self, tx: Tx, wanted: Assignment) -> None:
        """Assign wallet users and credentials. NotFound: one of them, or the issuer, is not the domain's. Conflict: a
        credential is revoked, or in another wallet."""
        for wallet_id in wanted.wallet_user_ids:
            if wallets.public_key(tx, wanted.domain_id, wallet_id) is None:
                raise NotFound("wallet user not found")
        if wanted.issuer_id and not repo.has_issuer(tx, wanted.domain_id, wanted.issuer_id):
            raise NotFound(NO_ISSUER)
        credentials = [self._credential(tx, wanted, each) for each in wanted.credential_ids]
        self._fill(tx, wanted, credentials)
        for user_id in wanted.user_ids:
            if wanted.wallet_user_ids:
                repo.link_wallets(tx, user_id, wanted.wallet_user_ids, several=wanted.several)
            if credentials:
                repo.link_credentials(
                    tx, user_id, wanted.credential_ids, wanted.credential_type, several=wanted.several
                )

    def _credential(self, tx: Tx, wanted: Assignment, credential_id: int) -> HeldCredential:
        credential = repo.get(tx, wanted.domain_id, credential_id)
        if credential is None or wanted.issuer_id not in {0, credential.issuer_id}:
            raise NotFound(NO_CREDENTIAL)
        return credential

    def _fill(self, tx: Tx, wanted: Assignment, credentials: Sequence[HeldCredential]) -> None:
        """Put the credentials into the one wallet that is named."""
        if len(wanted.wallet_user_ids) == 1:
            tenant_id, at = audit.tenant_of(tx, wanted.domain_id), self._clock()
            for credential in credentials:
                assign_in(tx, tenant_id, wanted.wallet_user_ids[0], credential.id, at)

    def of_users(self, tx: Tx, user_ids: Sequence[int]) -> Mapping[int, str]:
        """The newest credential that was assigned to a user and is not revoked, by its `urn:uuid:`."""
        return repo.of_users(tx, user_ids)

    def type_of(self, tx: Tx, user_id: int) -> str:
        """Return the credentialType of the user's newest credential that is not revoked; empty without one."""
        return repo.credential_type(tx, user_id)

    def holder(self, tx: Tx, domain_id: int, credential_id: str) -> int | None:
        """The endpoint user who has this credential."""
        return repo.user_of(tx, domain_id, credential_id)

    def unlink(self, tx: Tx, user_ids: Sequence[int]) -> int:
        """Take wallets and credentials from endpoint users that are to be deleted, some at a time; how many."""
        return repo.unlink(tx, user_ids)
