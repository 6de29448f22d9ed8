"""Wallets and credentials that admins assign to endpoint users, with updateUserWallet.

A user may log in with an assigned credential, even if the epmUsername of the credential is another name. A user may
also log in with a credential in an assigned wallet, if the credential has no epmUsername. If a request contains
credentials and exactly one wallet, the credentials are also put into this wallet.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sallyport.areas.did.credentials import repo as credentials
from sallyport.areas.did.credentials.service import NO_CREDENTIAL
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.repo import NO_ISSUER
from sallyport.areas.did.wallets import repo
from sallyport.areas.did.wallets.service import assign_in
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import NotFound
from sallyport.store import audit
from sallyport.store.model import LISTED, Tx, listed
from sallyport.store.slices import delete_slice


class Assignment(Protocol):
    """An assignment of wallets and credentials to endpoint users (see `users.accounts.service`)."""

    @property
    def domain_id(self) -> int:
        """Return the domain of the users, wallets and credentials."""

    @property
    def user_ids(self) -> Sequence[int]:
        """Return the ids of the endpoint users. All of these users exist."""

    @property
    def wallet_user_ids(self) -> Sequence[int]:
        """Return the ids of the wallets."""

    @property
    def credential_ids(self) -> Sequence[int]:
        """Return the ids of the credentials."""

    @property
    def credential_type(self) -> str:
        """Return the credentialType of the request."""

    @property
    def issuer_id(self) -> int:
        """Return the id of the issuer that all the credentials must have; 0 for any issuer."""

    @property
    def several(self) -> bool:
        """Return whether the users keep the wallets and credentials that they already have."""


class UserCredentials:
    """The wallets and credentials of endpoint users (implements `users.accounts.service.Credentials`)."""

    def __init__(self, clock: Clock = now_us) -> None:
        self._clock = clock

    def assign(self, tx: Tx, wanted: Assignment) -> None:
        """Assign wallets and credentials to users. Raises NotFound if a wallet, a credential or the issuer is not in
        the domain. Raises Conflict if a credential is revoked, or is in another wallet."""
        domain_id = wanted.domain_id
        for wallet_id in wanted.wallet_user_ids:
            if repo.public_key(tx, domain_id, wallet_id) is None:
                raise NotFound("wallet user not found")
        if wanted.issuer_id and dids.issuer(tx, domain_id, wanted.issuer_id) is None:
            raise NotFound(NO_ISSUER)
        for credential_id in wanted.credential_ids:
            credential = credentials.get(tx, domain_id, credential_id)
            if credential is None or wanted.issuer_id not in {0, credential.issuer_id}:
                raise NotFound(NO_CREDENTIAL)
        if len(wanted.wallet_user_ids) == 1:
            tenant_id, at = audit.tenant_of(tx, domain_id), self._clock()
            for credential_id in wanted.credential_ids:
                assign_in(tx, tenant_id, wanted.wallet_user_ids[0], credential_id, at)
        for user_id in wanted.user_ids:
            if wanted.wallet_user_ids:
                _link_wallets(tx, user_id, wanted)
            if wanted.credential_ids:
                _link_credentials(tx, user_id, wanted)

    def of_users(self, tx: Tx, user_ids: Sequence[int]) -> Mapping[int, str]:
        """Return the newest assigned credential of each user. The key is the id of the user. The value is the
        `urn:uuid:` of the credential. Revoked credentials are left out."""
        sql = (
            "select l.user_id, c.uuid from endpoint_user_credentials l join credentials c on c.id = l.credential_id "  # noqa: S608
            f"where l.user_id in {LISTED} and c.status <> 'Revoked' order by c.id"
        )
        return {int(str(user)): str(uuid) for user, uuid in tx.rows(sql, ids=listed(user_ids))}

    def type_of(self, tx: Tx, user_id: int) -> str:
        """Return the credentialType of a user's credential. Revoked credentials are left out, and the newest credential
        takes precedence. Return an empty text if there is no credential."""
        sql = (
            "select l.credential_type from endpoint_user_credentials l join credentials c on c.id = l.credential_id "
            "where l.user_id = :user and c.status <> 'Revoked' order by c.id desc limit 1"
        )
        return tx.value(str, sql, user=user_id) or ""

    def holder(self, tx: Tx, domain_id: int, credential_id: str) -> int | None:
        """Return the id of an endpoint user to whom a credential was assigned, or None. If the credential was assigned
        to several users, return the lowest id. credential_id: the `urn:uuid:` of the credential."""
        sql = (
            "select l.user_id from endpoint_user_credentials l join credentials c on c.id = l.credential_id "
            "where c.domain_id = :d and c.uuid = :uuid order by l.user_id limit 1"
        )
        return tx.value(int, sql, d=domain_id, uuid=credential_id)

    def unlink(self, tx: Tx, user_ids: Sequence[int]) -> int:
        """Remove at most SLICE assignments of wallets or credentials. The assignments belong to endpoint users that
        will be deleted. Return the number of removed assignments."""
        condition, ids = f"user_id in {LISTED}", listed(user_ids)
        return delete_slice(tx, "endpoint_user_wallets", "user_id, wallet_id", condition, ids=ids) or delete_slice(
            tx, "endpoint_user_credentials", "user_id, credential_id", condition, ids=ids
        )


def _link_wallets(tx: Tx, user_id: int, wanted: Assignment) -> None:
    if not wanted.several:
        tx.execute("delete from endpoint_user_wallets where user_id = :user", user=user_id)
    for wallet_id in wanted.wallet_user_ids:
        tx.execute(
            "insert into endpoint_user_wallets (user_id, wallet_id) values (:user, :wallet) on conflict do nothing",
            user=user_id,
            wallet=wallet_id,
        )


def _link_credentials(tx: Tx, user_id: int, wanted: Assignment) -> None:
    if not wanted.several:
        tx.execute("delete from endpoint_user_credentials where user_id = :user", user=user_id)
    for credential_id in wanted.credential_ids:
        tx.execute(
            "insert into endpoint_user_credentials (user_id, credential_id, credential_type) values (:user, :id, :kind)"
            " on conflict (user_id, credential_id) do update set credential_type = excluded.credential_type",
            user=user_id,
            id=credential_id,
            kind=wanted.credential_type,
        )
