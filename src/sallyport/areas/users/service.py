"""The cache of endpoint users for logins, and the functions that add and delete users."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Protocol

from sallyport.areas.users import membership, repo
from sallyport.areas.users.accounts import repo as accounts
from sallyport.areas.users.accounts.account import LOCAL, Account, UserChange
from sallyport.areas.users.membership import USERS_OF_GROUP, USERS_OF_INSTANCE, Action
from sallyport.areas.users.user import User, name_key
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import Clock, now_us
from sallyport.store import audit
from sallyport.store.audit import changed as differing
from sallyport.store.audit import record_all_in, record_in
from sallyport.store.model import Store, Tx
from sallyport.store.slices import Slice
from sallyport.store.vault import Vault

MAX_CACHED = 65_536
MAX_DROPPED = 32
"""Maximum number of names that `drop` processes one by one. Each name takes up to 0.2 ms on the event loop."""


class Missing(Enum):
    """The result of `EndpointUsers.cached` for a user about whom nothing is in memory. The caller then calls `load` to
    read the user."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


class Revocations(Protocol):
    """The interface that ends the sessions of users when these users lose access. The sessions end after the
    transaction in which `revoke` was called."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Record that users of a domain lose their access. reason: the reason as text for the audit trail."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Return whether a user may lose access by leaving the group."""


class NoRevocations:
    """An implementation of `Revocations` that does nothing, so sessions of users that lose access continue."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Do nothing."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Return False."""
        return False


class EndpointUsers:
    """The cache of the users of all domains.

    max_cached: the maximum number of users in the cache. Names that no user has are also cached, at most `max_cached`
    as well. The tenants share both numbers fairly. revocations: the object whose method `revoke` is called for each
    user that loses access.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        clock: Clock = now_us,
        *,
        max_cached: int = MAX_CACHED,
        revocations: Revocations | None = None,
    ) -> None:
        self.revocations = revocations or NoRevocations()
        self._before_deletion = list[Slice[Sequence[int]]]()
        self._before_renaming = list[Slice[Sequence[int]]]()
        self._on_change = list[Callable[[int, str | None], None]]()
        self._store = store
        self._vault = vault
        self._clock = clock
        self._users = BoundedMap[tuple[int, str], User](max_cached)
        self._absent = BoundedMap[tuple[int, str], None](max_cached)
        self._changes = 0

    def before_deletion(self, delete: Slice[Sequence[int]]) -> None:
        """Register a function that deletes what another area has stored for users. Before users are deleted, the
        function is called with their ids until it returns 0."""
        self._before_deletion.append(delete)

    def before_renaming(self, release: Slice[Sequence[int]]) -> None:
        """Register a function that is called before other users can get the names of users: with the ids of the users,
        until it returns 0."""
        self._before_renaming.append(release)

    def on_change(self, changed: Callable[[int, str | None], None]) -> None:
        """Register a function that is called for each changed user, with the domain id and the user's name. If many
        users of a domain have changed, it is called only once, with None instead of a name."""
        self._on_change.append(changed)

    @property
    def slices(self) -> Sequence[Slice[Sequence[Account]]]:
        """The functions that delete the rows of users before the users themselves."""
        by_ids = (
            repo.clear_all,  # first, so that a user cannot log in after a group that blocks the user is removed
            *self._before_deletion,
            _take_from_instances,
            _take_from_groups,
            *self._before_renaming,
        )
        return [_by_ids(each) for each in by_ids]

    def release_names(self, tx: Tx, user_ids: Sequence[int]) -> int:
        """Call the functions of `before_renaming`, up to the first that has changed rows. Return the number of these
        rows, or 0 if nothing is left to release."""
        return next((rows for release in self._before_renaming if (rows := release(tx, user_ids))), 0)

    def changed(self, domain_id: int, name: str | None) -> None:
        """Call the functions of `on_change`."""
        for changed in self._on_change:
            changed(domain_id, name)

    def cached(self, domain_id: int, name: str) -> User | Missing | None:
        """Return a user from memory, without waiting. Return None if the domain is known to have no such user. Return
        MISSING if the user must be read with `load`."""
        key = (domain_id, name_key(name))
        user = self._users.get(key)
        if user is None and key not in self._absent:
            return MISSING
        return user

    async def load(self, domain_id: int, name: str) -> User | None:
        """Read a user from the store. The result is cached, unless any user was changed during the reading. Raises
        StoreError, SecretError."""
        key, changes = name_key(name), self._changes

        def query(tx: Tx) -> tuple[User | None, int]:
            return repo.find(tx, self._vault, domain_id, key), audit.share_of(tx, domain_id)

        user, tenant_id = await self._store.read_now(query)
        if changes == self._changes:  # unknown names have their own cache, so that guesses displace no user
            if user is None:
                self._absent.put((domain_id, key), None, tenant_id)
            else:
                self._users.put((domain_id, key), user, tenant_id)
        return user

    def add_in(
        self, tx: Tx, domain_id: int, new: UserChange, instance_ids: Sequence[int] = (), *, source: str = LOCAL
    ) -> int:
        """Add a user in a transaction, and return the user's id. The instances must exist. After the transaction, the
        caller must call `drop` with the name. Raises Conflict if the name is taken."""
        at = self._clock()
        user_id = accounts.add(tx, self._vault, domain_id, new, at, source)
        fields = new.audited()
        if instance_ids:
            membership.change(tx, USERS_OF_INSTANCE, Action.ADD, instance_ids, [user_id])
            fields["instances"] = list(instance_ids)
        record_in(tx, "user.add", domain_id, f"user {user_id} {new.name}", differing({}, fields), at=at)
        return user_id

    def delete_found(self, tx: Tx, account: Account) -> None:
        """Delete a user with the source `discovered`, with all assignments, in one transaction. One transaction is
        enough, because such a user has only a few assignments."""
        for delete in self.slices:
            while delete(tx, [account]):
                pass
        self.delete_in(tx, [account], account.domain_id)

    def delete_in(self, tx: Tx, gone: Sequence[Account], domain_id: int) -> None:
        """Delete users in a transaction. The functions in `slices` must have deleted all other rows of the users
        before. After the transaction, the caller must call `drop` with the names."""
        accounts.delete(tx, domain_id, gone)
        self.revocations.revoke(tx, domain_id, [account.name for account in gone], "the user was deleted")
        record_all_in(tx, "user.delete", domain_id, [f"user {each.id} {each.name}" for each in gone], at=self._clock())

    def forget(self) -> None:
        """Empty the cache because a restore has replaced the store."""
        self._changes += 1
        self._users.clear()
        self._absent.clear()

    def forget_domain(self, domain_id: int) -> None:
        """Drop the users of a domain from the cache."""
        self._changes += 1
        for key in [key for key in self._users if key[0] == domain_id]:
            self._users.pop(key)
        for key in [key for key in self._absent if key[0] == domain_id]:
            self._absent.pop(key)

    def drop(self, domain_id: int, *names: str) -> None:
        """Drop changed users from the cache. If there are more than MAX_DROPPED names, drop all users of the domain."""
        if len(names) > MAX_DROPPED:
            self.forget_domain(domain_id)
            self.changed(domain_id, None)
            return
        self._changes += 1
        for name in names:
            self._users.pop((domain_id, name_key(name)))
            self._absent.pop((domain_id, name_key(name)))
            self.changed(domain_id, name)


def _by_ids(delete: Slice[Sequence[int]]) -> Slice[Sequence[Account]]:
    return lambda tx, gone: delete(tx, [account.id for account in gone])


def _take_from_instances(tx: Tx, user_ids: Sequence[int]) -> int:
    return membership.forget_held(tx, USERS_OF_INSTANCE, user_ids)


def _take_from_groups(tx: Tx, user_ids: Sequence[int]) -> int:
    return membership.forget_held(tx, USERS_OF_GROUP, user_ids)
