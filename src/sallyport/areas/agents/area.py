"""The entrance of endpoint agents: the service's side."""

from collections.abc import Sequence

from sallyport.areas.agents import operations as api
from sallyport.areas.agents.configured import AgentSettingsKind
from sallyport.areas.agents.desired import PolicyRules, release_names
from sallyport.areas.agents.reports_repo import forget_machine, forget_users
from sallyport.areas.agents.service import Agents
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.tenancy.keys.service import Keys
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.service import EndpointUsers
from sallyport.metrics import AgentMetrics
from sallyport.store.erasure import Rows
from sallyport.store.sealed import Sealed
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class AgentsArea(Area):
    """The desired states of machines, and the reports of their agents."""

    erased_rows = (
        Rows("agent_settings", key="domain_id, instance_id"),
        Rows("agent_takeovers", "taken-over accounts", "instance_id, account"),
        Rows("agent_passwords", "escrowed passwords"),
        Rows("agent_reports", "agent reports"),
        Rows("agent_drift", "drift reports"),
        Rows("agents", "endpoint agents", "instance_id"),
        Rows("agent_signers", key="domain_id"),
    )
    sealed = (
        Sealed("agent_signers", "private_key", ("domain_id",), "agent_signers/{}/key"),
        Sealed("agent_signers", "former_private", ("domain_id",), "agent_signers/{}/former"),
        Sealed("agent_hashes", "hash", ("user_id",), "agent_hashes/{}/hash"),
        Sealed("agent_passwords", "password", ("id",), "agent_passwords/{}/password"),
        Sealed("agent_passwords", "hash", ("id",), "agent_passwords/{}/hash"),
    )

    def __init__(
        self, parts: Parts, users: EndpointUsers, instances: Instances, policies: PolicyRules, keys: Keys
    ) -> None:
        users.before_deletion(forget_users)
        users.before_renaming(release_names)
        self.service = Agents(
            parts.store,
            parts.vault,
            users,
            instances,
            policies,
            keys,
            AgentMetrics(parts.registry),
            parts.cluster,
            parts.clock,
        )
        self.configured = (AgentSettingsKind(self.service),)
        instances.before_deletion(forget_machine)
        instances.before_deletion(self.service.reports.forget)
        self.node_tasks = (self.service.states.run, self.service.presence.run)
        self.leader_tasks = (self.service.presence.watch, self.service.orders.run, self.service.rotations.run)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of agents, for admins and for the agents themselves."""
        return [api.operations(self.service, gate)]

    async def prepare(self) -> None:
        """Load the states that agents wait for."""
        await self.service.prepare()

    async def restored(self) -> None:
        """Load the states of the restored store."""
        await self.service.prepare()
