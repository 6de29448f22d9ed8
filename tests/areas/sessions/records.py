"""Accounting-Requests as devices send them."""

from sallyport.areas.sessions.report import Report, Status
from sallyport.base.clock import SECOND
from sallyport.radius import attributes as names
from sallyport.radius.attributes import push_attribute
from tests.areas import SetClock
from tests.packets import accounting, opened

NOW = SetClock().now


def octets(status: int, session: bytes = b"s1", **values: bytes | int | str) -> bytes:
    """Return the attributes of a record, given by the names in sallyport.radius.attributes.

    A number is encoded in four octets.
    """
    body = push_attribute(names.ACCT_STATUS_TYPE, status.to_bytes(4)) + push_attribute(names.ACCT_SESSION_ID, session)
    for name, value in values.items():
        given = value.to_bytes(4) if isinstance(value, int) else value.encode() if isinstance(value, str) else value
        body += push_attribute(getattr(names, name), given)
    return body


def report(status: int, after_s: float = 0, session: bytes = b"s1", **values: bytes | int | str) -> Report:
    """Return the report of a record that is received `after_s` seconds after NOW."""
    return Report(opened(accounting(octets(status, session, **values))), NOW + int(after_s * SECOND))


def started(after_s: float = 0, **values: bytes | int | str) -> Report:
    """Return the report of a Start."""
    return report(Status.START, after_s, **values)


def interim(after_s: float, **values: bytes | int | str) -> Report:
    """Return the report of an interim record for a session that began at NOW. It contains Acct-Session-Time."""
    return report(Status.INTERIM, after_s, **{"ACCT_SESSION_TIME": int(after_s), **values})


def stopped(after_s: float, **values: bytes | int | str) -> Report:
    """Return the report of a Stop for a session that began at NOW. It contains Acct-Session-Time."""
    return report(Status.STOP, after_s, **{"ACCT_SESSION_TIME": int(after_s), **values})
