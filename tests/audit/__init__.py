"""Tests of the audit trail: the entries of each area's changes, reading, and retention."""

import json
from dataclasses import replace

from sallyport.audit.repo import AuditQuery, AuditRow
from tests.areas import Areas

Told = tuple[str, str, dict[str, object]]
"""Action, target and changes of an entry."""


async def trail(areas: Areas, query: AuditQuery | None = None) -> list[AuditRow]:
    """All entries that match, oldest first."""
    rows = await areas.audit.newest(replace(query or AuditQuery(), limit=100_000))
    return rows[::-1]


class Since:
    """The entries added since the last look."""

    def __init__(self, areas: Areas) -> None:
        self._areas = areas
        self._last = 0

    async def rows(self) -> list[AuditRow]:
        """The entries since the last look."""
        rows = [row for row in await trail(self._areas) if row.id > self._last]
        self._last = max([self._last, *(row.id for row in rows)])
        return rows

    async def told(self) -> list[Told]:
        """What they say."""
        return [(row.action, row.target, json.loads(row.changes)) for row in await self.rows()]
