"""The rules of domains."""

from collections.abc import Sequence

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import NotFound
from sallyport.domains import repo
from sallyport.domains.model import Domain, DomainTable, Fallback, FirstFactor, Mode
from sallyport.metrics import DomainMetrics
from sallyport.store.snapshot import Configuration

NO_PROVIDER = "this domain has no MFA provider: nobody is asked for a second factor"


class Domains:
    """Domains of all tenants; reading never waits, changing returns once it holds."""

    def __init__(self, configuration: Configuration, metrics: DomainMetrics, clock: Clock = now_us) -> None:
        self._configuration = configuration
        self._clock = clock
        self._table = configuration.hold(repo.load, DomainTable())
        metrics.watch(self._modes)

    @property
    def table(self) -> DomainTable:
        """All domains, as they are now."""
        return self._table.value

    def tenant_of(self, domain_id: int) -> int | None:
        """The tenant that a domain belongs to; None where there is no such domain."""
        domain = self.table.by_id.get(domain_id)
        return None if domain is None else domain.tenant_id

    def of_tenant(self, tenant_id: int) -> Sequence[Domain]:
        """A tenant's domains, ordered by id."""
        return self.table.by_tenant.get(tenant_id, ())

    def named(self, tenant_id: int, name_or_id: str) -> Domain:
        """A tenant's domain by its name or its id. NotFound."""
        for domain in self.of_tenant(tenant_id):
            if name_or_id.casefold() == domain.name.casefold() or name_or_id == domain.label:
                return domain
        raise NotFound(f"no domain {name_or_id}")

    def anywhere(self, name_or_id: str) -> Domain:
        """The one domain of the installation with this name or id. NotFound, also where several tenants have it."""
        found = [
            domain
            for domain in self.table.by_id.values()
            if name_or_id == domain.label or name_or_id.casefold() == domain.name.casefold()
        ]
        if len(found) > 1:
            raise NotFound(f"{len(found)} tenants have a domain {name_or_id}: name it by its id")
        if not found:
            raise NotFound(f"no domain {name_or_id}")
        return found[0]

    async def add(
        self,
        tenant_id: int,
        name: str,
        *,
        directory_name: str = "",
        mode: Mode = Mode.MONITOR,
        fallback: Fallback = Fallback.DENY,
        first_factor: FirstFactor = FirstFactor.LOCAL,
        realms: Sequence[str] = (),
    ) -> int:
        """The new domain's id. Conflict: the name or a realm is taken in this tenant."""
        return await self._configuration.change(
            lambda tx: repo.add(
                tx,
                tenant_id=tenant_id,
                name=name,
                directory_name=directory_name,
                mode=mode,
                fallback=fallback,
                first_factor=first_factor,
                realms=tuple(realms),
                at=self._clock(),
            )
        )

    async def set_mode(self, domain_ids: list[int], mode: Mode, fallback: Fallback | None = None) -> None:
        """Switch domains; it holds for the next request."""
        await self._configuration.change(lambda tx: repo.set_mode(tx, domain_ids, mode, fallback))

    def warnings(self, domain_id: int) -> list[str]:
        """What an admin should know about a domain's mode."""
        return [NO_PROVIDER] if self.table.by_id[domain_id].mode is Mode.ENFORCE else []

    def _modes(self) -> dict[tuple[str, ...], float]:
        return {
            (domain.label, mode): float(domain.mode is mode) for domain in self.table.by_id.values() for mode in Mode
        }
