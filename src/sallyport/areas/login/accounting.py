"""Write accounting records and their totals to the store, in the caller's transaction."""

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import Final, Protocol

from sallyport.areas.devices.device import Device
from sallyport.areas.events.repo import ACCOUNTING_COUNTER
from sallyport.areas.sessions.report import Report
from sallyport.areas.sessions.service import Record, write_records
from sallyport.radius.attributes import ACCT_SESSION_ID
from sallyport.radius.packet import Request
from sallyport.store import counters
from sallyport.store.model import NewRows, Tx, Value

COLUMNS: Final = (
    "at", "domain_id", "device_id", "status_type", "session_id", "user_name", "station", "attributes",
)  # fmt: skip


class Accounted(Protocol):
    """An accounting record to store.

    at: the time of arrival, in microseconds. domain_id: the id of the record's domain, or 0 if the record has no
    domain.
    """

    @property
    def request(self) -> Request: ...
    @property
    def report(self) -> Report: ...
    @property
    def device(self) -> Device: ...
    @property
    def domain_id(self) -> int: ...
    @property
    def at(self) -> int: ...


def write_accounting(tx: Tx, records: Sequence[Accounted]) -> Counter[int]:
    """Write the records, and update the sessions and totals. A record that the store already has is ignored. Return how
    many records were stored, by Acct-Status-Type."""
    fresh = write_records(tx, [Record(each.domain_id, each.device.id or 0, each.report) for each in records])
    kept = list(compress(records, fresh))
    totals = Counter((each.domain_id, ACCOUNTING_COUNTER) for each in kept)
    tx.insert_all([NewRows("accounting_records", COLUMNS, [*map(_row, kept)]), counters.shared(tx, totals)])
    return Counter(each.report.status for each in kept)


def attributes_of(record: Accounted) -> bytes:
    """Return the encoded attributes of the record's request, unchanged."""
    return record.request.data[20:]


def _row(record: Accounted) -> tuple[Value, ...]:
    report = record.report
    return (
        record.at,
        record.domain_id,
        record.device.id or 0,
        report.status,
        record.request.first.get(ACCT_SESSION_ID, b""),
        report.user,
        report.station,
        attributes_of(record),
    )
