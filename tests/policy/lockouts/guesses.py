"""Logins that fail, and their traces in the service."""

from itertools import count

from sallyport.audit.repo import AuditQuery, AuditRow
from sallyport.login.login import Decision, Reason, Verdict
from tests.areas import Areas
from tests.login.conftest import Desk, unproven
from tests.packets import attributes, pap

PHONE = attributes(CALLING_STATION_ID=b"02-00-00-00-00-01", NAS_IDENTIFIER=b"switch-1")
TABLET = attributes(CALLING_STATION_ID=b"02-00-00-00-00-02", NAS_IDENTIFIER=b"switch-1")
LOCKED = Reason.LOCKED_OUT
WRONG = Reason.WRONG_PASSWORD

numbers = count()


def guess() -> str:
    """Return a wrong password that was not tried yet."""
    return f"wrong {next(numbers)}"


async def log_in(
    desk: Desk,
    user: str = "ann",
    password: str = "wrong",  # noqa: S107
    body: bytes = b"",
    *,
    signed: bool = True,
) -> Reason:
    """A login that is decided and written: why it is refused; NONE for an accept."""
    login = desk.login(pap(user, password, body, identifier=next(numbers) & 0xFF, signed=signed))
    login.decision = await desk.decide(login)
    if signed:
        desk.areas.pipeline.note(login)
    else:
        unproven(login)
    desk.areas.journal.add(login)
    desk.areas.journal.flush()
    await desk.areas.journal.drained()
    return why(login.decision)


def why(decision: Decision | None) -> Reason:
    """Why a login is refused; NONE for an accept."""
    assert decision is not None
    return Reason.NONE if decision.applied is Verdict.ACCEPT else decision.reason


async def fail(desk: Desk, times: int, user: str = "ann", body: bytes = b"", *, signed: bool = True) -> list[Reason]:
    """Logins with a wrong password."""
    return [await log_in(desk, user, guess(), body, signed=signed) for _ in range(times)]


async def stored(areas: Areas, domain: int = 0) -> list[tuple[str, str, int]]:
    """Return the locked names in the store: kind, name, failures."""
    rows, total = await areas.lockouts.page(domain or areas.domain, offset=0, limit=100)
    assert len(rows) == total
    return [(row.kind, row.name, row.failures) for row in rows]


async def trail(areas: Areas) -> list[AuditRow]:
    """What the audit trail has of lock-outs, oldest first."""
    rows, _ = await areas.audit.page(AuditQuery(search="locked", limit=100))
    return rows[::-1]
