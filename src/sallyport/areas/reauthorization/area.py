"""The entrance of re-authorizations: decide live sessions again, and end or change those that differ."""

from collections.abc import Sequence

from sallyport.areas.clients.service import Clients
from sallyport.areas.domains.service import Domains
from sallyport.areas.dynamic.service import NAMING, DynamicAuthorization
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.areas.reauthorization import operations as api
from sallyport.areas.reauthorization.deciding import Deciding
from sallyport.areas.reauthorization.service import Reauthorizations
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class ReauthorizationArea(Area):
    """Re-authorizations of live sessions, which an admin starts."""

    erased_rows = (
        Rows("reauthorized_sessions"),
        Rows("reauthorizations", "re-authorizations of sessions"),
    )

    def __init__(
        self,
        parts: Parts,
        domains: Domains,
        clients: Clients,
        rules: LoginRules,
        dynamic: DynamicAuthorization,
        pipeline: Pipeline,
    ) -> None:
        deciding = Deciding(pipeline, lambda host: clients.find((host, 0)), rules.translation.shown, NAMING)
        self.service = Reauthorizations(parts.store, parts.leader_store, domains, dynamic, deciding, parts.clock)
        self.leader_tasks = (self.service.run,)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of re-authorizations."""
        return [api.operations(self.service, gate)]
