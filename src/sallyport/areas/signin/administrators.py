"""The services for the people of the console: local administrators, and people of identity providers."""

import secrets
from base64 import b32encode
from collections.abc import Callable, Sequence

import trio

from sallyport.areas.signin import repo
from sallyport.areas.signin.person import Administrator, Identity
from sallyport.areas.tenancy.passwords import hashed
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, FieldError, Invalid, NotFound, invalid_field
from sallyport.base.text import existing, fold_name
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.audit import HIDDEN, INSTALLATION
from sallyport.store.model import Store, Tx, Work
from sallyport.store.vault import Vault
from sallyport.web.scope import Role

MAX_NAME_LENGTH = 64
MAX_PASSWORD_LENGTH = 128
SEED_OCTETS = 20

Failures = Callable[[str, str], Sequence[str]]
"""A function that returns the rules that a password fails, in words: (password, name of the administrator) -> rules."""


class Administrators:
    """The local administrators of the installation. failures: the password policy."""

    def __init__(self, store: Store, vault: Vault, failures: Failures, clock: Clock) -> None:
        self._store = store
        self._vault = vault
        self._failures = failures
        self._clock = clock

    async def add(self, name: str, password: str, role: Role, tenant_id: int | None) -> tuple[Administrator, str]:
        """Add an administrator. Return the administrator, and the seed of the one-time codes in base32. The seed cannot
        be read again.

        role: INSTALLATION without a tenant, or a role within the tenant. Raises Conflict if the name is in use. Raises
        Invalid.
        """
        if (role is Role.INSTALLATION) != (tenant_id is None):
            raise ValueError("the role installation has no tenant, and every other role has one")
        _check_name(name)
        hashed, seed, at = await self._hashed(name, password), _new_seed(), self._clock()

        def transaction(tx: Tx) -> Administrator:
            if repo.administrator(tx, fold_name(name)) is not None:
                raise Conflict(f'an administrator is called "{name}" already')
            made = repo.add_administrator(tx, name, fold_name(name), role.value, tenant_id, at)
            repo.set_password(tx, self._vault, made, hashed)
            repo.set_seed(tx, self._vault, made, seed)
            found = _named(tx, name)
            _record(tx, "administrator.add", found, at, audit.changed({}, {"role": role.value}))
            return found

        return await self._store.write(transaction), seed

    async def list(self) -> list[Administrator]:
        """Return every administrator, ordered by name."""
        return await self._store.read(repo.administrators)

    async def remove(self, name: str) -> Administrator:
        """Remove an administrator and end its sessions. Raises NotFound."""
        at = self._clock()

        def transaction(tx: Tx) -> Administrator:
            found = _named(tx, name)
            repo.remove_administrator(tx, found.id)
            _record(tx, "administrator.remove", found, at)
            return found

        return await self._store.write(transaction)

    async def set_password(self, name: str, password: str) -> Administrator:
        """Set the password of an administrator, and end its sessions. Raises NotFound, Invalid."""
        hashed, at = await self._hashed(name, password), self._clock()

        def transaction(tx: Tx, found: Administrator) -> None:
            repo.set_password(tx, self._vault, found.id, hashed)
            _record(tx, "administrator.password", found, at, {"password": [HIDDEN, HIDDEN]})

        return await self._store.write(self._ending(name, transaction))

    async def renew_seed(self, name: str) -> tuple[Administrator, str]:
        """Make a new seed for an administrator, and end its sessions. Return the administrator and the seed. Raises
        NotFound."""
        seed, at = _new_seed(), self._clock()

        def transaction(tx: Tx, found: Administrator) -> None:
            repo.set_seed(tx, self._vault, found.id, seed)
            _record(tx, "administrator.totp", found, at, {"seed": [HIDDEN, HIDDEN]})

        return await self._store.write(self._ending(name, transaction)), seed

    def _ending(self, name: str, change: Callable[[Tx, Administrator], None]) -> Work[Administrator]:
        def transaction(tx: Tx) -> Administrator:
            found = _named(tx, name)
            change(tx, found)
            repo.end_of_administrator(tx, found.id)
            return found

        return transaction

    async def _hashed(self, name: str, password: str) -> str:
        if not password or len(password) > MAX_PASSWORD_LENGTH or not password.isprintable():
            raise invalid_field("password", f"must have 1 to {MAX_PASSWORD_LENGTH} printable characters")
        failed = self._failures(password, name)
        if failed:
            fields = tuple(FieldError("password", each) for each in failed)
            raise Invalid("the password does not meet the policy: " + "; ".join(failed), fields)
        return await trio.to_thread.run_sync(hashed, password.encode())


def _named(tx: Tx, name: str) -> Administrator:
    found = repo.administrator(tx, fold_name(name))
    if found is None:
        known = existing(name, [each.name for each in repo.administrators(tx)])
        raise NotFound(f'administrator "{name}" not found{known}')
    return found


def _record(tx: Tx, action: str, who: Administrator, at: int, changes: dict[str, JSON] | None = None) -> None:
    audit.record(tx, action, at=at, tenant_id=who.tenant_id or INSTALLATION, target=who.target, changes=changes)


def _new_seed() -> str:
    return b32encode(secrets.token_bytes(SEED_OCTETS)).decode()


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise invalid_field(
            "name", f"must have 1 to {MAX_NAME_LENGTH} printable characters, without spaces at the ends"
        )


class Identities:
    """The people of identity providers, as they were at their latest sign-in."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def list(self) -> list[Identity]:
        """Return the people, ordered by id. Raises StoreError."""
        return await self._store.read(repo.identities)

    async def forget(self, identity_id: int) -> Identity:
        """Remove a person, and end the person's sessions. Raises NotFound, StoreError.

        The provider still knows the person. If its groups give a role, the person can sign in again, and gets a new id.
        """
        at = self._clock()

        def transaction(tx: Tx) -> Identity:
            found = repo.identity(tx, identity_id)
            if found is None:
                raise NotFound(f"there is no identity {identity_id}: `admin identities` lists them")
            repo.remove_identity(tx, identity_id)
            tenant_id = found.tenant_id or INSTALLATION
            audit.record(tx, "identity.remove", at=at, tenant_id=tenant_id, target=found.target)
            return found

        return await self._store.write(transaction)
