"""Failed logins, and their traces in the service."""

from itertools import count

from sallyport.areas.audit.repo import AuditQuery, AuditRow
from sallyport.areas.login.login import Answer, Decision, Reason, Verdict
from tests.areas import Areas
from tests.areas.login.conftest import FakeListener, unproven
from tests.packets import attributes, pap

PHONE = attributes(CALLING_STATION_ID=b"02-00-00-00-00-01", NAS_IDENTIFIER=b"switch-1")
TABLET = attributes(CALLING_STATION_ID=b"02-00-00-00-00-02", NAS_IDENTIFIER=b"switch-1")
LOCKED = Reason.LOCKED_OUT
STATION_LOCKED = Reason.STATION_LOCKED_OUT
WRONG = Reason.WRONG_PASSWORD

numbers = count()


def guess() -> str:
    """Return a wrong password that was not tried yet."""
    return f"wrong {next(numbers)}"


async def log_in(
    listener: FakeListener,
    user: str = "ann",
    password: str = "wrong",  # noqa: S107
    body: bytes = b"",
    *,
    signed: bool = True,
) -> Reason:
    """Decide and write a login. Return the reason of its rejection, or NONE if it was accepted."""
    login = listener.login(pap(user, password, body, identifier=next(numbers) & 0xFF, signed=signed))
    decision = await listener.decide(login)
    login.answer = Answer(decision)
    if signed:
        listener.areas.pipeline.note(login)
    else:
        unproven(login)
    listener.areas.journal.add(login)
    listener.areas.journal.flush()
    await listener.areas.journal.drained()
    return why(decision)


def why(decision: Decision | None) -> Reason:
    """Return the reason of a rejection, or NONE for an accept."""
    assert decision is not None
    return Reason.NONE if decision.applied is Verdict.ACCEPT else decision.reason


async def fail(
    listener: FakeListener, times: int, user: str = "ann", body: bytes = b"", *, signed: bool = True
) -> list[Reason]:
    """Log in with wrong passwords. Return the reason of each login."""
    return [await log_in(listener, user, guess(), body, signed=signed) for _ in range(times)]


async def stored(areas: Areas, domain: int = 0) -> list[tuple[str, str, int]]:
    """Return the kind, the name and the number of failures of each locked name in the store."""
    rows, total = await areas.lockouts.page(domain or areas.domain, "", offset=0, limit=100)
    assert len(rows) == total
    return [(row.kind, row.name, row.failures) for row in rows]


async def trail(areas: Areas) -> list[AuditRow]:
    """Return the entries of the audit trail about lock-outs, oldest first."""
    rows, _ = await areas.audit.page(AuditQuery(search="locked", limit=100))
    return rows[::-1]
