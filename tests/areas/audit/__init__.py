"""Tests of the audit trail: the entries for changes in each area, reading, and retention."""

import json
from dataclasses import replace

from sallyport.areas.audit.repo import AuditQuery, AuditRow
from tests.areas import Areas

Summary = tuple[str, str, dict[str, object]]
"""The action, target and changes of an entry."""


async def trail(areas: Areas, query: AuditQuery | None = None) -> list[AuditRow]:
    """Return all matching entries, oldest first."""
    rows = await areas.audit.newest(replace(query or AuditQuery(), limit=100_000))
    return rows[::-1]


class NewEntries:
    """The entries that were added since the last call of rows() or summaries()."""

    def __init__(self, areas: Areas) -> None:
        self._areas = areas
        self._last = 0

    async def rows(self) -> list[AuditRow]:
        """Return the entries since the last call."""
        rows = [row for row in await trail(self._areas) if row.id > self._last]
        self._last = max([self._last, *(row.id for row in rows)])
        return rows

    async def summaries(self) -> list[Summary]:
        """Return action, target and changes of the entries since the last call."""
        return [(row.action, row.target, json.loads(row.changes)) for row in await self.rows()]
