"""The service with which admins manage agents: their status, settings and take-overs of accounts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sallyport.areas.agents import repo, reports_repo, signers
from sallyport.areas.agents.desired import PolicyRules
from sallyport.areas.agents.grants import account_name
from sallyport.areas.agents.machines import Keys, Machines
from sallyport.areas.agents.orders import Orders
from sallyport.areas.agents.presence import Presence
from sallyport.areas.agents.repo import Agent, Order
from sallyport.areas.agents.reports import Reports, is_persons
from sallyport.areas.agents.reports_repo import StoredReport
from sallyport.areas.agents.rotation import Rotations
from sallyport.areas.agents.states import States
from sallyport.areas.users import membership
from sallyport.areas.users.accounts import repo as accounts
from sallyport.areas.users.accounts.account import DISCOVERED, LOCAL
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.membership import INSTANCES, USERS_OF_INSTANCE, Action
from sallyport.areas.users.service import EndpointUsers
from sallyport.areas.users.user import NO_USER
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.wire import JSON
from sallyport.metrics import AgentMetrics
from sallyport.nodes.service import Cluster
from sallyport.store.audit import changed, record_in
from sallyport.store.model import ListQuery, Store, Tx
from sallyport.store.vault import Vault

NEWEST_ORDERS = 20


@dataclass(frozen=True, slots=True)
class Situation:
    """The status of a machine. users: the names of the accounts in the desired state. unfit: the users that the desired
    state leaves out, see `DesiredState`. waits: whether a poll of the agent is waiting now. privileges: the last
    privilege status as JSON."""

    agent: Agent
    seen_at: int
    waits: bool
    users: tuple[str, ...]
    unfit: tuple[str, ...]
    report: StoredReport | None
    orders: list[Order]
    privileges: str


class Agents:
    """All services for agents. This class passes to each of them the other services that it needs. Call `prepare`
    first. The tasks of `states` and `presence` must run on every node. The tasks of `orders`, `rotations` and
    `presence.watch` must run on one node only."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        users: EndpointUsers,
        instances: Instances,
        policies: PolicyRules,
        keys: Keys,
        metrics: AgentMetrics,
        cluster: Cluster,
        clock: Clock = now_us,
    ) -> None:
        self._store = store
        self._users = users
        self._vault = vault
        self._clock = clock
        self.metrics = metrics
        self.states = States(store, vault, policies, clock)
        self.machines = Machines(store, vault, instances, keys, clock)
        self.presence = Presence(store, cluster, self.states, metrics, clock)
        self.orders = Orders(store, self.states, clock)
        self.reports = Reports(store, users, self.states, clock)
        self.rotations = Rotations(store, vault, cluster, self.states, self.orders, clock)

    async def prepare(self) -> None:
        """Read the active agents from the store. Call this method again after a restore has replaced the store. Raises
        StoreError."""
        await self.presence.load()
        self.states.forget()

    async def rotate_state_key(self, domain_id: int) -> None:
        """Replace the key that signs a domain's desired states.

        Agents receive the new key in a state that is signed with the old key. Only one old key is kept, so the key
        before the old one is deleted. Raises Conflict if the domain has no key yet. Raises SecretError if the vault
        cannot open the old key.
        """

        def transaction(tx: Tx) -> None:
            if not signers.rotate(tx, self._vault, domain_id):
                raise Conflict("the domain has no key for desired states yet, because no agent has registered")
            record_in(tx, "agent.key.rotate", domain_id, "the key that signs desired states", {}, at=self._clock())

        await self._store.write(transaction)

    async def page(self, stretch: ListQuery, status: str = "") -> tuple[list[Agent], int]:
        """Return one page of a domain's agents, ordered by instance, and the total number of agents. status: the status
        of the agents to return, or empty for all agents."""
        return await self._store.search(partial(repo.page, stretch=stretch, status=status))

    async def agent(self, domain_id: int, instance_id: int) -> Agent:
        """Return the agent of an instance in a domain. Raises NotFound."""
        return await self._store.read(lambda tx: repo.found(tx, instance_id, domain_id))

    async def situation(self, domain_id: int, instance_id: int) -> Situation:
        """Return the status of a machine. Raises NotFound."""
        await self.agent(domain_id, instance_id)
        desired = (await self.states.current(instance_id)).desired
        agent = await self.agent(domain_id, instance_id)
        reports, _ = await self.reports.newest(instance_id, 1)
        return Situation(
            agent,
            self.presence.seen_at(instance_id, agent.seen_at),
            self.states.waits(instance_id),
            tuple(user.name for user in desired.state.users),
            desired.unfit,
            reports[0] if reports else None,
            await self.orders.newest(instance_id, NEWEST_ORDERS),
            await self.reports.privileges(instance_id),
        )

    # --- settings and take-overs --------------------------------------------------------------------------------

    async def settings(self, domain_id: int, instance_id: int) -> dict[str, JSON]:
        """Return the settings of a domain, overridden by the settings of a machine. If instance_id is 0, return only
        the settings of the domain. Raises NotFound."""

        def query(tx: Tx) -> dict[str, JSON]:
            if instance_id:
                membership.must_exist(tx, INSTANCES, domain_id, [instance_id])
            return repo.merged_settings(tx, domain_id, instance_id)

        return await self._store.read(query)

    async def change_settings(self, domain_id: int, instance_id: int, fields: Mapping[str, JSON]) -> None:
        """Change the settings of a machine, or of a domain if instance_id is 0. A field that is None is reset to its
        default. Raises NotFound."""

        def transaction(tx: Tx) -> None:
            if instance_id:
                membership.must_exist(tx, INSTANCES, domain_id, [instance_id])
            self.set_settings_in(
                tx, domain_id, instance_id, {**repo.own_settings(tx, domain_id, instance_id), **fields}
            )

        await self._store.write(transaction)
        self.states.touch(instance_id)

    def set_settings_in(self, tx: Tx, domain_id: int, instance_id: int, fields: Mapping[str, JSON]) -> None:
        """Replace the settings of a machine, or of a domain if instance_id is 0, in the transaction of a caller, which
        touches the states afterwards. A field that is None has its default."""
        old = repo.own_settings(tx, domain_id, instance_id)
        new = {name: value for name, value in fields.items() if value is not None}
        if changes := changed(old, new):
            repo.store_settings(tx, domain_id, instance_id, new)
            target = f"instance {instance_id}" if instance_id else "all instances"
            record_in(tx, "agent.settings", domain_id, target, changes, at=self._clock())

    async def take_over(self, domain_id: int, instance_id: int, names: Sequence[str], action: Action) -> None:
        """Let the agent of a machine manage accounts that it has discovered there, or end this management. If one
        account fails, no account is changed.

        action: Action.ADD also assigns the user of each account to the machine; Action.REMOVE removes the assignment.
        Raises NotFound if an account was not discovered. Raises Conflict if an account is a system account.
        """

        def transaction(tx: Tx) -> None:
            agent = repo.found(tx, instance_id, domain_id)
            step = self._take_over if action is Action.ADD else self._give_back
            for name in dict.fromkeys(names):
                step(tx, agent, name)
            changes: dict[str, JSON] = {"accounts": list[JSON](names)}
            target = f"instance {instance_id} {agent.name}"
            record_in(tx, f"agent.takeover.{action}", domain_id, target, changes, at=self._clock())

        try:
            await self._store.write(transaction)
        finally:
            self._users.drop(domain_id, *names)
        self.states.touch(instance_id)

    def _take_over(self, tx: Tx, agent: repo.Agent, name: str) -> None:
        found = reports_repo.find_discovered(tx, agent.instance_id, name)
        user = accounts.named(tx, agent.domain_id, name)
        if found is None or user is None or account_name(name) != name:
            raise NotFound("the agent has not discovered an account with this name")
        uid = found.fields.get("uid")
        if not isinstance(uid, int) or not is_persons(uid):
            raise Conflict("a system account cannot be taken over")
        if user.source == DISCOVERED:
            accounts.set_source(tx, user, LOCAL)
        repo.take_over(tx, agent, name, self._clock())
        membership.change(tx, USERS_OF_INSTANCE, Action.ADD, [agent.instance_id], [user.id])

    def _give_back(self, tx: Tx, agent: repo.Agent, name: str) -> None:
        user = accounts.named(tx, agent.domain_id, name)
        if user is None:
            raise NotFound(NO_USER)
        repo.give_back(tx, agent, account_name(name))
        membership.change(tx, USERS_OF_INSTANCE, Action.REMOVE, [agent.instance_id], [user.id])
