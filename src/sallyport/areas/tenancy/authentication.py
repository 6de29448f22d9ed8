"""The authentication of access tokens and API keys: a look-up by hash, with a bounded cache that is never stale.

A hash that is not in the cache is looked up in the store. Only one such look-up runs at a time, and the source
addresses take turns. Therefore a flood of wrong keys occupies at most one of the store's readers. The other readers
remain free for logins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import Clock
from sallyport.base.errors import INVALID_TOKEN, Unauthenticated
from sallyport.base.fair import FairLimiter
from sallyport.base.secret import KEY_PREFIX, TOKEN_PREFIX, token_hash
from sallyport.store.model import Store, Tx
from sallyport.web.scope import Authenticator, Caller, Role

CACHED = 4096
MAX_LENGTH = 128
"""Maximum number of characters of a token."""


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token without its secret. tenant_id: the internal id of the tenant. Times are UTC microseconds."""

    id: int
    organization: int
    tenant_number: int
    tenant_id: int
    name: str
    role: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def status(self, now: int) -> str:
        """Return `active`, `expired` or `revoked`, at the time `now` in microseconds."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


class Owned(Protocol):
    """A record that belongs to a tenant."""

    @property
    def tenant_id(self) -> int:
        """The internal id of the tenant."""


RecordT = TypeVar("RecordT", bound=Owned)


class RecordCache(Generic[RecordT]):
    """A cache of stored records by hash.

    find: a function that reads the record of a hash from the store. size: the maximum number of records; each tenant
    has a share.

    Unknown hashes are not cached. Otherwise guessed keys would fill the cache.
    """

    def __init__(self, store: Store, find: Callable[[Tx, str], RecordT | None], *, size: int = CACHED) -> None:
        self._store = store
        self._find = find
        self._records = BoundedMap[str, RecordT](size)
        self._turns = FairLimiter[str](1)
        self._generation = 0

    async def find(self, hashed: str, source: str) -> RecordT | None:
        """Return the record with a hash, or None if there is none. Expired and revoked records are returned too. Raises
        StoreError.

        source: the address of the client.
        """
        record = self._records.get(hashed)
        if record is None:
            async with self._turns.slot(source):
                record = self._records.get(hashed) or await self._look_up(hashed)
        return record

    def update(self, hashed: str, old: RecordT, new: RecordT) -> None:
        """Replace a cached record with a newer one."""
        if self._records.get(hashed) is old:
            self._records.put(hashed, new, new.tenant_id)

    def forget(self) -> None:
        """Empty the cache. Call this after a revocation, a restore, or a change by another process."""
        self._generation += 1
        self._records.clear()

    async def _look_up(self, hashed: str) -> RecordT | None:
        before = self._generation
        record = await self._store.read(lambda tx: self._find(tx, hashed))
        # If a revocation has emptied the cache during the read, the record may be stale and must not be cached.
        if record is not None and before == self._generation:
            self._records.put(hashed, record, record.tenant_id)
        return record


class TokenAuthentication:
    """The authentication of access tokens. The class implements web.scope.Authenticator.

    find: a function that reads the record of a hash from the store.
    """

    def __init__(
        self, store: Store, find: Callable[[Tx, str], TokenRecord | None], clock: Clock, *, cached: int = CACHED
    ) -> None:
        self._store = store
        self._clock = clock
        self._known = RecordCache(store, find, size=cached)

    async def authenticate(self, token: str, source: str = "") -> Caller:
        """Return the caller that a token identifies.

        Raises Unauthenticated if the token is unknown, expired or revoked. Raises StoreError.
        """
        if not token.startswith(TOKEN_PREFIX) or len(token) > MAX_LENGTH:
            raise Unauthenticated(INVALID_TOKEN)
        record = await self._known.find(token_hash(token), source)
        if record is None or record.status(self._clock()) != "active":
            raise Unauthenticated(INVALID_TOKEN)
        return Caller(
            token_id=record.id,
            organization=record.organization,
            tenant_number=record.tenant_number,
            tenant_id=record.tenant_id,
            role=Role(record.role),
            name=record.name,
        )

    def forget(self) -> None:
        """Empty the cache. Call this after a revocation, a restore, or a change by another process."""
        self._known.forget()


class Authentication:
    """The authentication of access tokens and API keys. A token and a key differ in their prefix.

    The class implements web.scope.Authenticator.
    """

    def __init__(self, tokens: Authenticator, keys: Authenticator) -> None:
        self._tokens = tokens
        self._keys = keys

    async def authenticate(self, token: str, source: str = "") -> Caller:
        """Return the caller that a token or key identifies. Raises Unauthenticated, TooMany, StoreError."""
        kind = self._keys if token.startswith(KEY_PREFIX) else self._tokens
        return await kind.authenticate(token, source)
