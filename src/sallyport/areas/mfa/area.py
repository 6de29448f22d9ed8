"""The entrance of MFA providers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from sallyport.areas.domains.area import DomainsArea
from sallyport.areas.domains.domain import WEB
from sallyport.areas.domains.repo import is_web
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.mfa import operations as api
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.configured import ProviderKind
from sallyport.areas.mfa.host import ConfiguredProvider, EnrolmentRequests, Host, Seeds, StepUpRequests, WalletPrompts
from sallyport.areas.mfa.providers import available
from sallyport.areas.mfa.service import Providers
from sallyport.base.clock import now_us
from sallyport.metrics import MfaMetrics
from sallyport.store.erasure import Rows
from sallyport.store.sealed import Sealed
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class MfaArea(Area):
    """The MFA providers of all domains. kinds: the classes of providers by name; the default ones are the built-in ones
    and those of installed packages."""

    erased_rows = (
        Rows("mfa_providers", "MFA provider", "domain_id"),
        Rows("further_providers", "further MFA providers", "domain_id, provider"),
    )
    sealed = (
        Sealed("mfa_providers", "fields", ("domain_id", "provider"), "mfa_providers/{}/{}", is_vital=True),
        Sealed("further_providers", "fields", ("domain_id", "provider"), "mfa_providers/{}/{}", is_vital=True),
    )

    def __init__(
        self,
        parts: Parts,
        domains: DomainsArea,
        seeds: Seeds,
        wallets: WalletPrompts,
        own: StepUpRequests,
        enrolments: EnrolmentRequests,
        products: Callable[[int], Awaitable[Sequence[str]]],
        *,
        kinds: Mapping[str, type[ConfiguredProvider]] | None,
    ) -> None:
        def host(domain_id: int) -> Host:
            """Return the parts of the service that a domain's provider may use. A domain that is being added is not in
            memory yet."""
            domain = domains.service.table.by_id.get(domain_id)
            return Host(
                domain_id=domain_id,
                domain=domain.name if domain else "",
                http=domains.http_of(domain_id).traced(is_sampled=bool(parts.settings.otlp_url)),
                seeds=seeds,
                wallets=wallets,
                own=own,
                clock=parts.clock,
                products=partial(products, domain_id),
                enrolments=enrolments,
            )

        kinds = available() if kinds is None else kinds
        self.metrics = MfaMetrics(parts.registry)
        self.service = Providers(parts.configuration, parts.vault, kinds, host, self.metrics, parts.clock)
        self.service.is_web = is_web
        domains.service.has_provider = self.service.has
        domains.service.provider_hints = self._hints
        self._domains = domains.service
        self.node_tasks = (self.service.run,)
        self.configured = (ProviderKind(self.service),)

    def _hints(self, domain_id: int) -> Sequence[str]:
        """Return hints on the providers of a domain, and why the first factor `web` can admit nobody."""
        attached, is_web = self.service.of(domain_id), self._domains.table.present(domain_id).first_factor is WEB
        problem = attached.provider.web_problem if is_web and isinstance(attached, Attached) else ""
        found = [f"the first factor web admits nobody: {problem}"] if problem else []
        return [*found, *self.service.hints(domain_id)]

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of MFA providers."""
        return [api.operations(self.service, gate, now_us)]
