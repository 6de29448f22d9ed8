"""The bypass codes of all domains: made by operators, used once or several times, and ended by wrong tries."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from sallyport.areas.factors.bypass_codes import repo
from sallyport.areas.factors.bypass_codes.code import (
    MAX_OF_DOMAIN,
    MAX_WRONG,
    BypassCode,
    Wanted,
    digits_of,
    new_codes,
)
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.tenancy.passwords import checked, hashed
from sallyport.base.clock import SECOND, Clock, iso, now_us
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.fair import FairLimiter
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault

LoginName = Callable[[int, str], Awaitable[str]]
"""A function that returns the name by which logins of a domain know a user. It raises NotFound for an unknown name."""
_AT_ONCE: Final = 2
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MadeCodes:
    """New codes of a person. former: the number of codes that they have replaced."""

    person: Person
    codes: Sequence[str]
    expires_at: int
    former: int


class BypassCodes:
    """The bypass codes of all domains. Slow hashes are computed in worker threads, two at a time, and waiting tenants
    take turns. max_codes: the maximum number of codes in a domain."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        login_name: LoginName,
        clock: Clock = now_us,
        *,
        max_codes: int = MAX_OF_DOMAIN,
    ) -> None:
        self._store = store
        self._vault = vault
        self._login_name = login_name
        self._clock = clock
        self._max_codes = max_codes
        self._at_once = FairLimiter[int](_AT_ONCE)

    async def person(self, domain_id: int, user: str) -> Person:
        """Return a user, under the name that logins use. Raises NotFound, Conflict."""
        return Person(domain_id, await self._login_name(domain_id, user))

    async def make(self, domain_id: int, user: str, wanted: Wanted) -> MadeCodes:
        """Make codes for a user, and return them. They replace all former codes of the user.

        Raises NotFound if logins of the domain do not know the user. Raises Conflict if the domain has too many
        codes, or if the first factor cannot be asked about the user.
        """
        person = await self.person(domain_id, user)
        tenant_id = await self._store.read(lambda tx: audit.tenant_of(tx, domain_id))
        codes = new_codes(wanted.codes)
        hashes = list[tuple[int, str]]()
        for each in codes:
            async with self._at_once.slot(tenant_id):
                hashes.append((int(each[0]), await trio.to_thread.run_sync(hashed, each.encode())))
        at = self._clock()
        expires_at = at + wanted.hours * 3600 * SECOND

        def transaction(tx: Tx) -> int:
            if repo.number_in_domain(tx, domain_id, at) + len(codes) > self._max_codes:
                raise Conflict(f"a domain has at most {self._max_codes} bypass codes: remove some first")
            former = repo.replace(tx, self._vault, person, hashes, uses=wanted.uses, at=at, expires_at=expires_at)
            changes: dict[str, JSON] = {
                "codes": [former, len(codes)],
                "uses": [None, wanted.uses],
                "expiresAt": [None, iso(expires_at)],
            }
            audit.record_in(tx, "user.bypass_codes.make", domain_id, _target(person.name), changes, at=at)
            return former

        return MadeCodes(person, codes, expires_at, await self._store.write(transaction))

    async def remove(self, domain_id: int, user: str) -> int:
        """Remove all codes of a user, and return their number. Raises NotFound if the user has none."""
        person, at = Person(domain_id, user), self._clock()

        def transaction(tx: Tx) -> int:
            removed = repo.remove(tx, person)
            if not removed:
                raise NotFound("the user has no bypass codes")
            audit.record_in(tx, "user.bypass_codes.remove", domain_id, _target(person.name), at=at)
            return removed

        return await self._store.write(transaction)

    async def page(self, domain_id: int, user: str, offset: int, size: int) -> tuple[list[BypassCode], int]:
        """Return a page of a domain's codes, and the number of all. user: the name of a user, or empty for all."""
        return await self._store.search(lambda tx: repo.page(tx, domain_id, fold(user), offset, size))

    async def has_code(self, domain_id: int, user: str) -> bool:
        """Return whether a user has a code that can be used now. Raises StoreError."""
        person, at = Person(domain_id, user), self._clock()
        return await self._store.read(lambda tx: repo.is_usable(tx, person, at))

    async def spend(self, domain_id: int, user: str, code: str) -> bool:
        """Use a code of a user. Return False if the code is wrong, or if it cannot be used any more. Raises StoreError,
        SecretError.

        code: the text that the user has typed. The caller has checked the first factor, or knows by other means that
        the login is one of this user. When this returns True, the use is on disk.
        """
        digits = digits_of(code)
        if not digits:
            return False
        person, at = Person(domain_id, user), self._clock()

        def transaction(tx: Tx) -> tuple[BypassCode | None, int]:
            return repo.take_try(tx, person, int(digits[0]), at), audit.share_of(tx, domain_id)

        found, tenant_id = await self._store.write(transaction)
        if found is None:
            return False
        known = self._vault.open(found.sealed, repo.IDENTITY.format(found.id)).decode()
        async with self._at_once.slot(tenant_id):
            is_right, _ = await trio.to_thread.run_sync(checked, digits.encode(), known)
        if is_right:
            return await self._use(person, found)
        if found.wrong >= MAX_WRONG:
            log.warning("bypass_code_ended", domain_id=domain_id, user=user, wrong_tries=found.wrong)
        return False

    async def _use(self, person: Person, code: BypassCode) -> bool:
        at = self._clock()

        def transaction(tx: Tx) -> bool:
            used = repo.use(tx, code, at)
            if used is None:
                return False
            changes = audit.changed({"used": used - 1}, {"used": used})
            target = f"{_target(code.user_name)}, first digit {code.number}"
            audit.record_in(tx, "user.bypass_codes.use", person.domain_id, target, changes, at=at)
            return True

        try:
            return await self._store.write(transaction)
        except NotFound:  # the domain was removed meanwhile
            return False


def _target(user: str) -> str:
    return f"bypass codes of {user}"
