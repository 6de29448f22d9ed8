"""The groups and units of a principal, for logins.

Two sets are kept in memory. The first set contains the ids of the domains that have people from directories. Thus
logins of other domains need no lookup. The second set is a cache of the principals that have logged in lately. If an
import changes people or groups of a domain, the cached principals of the domain are invalidated.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import trio

from sallyport.areas.directory.entry.dn import pairs_of
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.stored import repo
from sallyport.areas.directory.stored.people import attributes_of, device_facts, names_of
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import Clock, now_us
from sallyport.base.text import fold, folded, trimmed
from sallyport.store import audit
from sallyport.store.model import Store, Tx

MAX_CACHED: Final = 65_536
_MAX_SHOWN: Final = 4
INVALIDATE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class CloudState:
    """The state of a person in a cloud directory.

    person_id, directory_id: the ids of the person and of the directory. status: the status of the account. read_at: the
    time when the directory was last read, in microseconds; 0 if it was never read completely. device: the facts of a
    device, such as `compliant`, for login rules.
    """

    person_id: int
    directory_id: int
    status: str
    read_at: int
    device: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CloudAccount:
    """The account of a cloud directory that an identifier of a client certificate names.

    user: the name by which a login finds the person, without the realm if possible. name: the same with the realm.
    sids: the security identifiers of the account, in upper case. state: None if no person has the identifier.
    is_unclear: whether several people have the identifier or the user name; `name` then has the names of some of them.
    """

    user: str = ""
    name: str = ""
    sids: tuple[str, ...] = ()
    state: CloudState | None = None
    is_unclear: bool = False


NO_ACCOUNT: Final = CloudAccount()


@dataclass(frozen=True, slots=True)
class Membership:
    """The memberships of a principal.

    groups, ous: the case-folded names of the principal's groups and units, with the groups around those groups. Both
    are None if several people have the login name. groups is also None if the principal has too many groups.

    name: the login name of the principal. It is empty if no person or several people have the name. names: all names by
    which a login finds the principal, case-folded and without realm. cloud: the state of the principal in a cloud
    directory, or None if the principal is in no such directory.
    """

    groups: frozenset[str] | None
    ous: frozenset[str] | None
    name: str = ""
    names: frozenset[str] = frozenset()
    cloud: CloudState | None = None


NOBODY: Final = Membership(frozenset(), frozenset())
"""The result for a login name that is in no directory."""
UNCLEAR: Final = Membership(None, None)


class Principals:
    """The principals of all directories. Call `load` first. inhabited: the ids of the domains with people from
    directories. clock: a function that returns the time in microseconds."""

    def __init__(self, store: Store, clock: Clock = now_us, *, max_cached: int = MAX_CACHED) -> None:
        self._store = store
        self.clock = clock
        self.inhabited: frozenset[int] = frozenset()
        self._known = BoundedMap[tuple[int, int, str], Membership](max_cached)
        self._accounts = BoundedMap[tuple[int, int, str], CloudAccount](max_cached)
        self._read_at: dict[int, int] = {}  # by directory
        self._versions = Counter[int]()  # by domain; cached entries with an older version are not used
        self._changes = 0

    def cached(self, domain_id: int, name: str) -> Membership | None:
        """Return the cached groups and units of the person with this login name (without realm). Return None if the
        name is not in the cache. Then call `find`."""
        if domain_id not in self.inhabited:
            return NOBODY
        return self._known.get((domain_id, self._versions[domain_id], fold(name)))

    async def find(self, domain_id: int, name: str, realms: tuple[str, ...]) -> Membership:
        """Read from the store the groups and units of the person that has this login name, and cache them. Raises
        StoreError.

        realms: the case-folded realms of the domain. They are needed because a directory may store a login name
        together with a realm.
        """
        changes = self._changes

        def query(tx: Tx) -> tuple[Membership, int]:
            return membership(tx, domain_id, name, realms), audit.share_of(tx, domain_id)

        found, tenant_id = await self._store.read(query)
        if changes == self._changes:
            self._known.put((domain_id, self._versions[domain_id], fold(name)), found, tenant_id)
        return found

    async def account(self, domain_id: int, identifier: str, realms: tuple[str, ...], *, since: int) -> CloudAccount:
        """Return the account of the domain's cloud directories that has an identifier, from memory or the store. Raises
        StoreError.

        identifier: a case-folded text `kind:value` (`imports.lines.identifiers_of`). realms: see `find`. since: a time
        in microseconds. An account in memory whose directory was read before this time is read from the store again.
        """
        if domain_id not in self.inhabited:
            return NO_ACCOUNT
        changes, key = self._changes, (domain_id, self._versions[domain_id], identifier)
        known = self._accounts.get(key)
        if known is not None and (known.state is None or self.current(known.state).read_at >= since):
            return known

        def query(tx: Tx) -> tuple[CloudAccount, int]:
            return cloud_account(tx, domain_id, identifier, realms), audit.share_of(tx, domain_id)

        found, tenant_id = await self._store.read(query)
        if changes == self._changes:
            self._accounts.put(key, found, tenant_id)
            if found.state is not None:
                self._read_at[found.state.directory_id] = found.state.read_at
        return found

    async def names_of(self, domain_id: int, object_id: str, realms: tuple[str, ...]) -> frozenset[str]:
        """Return the case-folded user names of the active account with an object id in the domain's cloud directories,
        with and without realm. Return none if no account or several have it. object_id: case-folded. Raises
        StoreError."""
        account = await self.account(domain_id, f"id:{object_id}", realms, since=0)
        if account.is_unclear or account.state is None or account.state.status != Status.ACTIVE:
            return frozenset()
        return frozenset({fold(account.user), fold(account.name)})

    def current(self, state: CloudState) -> CloudState:
        """Return a state with the latest known time at which its directory was read. A reading without changes does not
        invalidate the entries in memory."""
        read_at = self._read_at.get(state.directory_id, 0)
        return replace(state, read_at=read_at) if read_at > state.read_at else state

    def changed(self, domain_id: int) -> None:
        """Invalidate the cached entries of a domain whose directories have changed."""
        self._changes += 1
        self._versions[domain_id] += 1
        self.inhabited |= {domain_id}

    def changed_elsewhere(self, domain_id: int) -> None:
        """Invalidate the cached entries of a domain that another node has changed. The id 0 means all domains."""
        if domain_id:
            self.changed(domain_id)
        else:
            self.forget()

    async def load(self) -> None:
        """Load the domains that have people from directories, and clear the cache. Raises StoreError."""
        self.forget()
        self.inhabited = await self._store.read(repo.inhabited)

    def forget(self) -> None:
        """Clear the cache. Call this method after another process has changed the store."""
        self._changes += 1
        self._known.clear()
        self._accounts.clear()
        self._read_at.clear()


class Invalidations:
    """Limits how often an import invalidates the cache of a domain. After each invalidation, logins of the domain must
    read the store again.

    The first change invalidates the cache at once. Later changes invalidate it at most once a second. Call `flush`
    after the last change, because otherwise the last change may not invalidate the cache.
    """

    def __init__(self, invalidate: Callable[[int], None]) -> None:
        self._invalidate = invalidate
        self._due: dict[int, float] = {}
        self._pending: set[int] = set()

    def changed(self, domain_id: int) -> None:
        """Report a change of a domain. Call `flush` after the last change."""
        self._pending.add(domain_id)
        now = trio.current_time()
        if now >= self._due.get(domain_id, now):
            self._due[domain_id] = now + INVALIDATE_S
            self._pass_on(domain_id)

    def flush(self, domain_id: int) -> None:
        """Invalidate the cache of a domain if a change has not done so yet. Call this method when the import of the
        domain has ended, and when it waits for the store."""
        self._due.pop(domain_id, None)
        self._pass_on(domain_id)

    def _pass_on(self, domain_id: int) -> None:
        if domain_id in self._pending:
            self._pending.discard(domain_id)
            self._invalidate(domain_id)


def membership(tx: Tx, domain_id: int, name: str, realms: tuple[str, ...]) -> Membership:
    """Read from the store the groups and units of the person with this login name. realms: see `Principals.find`."""
    found = _of_name(tx, domain_id, fold(name), realms)
    if not found:
        return NOBODY
    if len(found) > 1:
        return UNCLEAR
    groups = repo.all_groups(tx, found[0])
    ous = folded(trimmed(value) for kind, value in pairs_of(found[0].dn) if kind == "ou")
    written = {_without_realm(name, realms) for name in names_of(tx, found[0].id)}
    # A name is omitted if it is the login name of another person.
    names = frozenset(each for each in written if _of_name(tx, domain_id, each, realms) == found)
    return Membership(groups, ous, found[0].name, names, _state(found[0], _facts_of(tx, found[0])))


def cloud_account(tx: Tx, domain_id: int, identifier: str, realms: tuple[str, ...]) -> CloudAccount:
    """Read from the store the account of a cloud directory that has an identifier. identifier, realms: see
    `Principals.account`."""
    found = repo.identified(tx, domain_id, identifier)
    if not found:
        return NO_ACCOUNT
    if identifier.startswith("dns:"):  # a device that was enrolled again leaves its disabled object behind
        active = [each for each in found if each.status == Status.ACTIVE]
        found = active if len(active) == 1 else found
    name, bearers = found[0].name, found
    user, _, realm = name.rpartition("@")
    for each in dict.fromkeys((user if user and fold(realm) in realms else name, name)):
        # Rules, sessions and second factors know the person by this name, so it must not be another person's name.
        if len(found) == 1:
            bearers = _of_name(tx, domain_id, fold(each), realms)
            if bearers == found:
                return CloudAccount(each, name, repo.sids(tx, found[0].id), _state(found[0]))
    shown = dict.fromkeys(each.name for each in (found[0], *bearers))
    return CloudAccount(name=", ".join(islice(shown, _MAX_SHOWN)), is_unclear=True)


def _state(found: repo.Principal, device: tuple[str, ...] = ()) -> CloudState | None:
    return CloudState(found.id, found.directory_id, found.status, found.read_at, device) if found.is_cloud else None


def _facts_of(tx: Tx, found: repo.Principal) -> tuple[str, ...]:
    """Return the facts of a device of a cloud directory. Return none for a person."""
    return device_facts(attributes_of(tx, found.id)) if found.is_cloud and found.name.startswith("host/") else ()


def _of_name(tx: Tx, domain_id: int, key: str, realms: tuple[str, ...]) -> list[repo.Principal]:
    return repo.principals(tx, domain_id, [key, *(f"{key}@{realm}" for realm in realms)])


def _without_realm(key: str, realms: tuple[str, ...]) -> str:
    user, _, realm = key.rpartition("@")
    return user if user and realm in realms else key
