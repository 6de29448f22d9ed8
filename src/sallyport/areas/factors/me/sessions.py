"""The sign-ins of people at /me."""

from collections.abc import Callable

from sallyport.areas.factors.me import repo
from sallyport.areas.factors.me.session import FIRST_US, LIFE_US, MAX_WRONG, PersonSession
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.mfa.provider import Strength
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict
from sallyport.base.secret import token_hash
from sallyport.store import audit
from sallyport.store.model import Store, Tx

OVER = "your sign-in has ended: sign in again"


class PeopleSessions:
    """The sign-ins of all people. The store has only the hash of a browser's secret. browser: the secret in the cookie
    of the browser; the caller gives the browser another one at each step of a sign-in."""

    def __init__(self, store: Store, clock: Clock = now_us) -> None:
        self._store = store
        self._clock = clock

    async def of(self, browser: str) -> PersonSession | None:
        """Return the sign-in of a browser, or None. Raises StoreError."""
        if not browser:
            return None
        hashed, at = token_hash(browser), self._clock()
        return await self._store.read_now(lambda tx: repo.find(tx, hashed, at))

    async def begin(
        self,
        person: Person,
        browser: str,
        source: str,
        stamp: str = "",
        *,
        with_link: Callable[[Tx, int], bool] | None = None,
    ) -> PersonSession:
        """Begin the sign-in of a person whose password is right. stamp: see `ChecksPasswords.stamp`. with_link: ends
        the enrolment link with which the person has come, in the same transaction. Raises Conflict if it has ended
        meanwhile."""
        hashed, at = token_hash(browser), self._clock()
        until = at + (FIRST_US if with_link is None else LIFE_US)

        def transaction(tx: Tx) -> PersonSession:
            audit.tenant_of(tx, person.domain_id)  # refuses a domain that was removed
            if with_link is not None and not with_link(tx, at):
                raise Conflict("the link has ended: ask for a new one")
            repo.add(tx, hashed, person, source, at, until, stamp, is_by_link=with_link is not None)
            if with_link is not None:
                self._note(tx, person, source, "link", at)
            return self._found(tx, hashed, at)

        return await self._store.write(transaction)

    async def prove(self, session: PersonSession, browser: str, factor: str, strength: Strength) -> PersonSession:
        """Store the proof of a factor. browser: the new secret of the browser. Raises Conflict if the sign-in has
        ended."""
        hashed, at = token_hash(browser), self._clock()

        def transaction(tx: Tx) -> PersonSession:
            if not repo.prove(tx, session.id, hashed, factor, strength, at, at + LIFE_US):
                raise Conflict(OVER)
            self._note(tx, session.person, session.source, factor, at)
            return self._found(tx, hashed, at)

        return await self._store.write(transaction)

    async def count_wrong(self, session: PersonSession) -> None:
        """Count a wrong proof. The last one ends the sign-in."""
        await self._store.write(lambda tx: repo.count_wrong(tx, session.id, MAX_WRONG))

    async def end(self, browser: str) -> None:
        """End the sign-in of a browser."""
        hashed = token_hash(browser)
        await self._store.write(lambda tx: repo.end(tx, hashed))

    async def purge(self) -> None:
        """Delete the sign-ins that have ended."""
        at = self._clock()
        while await self._store.write(lambda tx: repo.purge(tx, at)):
            pass

    def _found(self, tx: Tx, hashed: str, at: int) -> PersonSession:
        found = repo.find(tx, hashed, at)
        if found is None:
            raise Conflict(OVER)
        return found

    @staticmethod
    def _note(tx: Tx, person: Person, source: str, by: str, at: int) -> None:
        changes = audit.changed({}, {"from": source, "by": by})
        audit.record_in(tx, "user.sign-in", person.domain_id, f"user {person.name}", changes, at=at)
