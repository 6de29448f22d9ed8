"""Tests of sallyport.endpoints."""

import json
from dataclasses import dataclass

from tests.areas import Areas


@dataclass(frozen=True)
class Entry:
    """What the audit trail says of a change."""

    action: str
    target: str
    changes: dict[str, object]


async def trail(areas: Areas) -> list[Entry]:
    """The audit trail of the domain, oldest first."""

    def entry(*, action: str, target: str, changes: str) -> Entry:
        return Entry(action, target, json.loads(changes))

    sql = "select action, target, changes from audit_trail where domain_id = :d order by id"
    return await areas.store.read(lambda tx: tx.all(entry, sql, d=areas.domain))
