"""The entrance of MFA providers."""

from collections.abc import Callable, Mapping, Sequence

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.mfa import operations as api
from sallyport.areas.mfa.host import ConfiguredProvider, Host
from sallyport.areas.mfa.providers import available
from sallyport.areas.mfa.service import Providers
from sallyport.base.clock import now_us
from sallyport.metrics import MfaMetrics
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class MfaArea(Area):
    """The MFA providers of all domains. host: returns the parts of the service that a domain's provider may use. kinds:
    the classes of providers by name; the default ones are the built-in ones and those of installed packages."""

    def __init__(
        self,
        parts: Parts,
        metrics: MfaMetrics,
        *,
        host: Callable[[int], Host],
        kinds: Mapping[str, type[ConfiguredProvider]] | None,
    ) -> None:
        kinds = available() if kinds is None else kinds
        self.service = Providers(parts.configuration, parts.vault, kinds, host, metrics, parts.clock)
        self.node_tasks = (self.service.run,)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of MFA providers."""
        return [api.operations(self.service, gate, now_us)]
