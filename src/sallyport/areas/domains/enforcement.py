"""Switch a domain between monitoring and enforcing, show the impact on logins, and revert unconfirmed changes.

The time of a revert is in the store, so that it survives a restart. While the process runs, it measures the time with
the monotonic clock. So a change of the wall clock does not move a revert. After a restart, the process knows only the
wall clock. Even then, it reverts a change at the latest when the full duration of the change has passed since the
restart.

If there are several nodes, each node measures the time by its own clock, and the node with the lease reverts the
changes. A change that an admin has confirmed is never reverted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
import trio

from sallyport.areas.domains.bodies import Impact, Survey
from sallyport.areas.domains.domain import Domain, Effect, Fallback, Mode
from sallyport.areas.domains.service import Domains
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Conflict, StoreError
from sallyport.base.text import counted
from sallyport.nodes.periodic import every
from sallyport.nodes.service import Cluster

LOOK_S: Final = 1.0
DEFAULT_DAYS: Final = 30
MAX_DAYS: Final = 365
IMPACT_UNKNOWN: Final = "the impact of enforcing could not be computed: request the domain's preview"

log = structlog.get_logger()


class ImpactPreview(Protocol):
    """The service that computes the impact of enforcing."""

    async def impact(self, domain_id: int, *, days: int = DEFAULT_DAYS, fallback: str | None = None) -> Impact:
        """Return the impact of enforcing on the logins of the last `days` days.

        fallback: the fallback to assume instead of the domain's own. Raises StoreError if the computation takes too
        long.
        """

    async def survey(self, domain_id: int, *, days: int = DEFAULT_DAYS, again: bool = False) -> Survey:
        """Ask the provider, for several seconds, whether users with recent logins are enrolled.

        again: True to ask about all users; False to ask only about users with an unknown enrolment. Raises StoreError
        if the search for the users takes too long.
        """


class ProviderState(Protocol):
    """The result of a check of an MFA provider."""

    @property
    def provider(self) -> str:
        """The name of the provider."""

    @property
    def problem(self) -> str:
        """The provider's error and its remedy, or an empty string if the provider works."""


class ProviderChecks(Protocol):
    """The service that checks the MFA providers of domains."""

    def has(self, domain_id: int) -> bool:
        """Return whether a domain has a default MFA provider."""

    async def check_all(self, domain_id: int) -> Sequence[ProviderState]:
        """Check whether the MFA providers of a domain work: the default one, and those beside it."""


class ProviderFails(Conflict):
    """A switch with requireClean failed because the MFA provider does not work, or because the domain has no MFA
    provider."""


class NotClean(Conflict):
    """A switch with requireClean failed because it would deny logins, or because an enrolment is unknown."""

    def __init__(self, impact: Impact) -> None:
        counts = impact.counts
        denied = counted(counts.denied, "user or device", "users or devices")
        parts = [f"enforcing would deny {denied}"] if counts.denied else []
        if counts.users.unknown:
            parts.append(f"the enrolment of {counted(counts.users.unknown, 'user', 'users')} is unknown")
        super().__init__("; ".join(parts))
        users = [each for each in impact.users if each.outcome in (Effect.REJECT, Effect.UNKNOWN) and not each.gone]
        devices = [each for each in impact.devices if each.outcome is Effect.REJECT]
        self.details = {
            "users": [each.model_dump(mode="json") for each in users],
            "devices": [each.model_dump(mode="json") for each in devices],
        }


@dataclass(frozen=True, slots=True)
class Switch:
    """A requested change of a domain's mode.

    mode: the new mode; None confirms the current mode. require_clean: whether to refuse the switch if enforcing would
    deny a login. accept_unknown: whether to allow the switch while the enrolment of some users is unknown.
    """

    mode: Mode | None
    fallback: Fallback | None = None
    require_clean: bool = False
    accept_unknown: bool = False
    revert_after_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Switched:
    """The stored state after a switch.

    impact: the impact of a switch to enforce. None for other changes, or if the impact could not be computed.
    """

    domain: Domain
    impact: Impact | None
    warnings: list[str]


class Enforcement:
    """The service that switches the modes of domains."""

    def __init__(self, domains: Domains, previews: ImpactPreview, providers: ProviderChecks) -> None:
        self._domains = domains
        self._previews = previews
        self._providers = providers

    async def switch(self, domain_id: int, switch: Switch) -> Switched:
        """Switch a domain from the next request on.

        With `require_clean`, the impact is computed first. Raises ProviderFails or NotClean if enforcing would deny
        logins; the mode then stays unchanged. Without `require_clean`, the domain is switched first, and then the
        impact is computed.
        """
        enforces = switch.mode is Mode.ENFORCE
        impact = None
        if enforces and switch.require_clean:
            impact = await self._clean_impact(domain_id, switch)
        await self._domains.set_mode(
            [domain_id], switch.mode, switch.fallback, revert_after_minutes=switch.revert_after_minutes
        )
        domain = await self._domains.changed(domain_id)
        warnings = self._domains.warnings(domain)
        if enforces and impact is None:
            try:
                impact = await self._previews.impact(domain_id)
            except StoreError as error:
                log.warning("enforcement_impact_unknown", domain=domain_id, error=str(error))
                warnings.append(IMPACT_UNKNOWN)
        return Switched(domain, impact, warnings)

    async def _clean_impact(self, domain_id: int, switch: Switch) -> Impact:
        """Return the impact of enforcing. Raises ProviderFails, NotClean or StoreError if the switch must not be
        made."""
        checked = await self._providers.check_all(domain_id)
        for each in checked:
            if each.problem:
                raise ProviderFails(f"the MFA provider {each.provider} does not work: {each.problem}")
        if checked:
            await self._previews.survey(domain_id)
        impact = await self._previews.impact(domain_id, fallback=switch.fallback)
        if impact.counts.denied or (impact.counts.users.unknown and not switch.accept_unknown):
            raise NotClean(impact)
        fallback = switch.fallback or self._domains.table.present(domain_id).fallback
        if not self._providers.has(domain_id) and fallback is Fallback.DENY:
            raise ProviderFails("the domain has no MFA provider: set one first")
        return impact


class Reverts:
    """The service that reverts a change of a mode if no admin has confirmed the change in time.

    clock: the wall clock. monotonic: the monotonic clock, in seconds.
    """

    def __init__(
        self,
        domains: Domains,
        cluster: Cluster,
        clock: Clock = now_us,
        monotonic: Callable[[], float] = trio.current_time,
    ) -> None:
        self._domains = domains
        self._cluster = cluster
        self._clock = clock
        self._monotonic = monotonic
        self._due: dict[tuple[int, int], float] = {}  # by domain and deadline in the store

    async def run(self) -> None:
        """Revert each unconfirmed change of a mode at its time, until cancelled."""
        await every(LOOK_S, self._look, failure="domain_mode_revert_failed")

    async def _look(self) -> None:
        due = self._overdue()
        if self._cluster.leads:
            await self._revert(due)

    async def revert_due(self) -> int:
        """Revert the unconfirmed changes that have reached their time limit. Return the number of reverted changes.
        Raises StoreError."""
        return await self._revert(self._overdue())

    async def _revert(self, due: Sequence[tuple[int, int]]) -> int:
        return sum([await self._domains.revert(*key) for key in due])

    def _overdue(self) -> list[tuple[int, int]]:
        now = self._monotonic()
        waiting = [each for each in self._domains.table.by_id.values() if each.reverts_at is not None]
        self._due = {_key(domain): self._due.get(_key(domain), now + self._left_s(domain)) for domain in waiting}
        return [key for key, deadline in self._due.items() if deadline <= now]

    def _left_s(self, domain: Domain) -> float:
        """Return the seconds until a revert is due. The result is never longer than the full duration of the change,
        even if the wall clock was set back.

        The caller uses the result to set a deadline on the monotonic clock of this process.
        """
        reverts_at, set_at = domain.reverts_at or 0, domain.revert_set_at or 0
        return max(0, min(reverts_at - self._clock(), reverts_at - set_at)) / SECOND


def _key(domain: Domain) -> tuple[int, int]:
    return domain.id, domain.reverts_at or 0
