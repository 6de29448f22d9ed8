"""The rules of endpoint users."""

from enum import Enum
from typing import TypeVar

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Invalid, NotFound
from sallyport.endpoints import repo
from sallyport.endpoints.model import MAX_NAME, MAX_PASSWORD, User, UserRow, name_key
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault

T = TypeVar("T")
MAX_CACHED = 65_536


class Missing(Enum):
    """Not in memory: ask `load`."""

    MISSING = "missing"


class EndpointUsers:
    """The users of all domains."""

    def __init__(self, store: Store, vault: Vault, clock: Clock = now_us, *, max_cached: int = MAX_CACHED) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._max_cached = max_cached
        self._users: dict[tuple[int, str], User] = {}
        self._absent: dict[tuple[int, str], None] = {}
        self._changes = 0

    def cached(self, domain_id: int, name: str) -> User | Missing | None:
        """A user, None where the domain has no such user, or MISSING. Never waits."""
        key = (domain_id, name_key(name))
        user = self._users.get(key)
        if user is None and key not in self._absent:
            return Missing.MISSING
        return user

    async def load(self, domain_id: int, name: str) -> User | None:
        """A user from the store, kept in memory unless it changed meanwhile. StoreError, SecretError."""
        key, changes = name_key(name), self._changes
        user = await self._store.read(lambda tx: repo.find(tx, self._vault, domain_id, key))
        if changes == self._changes:
            if user is None:
                self._keep(self._absent, (domain_id, key), None)
            else:
                self._keep(self._users, (domain_id, key), user)
        return user

    def _keep(self, table: dict[tuple[int, str], T], key: tuple[int, str], value: T) -> None:
        """The oldest makes room. Names that nobody has are kept apart, so that guessing them pushes nobody out."""
        if len(table) >= self._max_cached:
            del table[next(iter(table))]
        table[key] = value

    async def add(self, domain_id: int, name: str, password: bytes) -> int:
        """The new user's id; it can log in at once. Invalid, Conflict."""
        _check(name, password)
        try:
            return await self._store.write(
                lambda tx: repo.add(tx, self._vault, domain_id, name, password, self._clock())
            )
        finally:
            self._drop(domain_id, name)

    async def remove(self, domain_id: int, name: str) -> None:
        """Delete a user; its next login fails. NotFound."""
        try:
            removed = await self._store.write(lambda tx: repo.remove(tx, domain_id, name))
        finally:
            self._drop(domain_id, name)
        if not removed:
            raise NotFound(f"the domain has no user {name}")

    async def page(self, domain_id: int, *, offset: int = 0, limit: int = 1000) -> list[UserRow]:
        """A domain's users, ordered by id."""
        return await self._store.read(lambda tx: repo.page(tx, domain_id, offset=offset, limit=limit))

    def check_key(self, tx: Tx) -> None:
        """Open a password in a store that is to take the place of this one. SecretError."""
        repo.check_key(tx, self._vault)

    def forget(self) -> None:
        """Drop all users from memory: the store was replaced."""
        self._changes += 1
        self._users.clear()
        self._absent.clear()

    def _drop(self, domain_id: int, name: str) -> None:
        self._changes += 1
        self._users.pop((domain_id, name_key(name)), None)
        self._absent.pop((domain_id, name_key(name)), None)


def _check(name: str, password: bytes) -> None:
    if not 1 <= len(name.encode()) <= MAX_NAME or not name.isprintable():
        raise Invalid(f"a user name has 1 to {MAX_NAME} octets, all of them printable")
    if not 1 <= len(password) <= MAX_PASSWORD or b"\0" in password:
        raise Invalid(f"a password has 1 to {MAX_PASSWORD} octets without NUL, as RADIUS carries it")
