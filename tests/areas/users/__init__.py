"""Tests of sallyport.areas.users."""

import json
from dataclasses import dataclass

from tests.areas import Areas


@dataclass(frozen=True)
class Entry:
    """An entry of the audit trail."""

    action: str
    target: str
    changes: dict[str, object]


async def trail(areas: Areas) -> list[Entry]:
    """Return the audit trail of the domain, oldest entry first."""

    def entry(*, action: str, target: str, changes: str) -> Entry:
        return Entry(action, target, json.loads(changes))

    sql = "select action, target, changes from audit_trail where domain_id = :d order by id"
    return await areas.store.read(lambda tx: tx.all(entry, sql, d=areas.domain))
