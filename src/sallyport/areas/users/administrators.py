"""The protection of the factors of administrators.

A person of a domain may also sign in to the console. An operator must not get the account of an admin by an own factor
under the name of the admin, so only the role admin may change these factors.
"""

from collections.abc import Callable

from sallyport.areas.users import repo
from sallyport.areas.users.user import UserKey, name_key
from sallyport.base.errors import Forbidden
from sallyport.store.model import Store, Tx
from sallyport.web.scope import ADMINS, Caller

NOT_BY_OPERATOR = "the user is an administrator, whose factors only the role admin may change"
AdministratorNames = Callable[[Tx, int], frozenset[str]]
"""A function that returns the case-folded names of the administrators of a domain, with and without realm. It takes the
id of the domain."""


class Administrators:
    """The administrators among the people of all domains."""

    def __init__(self, store: Store, names: AdministratorNames) -> None:
        self._store = store
        self._names = names

    async def check(self, domain_id: int, which: UserKey, caller: Caller) -> None:
        """Raise Forbidden if a person is an administrator and the caller does not have the role admin. which: the name
        of the person, or the id of the endpoint user."""
        if caller.role not in ADMINS and await self._store.read(lambda tx: self._is_one(tx, domain_id, which)):
            raise Forbidden(NOT_BY_OPERATOR)

    def _is_one(self, tx: Tx, domain_id: int, which: UserKey) -> bool:
        if isinstance(which, int):
            user = repo.locate(tx, domain_id, which)
            return user is not None and name_key(user.name) in self.of(tx, domain_id)
        return name_key(which) in self.of(tx, domain_id)

    def of(self, tx: Tx, domain_id: int) -> frozenset[str]:
        """Return the case-folded names of the administrators of a domain."""
        return self._names(tx, domain_id)
