"""The service that reads events in pages, and the cursors between pages."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from sallyport.areas.events import repo
from sallyport.areas.events.event import FOREVER, DomainEvent, EventQuery, EventRow, ExportQuery
from sallyport.areas.events.hours import Hours
from sallyport.areas.events.repo import EVENTS
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import invalid_field
from sallyport.nodes.service import Cluster
from sallyport.store.model import Store, Work

OWN_US: Final = 30 * 86_400 * SECOND
OWN_LOGINS: Final = 200
"""Maximum number of logins that are read for a user."""

T = TypeVar("T")


class Events:
    """The service that reads events. cluster: the cluster, which has the names of the nodes. hours: the number of
    logins in each hour."""

    def __init__(self, store: Store, cluster: Cluster | None = None, clock: Clock = now_us) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self.hours = Hours(store, clock)

    async def nodes(self) -> dict[int, str]:
        """Return the names of the nodes by their ids."""
        cluster = self._cluster
        if cluster is None or not cluster.is_shared:
            return {0: "" if cluster is None else cluster.name}
        return {each.id: each.name for each in await cluster.everyone()}

    async def first_used(self, domain_ids: Sequence[int]) -> int:
        """Return the first domain that has a login, or 0 if there is none."""
        return await self._store.read_now(lambda tx: next((each for each in domain_ids if repo.has_login(tx, each)), 0))

    async def page(self, query: EventQuery) -> tuple[list[EventRow], int]:
        """Return one page of a domain's events, newest first, and the number of all matches."""
        return await self._look(query)(lambda tx: repo.page(tx, query))

    async def walk(self, query: EventQuery, *, counts: bool = True) -> tuple[list[EventRow], str, int]:
        """Return one page, the cursor of the next page, and the number of all matches. On the last page, the cursor is
        empty.

        counts: whether to count all matches. If it is false, the number is the number of events on the page.
        """
        if counts:
            rows, total = await self.page(_one_more(query))
            return *_cut(rows, query.limit), total
        more = _one_more(query)
        page, cursor = _cut(await self._look(more)(lambda tx: repo.newest(tx, more)), query.limit)
        return page, cursor, len(page)

    async def of_user(self, domain_id: int, user: str) -> list[EventRow]:
        """Return the last logins of a user within 30 days, newest first."""
        query = EventQuery(domain_id, user=user, since=self._clock() - OWN_US, limit=OWN_LOGINS)
        return await self._store.search(lambda tx: repo.newest(tx, query))

    def _look(self, query: EventQuery) -> Callable[[Work[T]], Awaitable[T]]:
        """Return the method of the store for a query."""
        return self._store.read_now if repo.is_short(query) else self._store.search

    async def after(self, last_id: int, limit: int) -> tuple[list[DomainEvent], int]:
        """Return the newest events of all domains since an event, oldest first. Also return an id: up to this id, no
        event can appear any more. The events of other nodes are included."""
        newest = await self.last_id()
        if newest <= last_id:
            return [], last_id
        return await self._store.read(lambda tx: repo.after(tx, last_id, newest, limit)), newest

    async def last_id(self) -> int:
        """Return the id of the newest event. An export contains the events up to this id."""
        return await self._store.settled(EVENTS.name)

    async def oldest(self, stretch: ExportQuery) -> tuple[list[EventRow], str]:
        """Return one page of a domain's events, oldest first, and the cursor of the next page. On the last page the
        cursor is empty."""
        wanted = replace(stretch, limit=stretch.limit + 1)
        return _cut(await self._store.search(lambda tx: repo.oldest(tx, wanted)), stretch.limit)


def _one_more(query: EventQuery) -> EventQuery:
    """Return the query with a limit that is one row higher. If the additional row exists, there is another page."""
    return replace(query, limit=query.limit + 1)


def _cut(rows: list[EventRow], limit: int) -> tuple[list[EventRow], str]:
    page = rows[:limit]
    return page, cursor_after(page) if len(rows) > limit else ""


def cursor_after(rows: Sequence[EventRow]) -> str:
    """Return the cursor for the page after these rows, or an empty string if there are no rows."""
    return f"{rows[-1].at}.{rows[-1].id}" if rows else ""


def parse_cursor(cursor: str) -> tuple[int, int] | None:
    """Return the time and the id in a cursor, or None for an empty string. Raises Invalid."""
    if not cursor:
        return None
    at, _, event_id = cursor.partition(".")
    if not all(part.isdecimal() and len(part) < 20 and int(part) <= FOREVER for part in (at, event_id)):
        raise invalid_field("cursor", "must be the cursor of an earlier answer of this operation")
    return int(at), int(event_id)
