"""What the command line asks: login.report."""

from pydantic import Field

from sallyport.base.clock import SECOND, Clock, iso
from sallyport.base.command import JSON, Arguments, Command, command
from sallyport.login.service import Events


class Report(Arguments):
    """The monitoring report of a domain over the last days."""

    domain_id: int
    days: int = Field(default=30, ge=1, le=36500)


def commands(service: Events, clock: Clock) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def report(wanted: Report) -> JSON:
        rows = await service.outcomes(wanted.domain_id, clock() - wanted.days * 86_400 * SECOND)
        return [
            {
                "user": row.user_name,
                "method": row.method,
                "applied": row.applied_decision,
                "would_have_been": row.would_have_been,
                "reason": row.reason,
                "logins": row.logins,
                "last": iso(row.last_at),
            }
            for row in rows
        ]

    return {"login.report": command(Report, report)}
