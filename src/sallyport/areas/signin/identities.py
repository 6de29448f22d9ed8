"""The people that signed in through an identity provider."""

from sallyport.areas.signin import repo
from sallyport.areas.signin.person import Identity
from sallyport.base.clock import Clock
from sallyport.base.errors import NotFound
from sallyport.store import audit
from sallyport.store.audit import INSTALLATION
from sallyport.store.model import Store, Tx


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
