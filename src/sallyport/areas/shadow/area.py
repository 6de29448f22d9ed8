"""The entrance of shadow mode: the comparison with another RADIUS server."""

from collections.abc import Callable, Sequence
from functools import partial

from sallyport.areas.clients.client import ClientTable
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.login.area import LoginArea
from sallyport.areas.mfa.service import Providers
from sallyport.areas.preview.enrolled import SecondFactors
from sallyport.areas.shadow import operations as api
from sallyport.areas.shadow.attributes import ShadowAttributes
from sallyport.areas.shadow.comparing import Comparing
from sallyport.areas.shadow.copies import Copies
from sallyport.areas.shadow.service import ShadowLogins
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class ShadowArea(Area):
    """Shadow logins, and their comparison."""

    erased_rows = (Rows("shadow_logins", "shadow logins"),)

    def __init__(
        self,
        parts: Parts,
        domains: Domains,
        clients: Callable[[], ClientTable],
        providers: Providers,
        login: LoginArea,
    ) -> None:
        enrolled = SecondFactors(providers, login.second.enrolments)
        self._domains = domains
        self.attributes = ShadowAttributes(parts.dictionary)
        comparing = Comparing(login.pipeline, enrolled, clients, self.attributes)
        self.service = ShadowLogins(parts.store, domains, comparing, parts.clock, parts.settled)
        self.copies = Copies(self.service, self.attributes, lambda: domains.table)
        self.node_tasks = (self.copies.run,)
        self.leader_tasks = (partial(self.service.run_purge, parts.leader_store),)

    def forget(self) -> None:
        """Drop the reports in memory."""
        self.service.last.forget()

    def forget_all(self) -> None:
        """Drop the reports in memory."""
        self.forget()

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations about shadow logins."""
        return [api.operations(self.service, self.attributes, self._domains, gate)]
