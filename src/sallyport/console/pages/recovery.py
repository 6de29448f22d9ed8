"""Whether a factor that has failed answers again, for Home: a fact that is over is not shown as one of now."""

from collections.abc import Sequence
from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.login import Reason
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.pages import logins
from sallyport.console.table import LOGINS
from sallyport.console.visit import Visit

LATER: Final = 50
"""Number of the newest logins among which one is searched that shows that the factor answers again."""
FIRST: Final = frozenset(
    {Reason.FIRST_FACTOR_UNREACHABLE, Reason.FIRST_FACTOR_UNAVAILABLE, Reason.FIRST_FACTOR_UNREADABLE}
)
SECOND: Final = frozenset({Reason.UNREACHABLE, Reason.CIRCUIT_OPEN, Reason.RATE_LIMITED, Reason.UNREADABLE})
FAILING: Final = FIRST | SECOND
"""The reasons of logins that a provider, a directory or an upstream server has not decided."""
UNASKED: Final = frozenset(
    {
        *(Reason.LOCKED_OUT, Reason.STATION_LOCKED_OUT, Reason.NO_CREDENTIALS, Reason.METHOD_UNFIT),
        *(Reason.FIRST_FACTOR_CHANGED, Reason.TOO_MANY_PROMPTS, Reason.CHALLENGE_OVER, Reason.STOPPED),
        *(Reason.UNCHECKED_UNSIGNED, Reason.NOT_CONFIRMED),
    }
)
"""The reasons of logins that may have ended before the factor was asked."""


async def failed_until(visit: Visit, domain: Domain, reason: Reason) -> str:
    """Return the time of the last login that failed for this reason, if the factor has answered since then. Return an
    empty text if it may still fail. Raises Refused, StoreError."""
    failed = await logins.newest(visit, domain, reason=reason.value, pageSize=1)
    if not failed:
        return ""
    at = str(failed[0]["time"])
    body: dict[str, JSON] = {"from": at, "pageSize": LATER, "withTotal": False}
    later = await visit.call(LOGINS, body, domain=domain.id)
    if _answers(later["events"], reason) or (reason in SECOND and await _provider_worked(visit, domain, at)):
        return at
    return ""


def _answers(later: JSON, reason: Reason) -> bool:
    """Return whether the factor has answered in one of these logins."""
    rows: Sequence[JSON] = later if isinstance(later, list) else ()
    return any(isinstance(row, dict) and _answered(row, reason) for row in rows)


def _answered(row: Row, reason: Reason) -> bool:
    """Return whether the factor has answered in a login. The name of the factor does not show it, because a login has
    the name before the factor is asked."""
    if row["reason"] in FAILING | UNASKED:
        return False
    if reason in FIRST:
        return row["firstFactorMs"] is not None
    return "+" in str(row["factor"]) and row["secondFactorMs"] is not None


async def _provider_worked(visit: Visit, domain: Domain, at: str) -> bool:
    """Return whether the provider has worked after a time, such as in a check."""
    try:
        found = await visit.call("/ad/GetMFAProvider", domain=domain.id)
    except NotFound:
        return False
    return not found["failsSince"] and str(found["workedAt"]) > at
