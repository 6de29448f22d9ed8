"""The service for tenants and access tokens. It creates, lists and revokes them."""

from collections.abc import Callable

from sallyport.areas.tenancy import repo
from sallyport.areas.tenancy.authentication import CACHED, TokenAuthentication, TokenRecord
from sallyport.areas.tenancy.repo import Tenant, TokenQuery
from sallyport.base.clock import SECOND, Clock, iso
from sallyport.base.errors import Conflict, NotFound, invalid_field
from sallyport.base.secret import new_token, token_hash
from sallyport.store import audit
from sallyport.store.model import Store, Tx, Work
from sallyport.web.scope import Role

MAX_NAME_LENGTH = 64
_MAX_NUMBER = 2**63 - 1
_LAST_TIME = 253_402_300_799 * SECOND  # the end of the year 9999, the last time in ISO 8601 with four digits


class Tenancy(TokenAuthentication):
    """The tenants and tokens of the installation."""

    def __init__(self, store: Store, clock: Clock, *, cached: int = CACHED) -> None:
        super().__init__(store, repo.token_by_hash, clock, cached=cached)

    async def ensure_tenant(self, organization: int, number: int) -> int:
        """Return the internal id of a tenant. Create the tenant if it does not exist. Raises Invalid, StoreError."""
        return await self._store.write(self.tenant_maker(organization, number))

    def tenant_maker(self, organization: int, number: int) -> Work[int]:
        """Return a function for use in a transaction. The function returns the internal id of a tenant, and creates the
        tenant if it does not exist.

        Raises Invalid if a number is out of range.
        """
        at = self._clock()
        _check_scope(organization, number)
        return lambda tx: repo.ensure_tenant(tx, organization, number, at=at).id

    async def tenant_id(self, organization: int, number: int) -> int:
        """Return the internal id of a tenant. Raises NotFound, StoreError."""
        for tenant_id, numbers in (await self.numbers()).items():
            if numbers == (organization, number):
                return tenant_id
        raise NotFound(
            f"organization {organization} has no tenant {number}; `tenant list` shows the tenants; `token create` and "
            "`domain add` create them"
        )

    async def check_exists(self, organization: int | None, number: int | None) -> None:
        """Raise NotFound if no tenant has this organization and number. None matches any value. Raises StoreError."""
        kinds = {"organization": organization, "tenant": number}
        wanted = " with ".join(f"{kind} {each}" for kind, each in kinds.items() if each is not None)
        tenants = (await self.numbers()).values()
        if wanted and not any(organization in (None, of) and number in (None, own) for of, own in tenants):
            raise NotFound(
                f"there is no {wanted}; `tenant list` shows the tenants; `token create` and `domain add` create them"
            )

    async def numbers(self) -> dict[int, tuple[int, int]]:
        """Return the orgId and the tenantId of all tenants, by internal id. Raises StoreError."""
        tenants = await self._store.read(repo.tenants)
        return {tenant.id: (tenant.organization, tenant.number) for tenant in tenants}

    async def create_token(
        self, organization: int, tenant: int, role: Role, name: str, expires_at: int | None
    ) -> tuple[TokenRecord, str]:
        """Create a token, and return its record and the token. The token itself is not stored. The tenant is created if
        it does not exist.

        tenant: the number of the tenant within the organization. expires_at: the expiry time in UTC microseconds, or
        None. Raises Invalid, StoreError.
        """
        at = self._clock()
        _check_scope(organization, tenant)
        _check_name(name)
        if expires_at is not None and not at < expires_at <= _LAST_TIME:
            raise invalid_field("expires", "must be a time in the future, up to the year 9999")
        token = new_token()

        def transaction(tx: Tx) -> TokenRecord:
            owner = repo.ensure_tenant(tx, organization, tenant, at=at)
            return _add(tx, owner, role, name, token=token, at=at, until=expires_at)

        return await self._store.write(transaction), token

    def wallet_token(self, tx: Tx, tenant_id: int, email: str) -> tuple[int, str]:
        """Create a wallet's token, in the transaction that registers the wallet. Return the token's id and the
        token."""
        owner = repo.tenant(tx, tenant_id)
        name, token = f"wallet {email}"[:MAX_NAME_LENGTH], new_token()
        record = _add(tx, owner, Role.WALLET, name, token=token, at=self._clock(), until=None)
        return record.id, token

    def end_wallet_token(self, tx: Tx, tenant_id: int, token_id: int) -> None:
        """Revoke a wallet's token, in the transaction that replaces the token. Call `forget` after the commit."""
        at = self._clock()
        if repo.revoke(tx, token_id, at=at):
            audit.record(tx, "token.revoke", at=at, tenant_id=tenant_id, target=_target(token_id, "wallet"))

    async def list_tokens(
        self, organization: int | None = None, tenant: int | None = None, *, wallets: bool = True
    ) -> list[TokenRecord]:
        """Return tokens, ordered by id: all tokens, or only the tokens of an organization or tenant. wallets: whether
        to return the tokens of wallets too. Raises StoreError."""
        return await self._store.read(lambda tx: repo.tokens(tx, organization, tenant, wallets=wallets))

    async def token_page(self, query: TokenQuery) -> tuple[list[TokenRecord], int]:
        """Return one page of tokens, and the number of all matching tokens. Raises StoreError."""
        return await self._store.search(lambda tx: repo.token_page(tx, query, self._clock()))

    async def token(self, token_id: int, organization: int | None, tenant: int | None) -> TokenRecord | None:
        """Return a token, or None if the organization or tenant has no such token. Raises StoreError."""
        return await self._store.read(lambda tx: repo.token_by_id(tx, token_id, organization, tenant))

    async def revoke(self, token: int | str, organization: int | None = None, tenant: int | None = None) -> TokenRecord:
        """Revoke a token by its id or name. When the call returns, the service rejects the token. A repeated call
        changes nothing.

        Raises NotFound, StoreError. Raises Conflict if several active tokens have the name.
        """
        at = self._clock()
        number = token
        if isinstance(token, str):  # looked up outside the transaction, because a tenant may have a million tokens
            number = (await self._store.search(lambda tx: _find(tx, token, organization, tenant, at))).id

        def transaction(tx: Tx) -> TokenRecord:
            found = _find(tx, number, organization, tenant, at)
            if repo.revoke(tx, found.id, at=at):
                audit.record(tx, "token.revoke", at=at, tenant_id=found.tenant_id, target=_target(found.id, found.name))
            return repo.token_by_id(tx, found.id, None, None) or found

        revoked = await self._store.write(transaction)
        self.forget()
        return revoked

    async def first_start(self, hand_over: Callable[[str], None]) -> bool:
        """Create organization 1, tenant 1 and an admin token if no token exists. Return whether this call has created
        the token.

        hand_over: a function that shows the token to the admin. It is called in the store's thread, before the token is
        stored. If the service crashes between these two steps, the admin has an invalid token. In the reverse order, a
        crash could lose a valid token.
        """
        at = self._clock()
        token = new_token()

        def transaction(tx: Tx) -> bool:
            if repo.any_token(tx):
                return False
            hand_over(token)
            owner = repo.ensure_tenant(tx, 1, 1, at=at)
            _add(tx, owner, Role.ADMIN, "first start", token=token, at=at, until=None)
            return True

        return await self._store.write(transaction)


def _add(tx: Tx, tenant: Tenant, role: Role, name: str, *, token: str, at: int, until: int | None) -> TokenRecord:
    made = repo.add_token(tx, tenant, role, name, hashed=token_hash(token), at=at, until=until)
    fields = {"role": role.value, "expires": None if until is None else iso(until)}
    audit.record(
        tx,
        "token.create",
        at=at,
        tenant_id=tenant.id,
        target=_target(made, name),
        changes=audit.changed({}, fields),
    )
    return TokenRecord(made, tenant.organization, tenant.number, tenant.id, name, role, at, until, None)


def _target(token_id: int, name: str) -> str:
    return f"token {token_id} {name}"


def _find(tx: Tx, token: int | str, organization: int | None, tenant: int | None, at: int) -> TokenRecord:
    """Return the token with an id or a name. If several tokens have the name, return the one that is active.

    Raises NotFound. Raises Conflict if more than one of them is active.
    """
    if isinstance(token, int):
        by_id = repo.token_by_id(tx, token, organization, tenant) if abs(token) <= _MAX_NUMBER else None
        if by_id is None:
            raise NotFound("token not found")
        return by_id
    named = repo.tokens(tx, organization, tenant, name=token)
    if not named:
        raise NotFound("token not found")
    active = [each for each in named if each.status(at) == "active"]
    if len(active) > 1:
        ids = ", ".join(str(each.id) for each in active)
        raise Conflict(f"several active tokens have that name; revoke one by id: {ids}")
    return (active or named)[0]


def _check_scope(organization: int, number: int) -> None:
    if not 1 <= organization <= _MAX_NUMBER:
        raise invalid_field("org", "must be a whole number of at least 1")
    if not 1 <= number <= _MAX_NUMBER:
        raise invalid_field("tenant", "must be a whole number of at least 1")


def _check_name(name: str) -> None:
    """Raise Invalid if a name could be confused with an id, or cannot be printed in a table."""
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable() or name.isdecimal():
        raise invalid_field("name", f"must have 1 to {MAX_NAME_LENGTH} printable characters, and not only digits")
