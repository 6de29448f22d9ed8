"""The rules of events: who reads them, and how pages of them are named."""

from sallyport.base.errors import Invalid
from sallyport.login import repo
from sallyport.login.repo import EventQuery, EventRow, Outcome
from sallyport.store.model import Store


class Events:
    """What was decided, for those who look."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, query: EventQuery) -> tuple[list[EventRow], int]:
        """One page of a domain's events, newest first, and how many match in all."""
        return await self._store.read(lambda tx: repo.page(tx, query))

    async def outcomes(self, domain_id: int, since: int) -> list[Outcome]:
        """Logins by user and outcome since a time in microseconds."""
        return await self._store.read(lambda tx: repo.outcomes(tx, domain_id, since))


def cursor_after(rows: list[EventRow], limit: int) -> str:
    """Names the page behind these rows; empty where they are the last."""
    return f"{rows[-1].at}.{rows[-1].id}" if len(rows) == limit else ""


def parse_cursor(cursor: str) -> tuple[int, int] | None:
    """The place that a cursor names; None for an empty one. Invalid."""
    if not cursor:
        return None
    at, _, event_id = cursor.partition(".")
    if not (at.isdecimal() and event_id.isdecimal() and len(cursor) < 40):
        raise Invalid("invalid cursor")
    return int(at), int(event_id)
