"""Switching a domain between monitoring and enforcing, with its consequences known."""

from dataclasses import dataclass

import structlog

from sallyport.base.errors import StoreError
from sallyport.domains.domain import Domain, Fallback, Mode
from sallyport.domains.impact import Foresight, Impact, NotClean
from sallyport.domains.service import Domains

NOT_FORESEEN = "what enforcing does to this domain could not be told: ask for its preview"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Switch:
    """What is asked for. mode None: the one that is there is confirmed."""

    mode: Mode | None
    fallback: Fallback | None = None
    require_clean: bool = False
    revert_after_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Switched:
    """What is now stored. impact: of enforcing, where the domain was switched to it and it could be told."""

    domain: Domain
    impact: Impact | None
    warnings: list[str]


class Enforcement:
    """Switches domains."""

    def __init__(self, domains: Domains, foresight: Foresight) -> None:
        self._domains = domains
        self._foresight = foresight

    async def switch(self, domain_id: int, switch: Switch) -> Switched:
        """Switch one domain; it holds for the next request. NotClean: it would deny somebody; nothing was switched.

        Where nothing depends on it, the impact is found out afterwards, since an admin who enforces wants that first.
        """
        enforces = switch.mode is Mode.ENFORCE
        impact = None
        if enforces and switch.require_clean:
            impact = await self._foresight.impact(domain_id, fallback=switch.fallback)
            if impact.counts.denied:
                raise NotClean(impact)
        await self._domains.set_mode(
            [domain_id], switch.mode, switch.fallback, revert_after_minutes=switch.revert_after_minutes
        )
        domain, warnings = self._domains.table.by_id[domain_id], self._domains.warnings(domain_id)
        if enforces and impact is None:
            try:
                impact = await self._foresight.impact(domain_id)
            except StoreError as error:
                log.warning("the impact of enforcing could not be told", domain=domain_id, error=str(error))
                warnings.append(NOT_FORESEEN)
        return Switched(domain, impact, warnings)
