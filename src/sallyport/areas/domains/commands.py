"""The commands of domains: domain.break_glass, domain.restore, domain.erase."""

from collections.abc import Sequence

from sallyport.areas.domains.bodies import AnyFallback
from sallyport.areas.domains.operations import entry
from sallyport.areas.domains.removal import Removal
from sallyport.areas.domains.service import Domains
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, Command, command


class BreakGlass(Arguments):
    """Request body of the command `domain.break_glass`. fallback: the new fallback of every domain; None keeps the
    fallbacks."""

    fallback: AnyFallback | None = None


def commands(service: Domains, removal: Removal) -> dict[str, Command]:
    """Return the commands of domains by name."""

    async def break_glass(wanted: BreakGlass) -> JSON:
        return switched(await service.break_glass(wanted.fallback))

    async def restore(_: Arguments) -> JSON:
        return switched(await service.restore())

    async def erase(_: Arguments) -> JSON:
        return {"done": await removal.finish()}

    def switched(domain_ids: Sequence[int]) -> JSON:
        table = service.table.by_id
        domains = [
            table[domain_id] for domain_id in domain_ids if domain_id in table
        ]  # other domains were removed in the meantime
        warnings = [text for domain in domains for text in service.warnings(domain.id)]
        return {
            "domains": [entry(domain, service) for domain in domains],
            "warnings": list(dict.fromkeys(warnings)),
        }

    return {
        "domain.break_glass": command(BreakGlass, break_glass),
        "domain.restore": command(Arguments, restore),
        "domain.erase": command(Arguments, erase),
    }
