"""The people that logins of a domain know: from its directories, and from its first factor."""

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

from sallyport.areas.directory.principals import UNCLEAR, membership
from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.login.decision import NOT_CHECKED
from sallyport.areas.login.first.checker import Tell, silent
from sallyport.areas.login.first.service import FirstFactors
from sallyport.areas.login.identity import split_realm
from sallyport.areas.login.login import Found, Reason
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.store.model import Store

_NOT_ASKED = frozenset({*NOT_CHECKED, Reason.DIRECTORY_ENTRY_TOO_LARGE})


@runtime_checkable
class LooksUp(Protocol):
    """A first factor that can find a person without a password."""

    async def look_up(self, user: str, tell: Tell) -> tuple[Reason, Found]:
        """Check whether a user exists and may log in."""


class People:
    """The people of all domains. domain_of: a function that returns an existing domain."""

    def __init__(self, store: Store, first: FirstFactors, domain_of: Callable[[int], Domain]) -> None:
        self._store = store
        self._first = first
        self._domain_of = domain_of

    async def find(self, domain_id: int, name: str) -> str | None:
        """Return the name by which logins know a person, without realm. Return None if neither a directory nor the
        first factor of the domain knows the person.

        A first factor that cannot look up a person, such as another RADIUS server, is expected to know every name. An
        endpoint user of the first factor `local` is not looked for. Raises Conflict if several people have the name, or
        if the first factor cannot be asked.
        """
        domain = self._domain_of(domain_id)
        user, realm = split_realm(name)
        if fold(realm) not in domain.realm_keys:
            user = name
        found = await self._store.read(lambda tx: membership(tx, domain_id, user, domain.realm_keys))
        if found is UNCLEAR:
            raise Conflict("several people of the directories have this name")
        if found.name:
            return found.name
        if domain.first_factor in (FirstFactor.LOCAL, FirstFactor.WEB) or not user:
            return None
        return user if await self._is_known(domain, user) else None

    async def _is_known(self, domain: Domain, user: str) -> bool:
        if domain.first_factor is FirstFactor.NONE:
            return True
        return await self._first.while_running(partial(self._looked_up, domain, user))

    async def _looked_up(self, domain: Domain, user: str) -> bool:
        checker = self._first.checker(domain)
        if not isinstance(checker, Reason | LooksUp):
            return True
        reason = checker if isinstance(checker, Reason) else (await checker.look_up(user, silent))[0]
        if reason in _NOT_ASKED:
            raise Conflict(f"{reason}; to see the cause: sallyport domain check {domain.name}")
        return reason is not Reason.UNKNOWN_USER
