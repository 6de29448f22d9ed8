"""The openings of step-ups: a person has few open ones, and gets none during a pause of prompts."""

from sallyport.areas.factors.pauses.repo import Pause
from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.factors.stepup import repo
from sallyport.areas.factors.stepup.stepup import MAX_OPEN, StepUp
from sallyport.base.clock import Clock, iso_seconds
from sallyport.base.text import fold_name
from sallyport.store.model import Store, Tx


class Openings:
    """Opens step-ups.

    After "not me", an attacker with the password must not get the next page at once. A page that a browser has opened
    without a proof counts as a prompt without an answer.
    """

    def __init__(self, store: Store, pauses: Pauses, clock: Clock) -> None:
        self._store = store
        self._pauses = pauses
        self._clock = clock

    async def open(self, new: StepUp) -> bool:
        """Store a step-up, unless it was stored before. Return False if the person may open no other one now. Raises
        StoreError."""
        now, person = self._clock(), (new.domain_id, fold_name(new.user_name))

        def transaction(tx: Tx) -> tuple[bool, Pause | None]:
            counted = None
            if repo.find(tx, new.id) is not None:
                return True, counted
            for _ in range(repo.end_unanswered(tx, new.domain_id, new.user_key, now)):
                counted = self._pauses.count(tx, person, new.user_name)
            if self._pauses.is_paused(self._pauses.find(tx, person)):
                return False, counted
            if _number_of_open(tx, new, now) >= MAX_OPEN:
                return False, counted
            repo.add(tx, new)
            return True, counted

        is_open, counted = await self._store.write(transaction)
        if counted is not None:
            self._pauses.report(counted, now)
        return is_open

    async def paused(self, domain_id: int, user: str) -> str:
        """Return until when a person gets no page, and why. Return an empty text without a pause. Raises StoreError."""
        pause = await self._pauses.read((domain_id, fold_name(user)))
        if pause is None or not self._pauses.is_paused(pause):
            return ""
        return f"no page until {iso_seconds(pause.until)}: {pause.reason}"

    async def use(self, stepup_id: str) -> bool:
        """Mark a proof as used by its login, and forget the pages without a proof. Return whether it is used now.
        Raises StoreError."""

        def transaction(tx: Tx) -> bool:
            found = repo.find(tx, stepup_id) if repo.use(tx, stepup_id) else None
            if found is not None:
                self._pauses.forget_unanswered(tx, (found.domain_id, fold_name(found.user_name)))
            return found is not None

        return await self._store.write(transaction)


def _number_of_open(tx: Tx, new: StepUp, now: int) -> int:
    """Return the number of open step-ups that count for a new one: those of the person. Without a
    checked password they are those from the same station, so that other people cannot use up the limit."""
    if new.is_checked:
        return repo.number_of_open(tx, new.domain_id, new.user_key, now)
    return repo.number_of_open_at(tx, new, now)
