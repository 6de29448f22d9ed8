"""What the command line asks: domain.preview."""

from collections.abc import Callable

from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON
from sallyport.domains.impact import DEFAULT_DAYS, Foresight
from sallyport.preview.model import Days


class PreviewDomain(Arguments):
    """domain: a name or an id. days: whose logins are looked at."""

    domain: str
    days: Days = DEFAULT_DAYS


def commands(service: Foresight, find_domain: Callable[[str], int]) -> dict[str, Command]:
    """The commands of this slice by name. find_domain: a domain's name or id to its id (NotFound)."""

    async def preview(wanted: PreviewDomain) -> JSON:
        impact = await service.impact(find_domain(wanted.domain), days=wanted.days)
        told: dict[str, JSON] = impact.model_dump(mode="json", by_alias=True)
        return told

    return {"domain.preview": command(PreviewDomain, preview)}
