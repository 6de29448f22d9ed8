"""Begin, read and end pauses of prompts."""

from functools import partial
from typing import Final

import structlog

from sallyport.areas.factors.pauses import repo
from sallyport.areas.factors.pauses.repo import Pause, PauseReason, Person
from sallyport.base.clock import Clock, iso, now_us
from sallyport.base.text import fold_name
from sallyport.base.wire import JSON
from sallyport.metrics import PauseMetrics
from sallyport.nodes.periodic import every
from sallyport.store import audit
from sallyport.store.model import Store, Tx

PURGE_S: Final = 300.0

log = structlog.get_logger()


class Pauses:
    """The pauses of all domains. Call `run` on one node: it deletes ended pauses."""

    def __init__(self, store: Store, metrics: PauseMetrics, clock: Clock = now_us) -> None:
        self._store = store
        self._metrics = metrics
        self._clock = clock

    # --- for the login path -----------------------------------------------------------------------------------

    def find(self, tx: Tx, person: Person) -> Pause | None:
        """Return a person's row, or None. See `is_paused`."""
        return repo.read(tx, person)

    async def read(self, person: Person) -> Pause | None:
        """Return a person's row, or None. See `is_paused`. Raises StoreError."""
        return await self._store.read(partial(repo.read, person=person))

    def is_paused(self, pause: Pause | None) -> bool:
        """Return whether the person gets no prompt now."""
        return pause is not None and pause.until > self._clock()

    async def count_unanswered(self, person: Person, name: str) -> None:
        """Count a prompt that a person has not answered. Raises StoreError, and NotFound if the domain was removed."""
        now = self._clock()
        self.report(await self._store.write(lambda tx: self.count(tx, person, name)), now)

    def count(self, tx: Tx, person: Person, name: str) -> Pause:
        """Count a prompt that a person has not answered, in a transaction of the caller. After the commit, the caller
        calls `report`. Raises NotFound if the domain was removed."""
        audit.tenant_of(tx, person[0])
        return repo.count_unanswered(tx, person, name, self._clock())

    def report(self, found: Pause, now: int) -> None:
        """Report a pause that has begun with a prompt without an answer. now: the time of the prompt's end, in
        microseconds."""
        if found.at == now and found.reason == PauseReason.UNANSWERED and found.until == now + repo.PAUSE_US:
            self._metrics.paused(PauseReason.UNANSWERED.name.lower())
            log.warning(
                "mfa_prompts_unanswered", domain_id=found.domain_id, user=found.user_name, unanswered=found.unanswered,
                until=iso(found.until),
            )  # fmt: skip

    async def answered(self, person: Person) -> None:
        """Forget the prompts that a person has not answered, because the person has approved one. Raises StoreError."""
        await self._store.write(partial(self.forget_unanswered, person=person))

    def forget_unanswered(self, tx: Tx, person: Person) -> None:
        """Forget the prompts that a person has not answered, in a transaction of the caller."""
        repo.answered(tx, person)

    def begin(self, tx: Tx, person: Person, name: str) -> bool:
        """Begin a pause, because a person has denied a login. Return False if such a pause has not ended yet."""
        begun = repo.begin(tx, person, name, self._clock())
        if begun:
            self._metrics.paused(PauseReason.NOT_ME.name.lower())
        return begun

    # --- for admins -------------------------------------------------------------------------------------------

    async def page(self, domain_id: int, search: str, *, offset: int, limit: int) -> tuple[list[Pause], int]:
        """Return one page of a domain's current pauses, ordered by user, and the number of all matches. search: a part
        of the name, or empty. Raises StoreError."""
        now = self._clock()
        return await self._store.search(lambda tx: repo.page(tx, domain_id, now, search, offset=offset, limit=limit))

    async def end(self, domain_id: int, name: str) -> Pause | None:
        """End a user's pause, and return it. Return None if the user had none. Raises StoreError, and NotFound if the
        domain was removed."""
        now, person = self._clock(), (domain_id, fold_name(name))

        def transaction(tx: Tx) -> Pause | None:
            audit.tenant_of(tx, domain_id)
            found = repo.delete(tx, person)
            if found is None or found.until <= now:
                return None
            changes: dict[str, JSON] = {"until": [iso(found.until), None], "reason": [found.reason, None]}
            audit.record_in(tx, "user.prompts_resumed", domain_id, f"user {found.user_name}", changes, at=now)
            return found

        return await self._store.write(transaction)

    def forget(self, tx: Tx, person: Person) -> None:
        """Delete the pause of an unlocked user."""
        repo.delete(tx, person)

    # --- over time --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Delete ended pauses, until cancelled."""
        await every(PURGE_S, self.purge, failure="prompt_pause_purge_failed")

    async def purge(self) -> None:
        """Delete the rows that are forgotten. Raises StoreError."""
        await self._store.write(partial(repo.purge, now=self._clock()))
