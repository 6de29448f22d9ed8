"""The entrance of dynamic authorization: requests that end or change a session (RFC 5176)."""

from collections.abc import Sequence

from sallyport.areas.clients.service import Clients
from sallyport.areas.domains.service import Domains
from sallyport.areas.dynamic import operations as api
from sallyport.areas.dynamic.revocations import Revocations
from sallyport.areas.dynamic.sender import Sender
from sallyport.areas.dynamic.service import DynamicAuthorization
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.metrics import DynamicMetrics
from sallyport.radius.retransmission import Timers
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class DynamicArea(Area):
    """Requests to devices, by an admin or after a revocation."""

    erased_rows = (Rows("revocations", has_index=False),)

    def __init__(self, parts: Parts, domains: Domains, clients: Clients, rules: LoginRules, *, timers: Timers) -> None:
        self.service = DynamicAuthorization(
            parts.store,
            Sender(parts.http.egress, timers=timers, clock=parts.clock),
            rules.translation,
            DynamicMetrics(parts.registry),
            parts.clock,
            domains=lambda: domains.table,
            find_client=lambda host: clients.find((host, 0)),
            error_name=lambda cause: parts.dictionary.value_name("Error-Cause", cause),
        )
        self.revocations = Revocations(parts.store, parts.cluster, self.service, domains, rules, parts.clock)
        self.leader_tasks = (self.revocations.run,)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations that end or change sessions."""
        return [api.operations(self.service, gate)]

    def forget_all(self) -> None:
        """Drop the revocations in memory."""
        self.revocations.forget()
