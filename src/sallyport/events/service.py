"""The rules of events: who reads them, and how pages of them are named."""

from collections.abc import Sequence
from dataclasses import replace

from sallyport.base.errors import invalid_field
from sallyport.events import repo
from sallyport.events.repo import FOREVER, EventQuery, EventRow, Outcome, Stretch
from sallyport.store.model import Store


class Events:
    """What was decided, for those who look."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, query: EventQuery) -> tuple[list[EventRow], int]:
        """One page of a domain's events, newest first, and how many match in all."""
        return await self._store.search(lambda tx: repo.page(tx, query))

    async def walk(self, query: EventQuery) -> tuple[list[EventRow], str, int]:
        """`page`, and between the two the cursor that names the next one; empty on the last."""
        rows, total = await self.page(_one_more(query))
        return *_cut(rows, query.limit), total

    async def last_id(self) -> int:
        """The event that was written last: an export holds those that are there when it begins."""
        return await self._store.read(repo.last_id)

    async def oldest(self, stretch: Stretch) -> tuple[list[EventRow], str]:
        """One page of a domain's events, oldest first, and the cursor that names the next one; empty on the last."""
        wanted = replace(stretch, limit=stretch.limit + 1)
        return _cut(await self._store.search(lambda tx: repo.oldest(tx, wanted)), stretch.limit)

    async def outcomes(self, domain_id: int, since: int) -> list[Outcome]:
        """Logins by user and outcome since a time in microseconds."""
        return await self._store.search(lambda tx: repo.outcomes(tx, domain_id, since))


def _one_more(query: EventQuery) -> EventQuery:
    """The page and the row behind it, which tells whether there is another page."""
    return replace(query, limit=query.limit + 1)


def _cut(rows: list[EventRow], limit: int) -> tuple[list[EventRow], str]:
    page = rows[:limit]
    return page, cursor_after(page) if len(rows) > limit else ""


def cursor_after(rows: Sequence[EventRow]) -> str:
    """Names the place behind these rows; empty for none."""
    return f"{rows[-1].at}.{rows[-1].id}" if rows else ""


def parse_cursor(cursor: str) -> tuple[int, int] | None:
    """The place that a cursor names; None for an empty one. Invalid."""
    if not cursor:
        return None
    at, _, event_id = cursor.partition(".")
    if not all(part.isdecimal() and len(part) < 20 and int(part) <= FOREVER for part in (at, event_id)):
        raise invalid_field("cursor", "the cursor of an earlier answer")
    return int(at), int(event_id)
