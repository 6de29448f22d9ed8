"""The service with which admins manage endpoint users. After each change of a user, the service drops the user from the
cache `EndpointUsers`, so that the next login uses the new values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Protocol, TypeVar

import trio

from sallyport.areas.users import membership
from sallyport.areas.users import repo as secrets
from sallyport.areas.users.accounts import repo
from sallyport.areas.users.accounts.account import (
    DISCOVERED,
    LOCAL,
    Account,
    Removal,
    UserChange,
    UserQuery,
    WalletAssignment,
    WalletChange,
)
from sallyport.areas.users.membership import GROUPS, INSTANCES, USERS_OF_GROUP, USERS_OF_INSTANCE, Action, Demands
from sallyport.areas.users.service import EndpointUsers
from sallyport.areas.users.user import NO_USER, UserKey, name_key
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import FieldError, Invalid, NotFound
from sallyport.base.text import counted, password_text
from sallyport.base.wire import JSON
from sallyport.store.audit import HIDDEN, changed, record_in
from sallyport.store.model import Store, Tx
from sallyport.store.slices import Slice, in_slices
from sallyport.store.vault import Vault
from sallyport.web.bodies import SHORT

T = TypeVar("T")


class Failure(Protocol):
    """The interface of a rule that a password does not meet."""

    @property
    def rule(self) -> str:
        """The name of the rule."""

    @property
    def message(self) -> str:
        """The description of the rule. It does not contain the password."""


class PasswordPolicies(Protocol):
    """The interface to the password policies and their assignments to instances."""

    def check(
        self, tx: Tx, instance_ids: Sequence[int], policy_ids: Sequence[int], user_name: str, password: str
    ) -> Sequence[Failure]:
        """Return the rules that a password does not meet. The rules are those of the instances' policies and of the
        policies in `policy_ids`."""


class Credentials(Protocol):
    """The interface to the identity area, which links wallet users and credentials to endpoint users."""

    def assign(self, tx: Tx, wanted: WalletAssignment) -> None:
        """Assign wallet users and credentials. Raises NotFound if the domain does not have a wallet user, a credential
        or the issuer."""

    def of_users(self, tx: Tx, user_ids: Sequence[int]) -> Mapping[int, str]:
        """Return the id of each user's credential. The keys are user ids."""

    def type_of(self, tx: Tx, user_id: int) -> str:
        """Return the credentialType of the user's newest credential, or empty text if the user has none."""

    def holder(self, tx: Tx, domain_id: int, credential_id: str) -> int | None:
        """Return the id of the endpoint user that has this credential, or None."""

    def unlink(self, tx: Tx, user_ids: Sequence[int]) -> int:
        """Unlink wallets and credentials from users, before the users are deleted. Return the number of changed rows;
        call it until it returns 0."""


@dataclass(frozen=True, slots=True)
class Detail:
    """A user with the secrets. password: the password as text, or empty if the user has none. motp: the seed in base32,
    or empty if the user has none. credential_kind: the credentialType that updateUserWallet has set."""

    account: Account
    password: str
    motp: str
    credential_kind: str


class Users:
    """The service for the endpoint users of all domains."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        users: EndpointUsers,
        policies: PasswordPolicies,
        credentials: Credentials,
        clock: Clock = now_us,
    ) -> None:
        self._store = store
        self._vault = vault
        self._users = users
        self._policies = policies
        self._credentials = credentials
        self._clock = clock

    async def page(self, query: UserQuery) -> tuple[list[Account], int]:
        """Return one page of a domain's users, and the number of matching users.

        Raises NotFound if an instance in the query does not exist. Raises Invalid if the users of the page have too
        many instances or groups for one answer.
        """

        def read_page(tx: Tx) -> tuple[list[Account], int]:
            membership.must_exist(tx, INSTANCES, query.domain_id, query.instance_ids or ())
            accounts, total = repo.page(tx, self._by_holder(tx, query))
            ids = [account.id for account in accounts]
            instances, groups = repo.instances(tx, ids), repo.groups(tx, ids)
            held = self._credentials.of_users(tx, ids)
            for each in accounts:
                each.instances, each.groups = instances.get(each.id, ()), groups.get(each.id, ())
                each.credential = held.get(each.id, "")
            return accounts, total

        by_key = not query.column and query.instance_ids is None and query.limit <= SHORT
        return await (self._store.read_now if by_key else self._store.search)(read_page)

    def _by_holder(self, tx: Tx, query: UserQuery) -> UserQuery:
        """If a query filters by credential, return a query that filters by the id of the user that has the credential.
        Otherwise return the same query."""
        if query.column != "credential":
            return query
        holder = self._credentials.holder(tx, query.domain_id, query.value)
        return replace(query, column="id", value=str(holder or 0))

    async def add(self, domain_id: int, change: UserChange, instance_ids: Sequence[int] = ()) -> int:
        """Add a user, and return the user's id. A user with a password can log in at once.

        Raises Conflict if the name is taken. Raises NotFound if an instance does not exist. Raises Invalid if the
        password does not meet the policies.
        """

        def transaction(tx: Tx) -> int:
            membership.must_exist(tx, INSTANCES, domain_id, instance_ids)
            return self.add_in(tx, domain_id, change, instance_ids)

        with self.changing(domain_id, [change.name or ""]):
            return await self._store.write(transaction)

    def add_in(self, tx: Tx, domain_id: int, change: UserChange, instance_ids: Sequence[int] = ()) -> int:
        """Add a user in a transaction, and return the user's id. The instances must exist. Raises Conflict, Invalid."""
        self.check_password(tx, Demands(instance_ids), change.name or "", change)
        return self._users.add_in(tx, domain_id, change, instance_ids)

    async def detail(self, domain_id: int, user_id: int, *, reveal: bool) -> Detail:
        """Return a user, and record the call in the audit trail. reveal: whether to return the secrets; if False,
        HIDDEN replaces each secret. Raises NotFound, SecretError."""

        def transaction(tx: Tx) -> Detail:
            account = _found(repo.get(tx, domain_id, user_id))
            shown: dict[str, JSON] = {"secrets": "shown" if reveal else "hidden"}
            self.note(tx, "user.read", domain_id, f"user {user_id} {account.name}", shown)
            kind = self._credentials.type_of(tx, user_id)
            if not reveal:
                return Detail(account, HIDDEN * account.has_password, HIDDEN * account.has_totp, kind)
            password, motp = secrets.secrets(tx, self._vault, user_id)
            return Detail(account, password_text(password or b""), motp or "", kind)

        return await self._store.write(transaction)

    async def update(self, domain_id: int, which: UserKey, change: UserChange) -> None:
        """Change a user. which: the id or name of the user.

        Raises NotFound if the user does not exist. Raises Conflict if the name is taken. Raises Invalid if the password
        does not meet the policies.

        A change of the name takes several transactions. If it is interrupted, the user keeps the old name, but agents
        may have stopped managing the user's accounts on machines.
        """
        names: dict[str, None] = {}

        def find(tx: Tx) -> Account:
            old = _found(repo.get(tx, domain_id, which) if isinstance(which, int) else repo.named(tx, domain_id, which))
            names.update({old.name: None, change.name or old.name: None})
            self._checked(tx, old, change)
            return old

        def release(tx: Tx, old: Account) -> int:
            return self._users.release_names(tx, [old.id]) if _renames(change, old) else 0

        with self.changing(domain_id, names):
            await in_slices(self._store, find, [release], lambda tx, old: self.update_in(tx, old, change))

    def _checked(self, tx: Tx, old: Account, change: UserChange) -> UserChange:
        """Check a change, and return it without the secrets that equal the stored ones. Raises Conflict, Invalid."""
        new = self.without_same_secrets(tx, old, change)
        if new.password is not None:
            self.check_password(tx, membership.demands_on(tx, old.id), new.name or old.name, new)
        repo.check_free(tx, old, new)
        return new

    def update_in(self, tx: Tx, old: Account, change: UserChange) -> None:
        """Change a user in a transaction. If nothing differs, write no audit-trail entry. Raises Conflict, Invalid."""
        change = self._checked(tx, old, change)
        changes = differences(old, change)
        if old.source == DISCOVERED:  # so that the user is not deleted together with its discovered accounts
            repo.set_source(tx, old, LOCAL)
            changes["source"] = [DISCOVERED, LOCAL]
        if changes:
            renamed = _renames(change, old)
            if renamed:
                while self._users.release_names(tx, [old.id]):
                    pass
            repo.update(tx, self._vault, old, change, self._clock())
            if renamed:
                self._users.revocations.revoke(tx, old.domain_id, [old.name], "the user was renamed")
            self.note(tx, "user.update", old.domain_id, f"user {old.id} {change.name or old.name}", changes)

    def without_same_secrets(self, tx: Tx, old: Account, change: UserChange) -> UserChange:
        """Return the change without the secrets that equal the stored ones. Raises SecretError.

        Without this step, an unchanged password would be checked against the policies again, and codes that were used
        with an unchanged seed would become valid again.
        """
        if change.password is None and change.motp is None:
            return change
        password, motp = secrets.secrets(tx, self._vault, old.id)
        return replace(
            change,
            password=None if change.password == password else change.password,
            motp=None if change.motp == (motp or "") else change.motp,
        )

    def assign_in(self, tx: Tx, domain_id: int, user_id: int, name: str, instance_ids: Sequence[int]) -> None:
        """Assign a user to these instances, and to no others, in a transaction."""
        before, _ = membership.set_holders(tx, USERS_OF_INSTANCE, user_id, instance_ids)
        if after := changed({"instances": list[JSON](before)}, {"instances": list[JSON](sorted(instance_ids))}):
            self.note(tx, "user.assign", domain_id, f"user {user_id} {name}", after)

    async def release(self, domain_id: int, user_ids: Sequence[int]) -> None:
        """Delete the rows of users before the users themselves, in short transactions."""
        find = lambda tx: repo.several(tx, domain_id, user_ids)  # noqa: E731
        await in_slices(self._store, find, self._users.slices, lambda _tx, _gone: None)

    def delete_in(self, tx: Tx, domain_id: int, user_ids: Sequence[int]) -> None:
        """Delete users in a transaction, after `release`. After it, the caller must call `forget` with the names."""
        gone = repo.several(tx, domain_id, user_ids)
        for delete in self._users.slices:  # rows that were added since
            while delete(tx, gone):
                pass
        self._users.delete_in(tx, gone, domain_id)

    def forget(self, domain_id: int, names: Sequence[str]) -> None:
        """Drop changed users from the cache, after a transaction."""
        self._users.drop(domain_id, *names)

    async def update_wallet(self, domain_id: int, wanted: WalletChange) -> None:
        """Assign users to groups, instances, wallet users and credentials, and change the type of the users. If one
        assignment fails, nothing is changed.

        Raises NotFound. Raises Invalid if there are too many assignments.
        """
        wallet, names = wanted.wallet, list[str]()
        held = [*wanted.group_ids, *wanted.instance_ids, *wallet.wallet_user_ids, *wallet.credential_ids]
        membership.check_size(held, wallet.user_ids)
        change = UserChange(user_type=wanted.user_type, privileged_user=wanted.privileged_user)

        def transaction(tx: Tx) -> None:
            users = membership.users(tx, domain_id, wallet.user_ids)
            names.extend(user.name for user in users)
            membership.must_exist(tx, GROUPS, domain_id, wanted.group_ids)
            membership.must_exist(tx, INSTANCES, domain_id, wanted.instance_ids)
            for user in users:
                self.update_in(tx, _found(repo.get(tx, domain_id, user.id)), change)
            ids = [user.id for user in users]
            added = membership.change(tx, USERS_OF_GROUP, Action.ADD, wanted.group_ids, ids)
            added += membership.change(tx, USERS_OF_INSTANCE, Action.ADD, wanted.instance_ids, ids)
            self._credentials.assign(tx, wallet)
            if added or wallet.wallet_user_ids or wallet.credential_ids:
                what = _assigned(wanted)
                self.note(tx, "user.wallet.update", domain_id, counted(len(ids), "user"), what)

        with self.changing(domain_id, names):
            await self._store.write(transaction)

    async def remove(self, domain_id: int, removals: Sequence[Removal], *, wholly: bool = False) -> int:
        """Delete users, or remove users from instances, as each `Removal` says. Return the number of deleted users.

        wholly: whether to delete all these users, even if their `Removal` contains an instance. Raises NotFound if a
        user or an instance does not exist; nothing is changed in this case.

        The deletion takes several transactions. If it is interrupted, all users remain, but may have lost passwords,
        seeds and assignments. To complete the deletion, repeat the call.
        """
        names: dict[str, None] = {}
        keys = await trio.to_thread.run_sync(lambda: [name_key(each.name) for each in removals])

        def find(tx: Tx) -> tuple[list[Account], dict[int, list[int]]]:
            found = list(zip(_located(tx, domain_id, removals, keys), removals, strict=True))
            gone = {account.id: account for account, each in found if wholly or not each.instance_id}
            taken_off = dict[int, list[int]]()
            for account, each in found:
                if account.id not in gone:
                    taken_off.setdefault(each.instance_id, []).append(account.id)
            membership.must_exist(tx, INSTANCES, domain_id, list(taken_off))
            names.update((account.name, None) for account, _ in found)
            return list(gone.values()), taken_off

        def end(tx: Tx, found: tuple[list[Account], dict[int, list[int]]]) -> int:
            gone, taken_off = found
            for instance_id, user_ids in taken_off.items():
                self._take_off(tx, domain_id, instance_id, user_ids)
            if gone:
                self._users.delete_in(tx, gone, domain_id)
            return len(gone)

        with self.changing(domain_id, names):
            return await in_slices(self._store, find, [_of_gone(each) for each in self._users.slices], end)

    def _take_off(self, tx: Tx, domain_id: int, instance_id: int, user_ids: list[int]) -> None:
        if membership.change(tx, USERS_OF_INSTANCE, Action.REMOVE, [instance_id], user_ids):
            what: dict[str, JSON] = {"users": list[JSON](user_ids), "instances": [instance_id]}
            self.note(tx, "instance.users.remove", domain_id, f"instance {instance_id}", what)

    @contextmanager
    def changing(self, domain_id: int, names: Iterable[str]) -> Iterator[None]:
        """At the end of the block, drop the users in `names` from the cache, even if the block raised an error. The
        block may append further names to `names`."""
        try:
            yield
        finally:
            self._users.drop(domain_id, *names)

    def note(self, tx: Tx, action: str, domain_id: int, target: str, changes: Mapping[str, JSON] | None = None) -> None:
        """Record a change in the audit trail, in the transaction of the change."""
        record_in(tx, action, domain_id, target, changes, at=self._clock())

    def check_password(self, tx: Tx, demands: Demands, name: str, change: UserChange) -> None:
        """Check that a new password meets the policies. Raises Invalid if it does not. The error lists the rules that
        the password does not meet."""
        if change.password is None:
            return
        password = change.password.decode(errors="surrogateescape")
        failures = self._policies.check(tx, demands.instance_ids, demands.policy_ids, name, password)
        if failures:
            fields = tuple(FieldError(failure.rule, failure.message) for failure in failures)
            raise Invalid("the password does not meet the policy", fields)


def differences(old: Account, new: UserChange) -> dict[str, JSON]:
    """Return the fields in which a change differs from the stored user, in the form for the audit trail. new: the
    change, as `Users.without_same_secrets` returned it."""
    change = new.columns()
    before = {column: value for column, value in asdict(old).items() if column in change}
    return changed({**before, **new.secrets()}, new.audited())


def _renames(change: UserChange, old: Account) -> bool:
    return change.name is not None and name_key(change.name) != name_key(old.name)


def _of_gone(delete: Slice[Sequence[Account]]) -> Slice[tuple[list[Account], dict[int, list[int]]]]:
    return lambda tx, found: delete(tx, found[0])


def _found(account: Account | None) -> Account:
    if account is None:
        raise NotFound(NO_USER)
    return account


def _located(tx: Tx, domain_id: int, removals: Sequence[Removal], keys: Sequence[str]) -> list[Account]:
    """Return the user of each removal. If a removal has both an id and a name, both must belong to the same user.

    keys: the names in the removals, as `name_key` returns them. Raises NotFound if a user does not exist.
    """
    by_key = repo.ids_named(tx, domain_id, [key for key in keys if key])
    ids = [each.user_id or by_key.get(key, 0) for each, key in zip(removals, keys, strict=True)]
    accounts = {account.id: account for account in repo.several(tx, domain_id, ids)}
    named = all(by_key.get(key) == user_id for user_id, key in zip(ids, keys, strict=True) if key)
    if not named or len(accounts) < len(set(ids)):
        raise NotFound(NO_USER)
    return [accounts[user_id] for user_id in ids]


def _assigned(wanted: WalletChange) -> dict[str, JSON]:
    wallet = wanted.wallet
    return {
        "users": list(wallet.user_ids),
        "groups": list(wanted.group_ids),
        "instances": list(wanted.instance_ids),
        "wallet users": list(wallet.wallet_user_ids),
        "credentials": list(wallet.credential_ids),
    }
