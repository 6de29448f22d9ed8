"""Devices and accounting sessions in the store."""

from sallyport.areas.clients.client import Client
from sallyport.areas.devices.sightings import write_first_sightings
from sallyport.areas.sessions.service import Record, write_records
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.areas.sessions.records import report
from tests.packets import access_request, attributes, opened

START, STOP, INTERIM = 1, 2, 3
Device = tuple[int, int]
"""The domain and the ID of a device."""


async def device(areas: Areas, client: Client, source: str, *, domain: int = 0, **names: bytes) -> Device:
    """Add a device that has sent a request, and return it. names: the attributes of the request, such as
    NAS_IDENTIFIER=b"ap-1".
    """
    request = opened(access_request(attributes(**names)))
    place = domain or areas.domain
    seen = areas.devices.sightings.device(request, source, client, place, areas.clock())
    await areas.store.write(lambda tx: write_first_sightings(tx, [(seen, None)]))
    assert seen.id is not None
    return place, seen.id


async def session(
    areas: Areas, of: Device, name: str, status: int = START, *, after_s: float = 0, **facts: bytes | int | str
) -> int:
    """Add a session with an accounting record, and return its ID."""
    record = Record(*of, report(status, after_s, name.encode(), **facts))
    await areas.store.write(lambda tx: write_records(tx, [record]))
    sql = "select max(id) from sessions where device_id = :d and acct_session_id = :s and newest = 1"

    def find(tx: Tx) -> int | None:
        return tx.value(int, sql, d=of[1], s=name.encode())

    found = await areas.store.read(find)
    assert found is not None
    return found


async def trail(areas: Areas) -> list[tuple[str, str, str]]:
    """Return the entries about sessions in the audit trail, each as (action, target, changes as JSON)."""

    def read(tx: Tx) -> list[tuple[str, str, str]]:
        sql = "select action, target, changes from audit_trail where action like 'session.%' order by id"
        return [(str(a), str(b), str(c)) for a, b, c in tx.rows(sql)]

    return await areas.store.read(read)
