"""The agents of all domains, for who looks after them."""

from dataclasses import dataclass
from functools import partial

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, NotFound
from sallyport.endpoints.agents import repo, signers
from sallyport.endpoints.agents.desired import PolicyRules
from sallyport.endpoints.agents.machines import Keys, Machines
from sallyport.endpoints.agents.orders import Orders
from sallyport.endpoints.agents.orders_repo import Order
from sallyport.endpoints.agents.presence import Presence
from sallyport.endpoints.agents.repo import Agent
from sallyport.endpoints.agents.reports import Reports
from sallyport.endpoints.agents.reports_repo import StoredReport
from sallyport.endpoints.agents.rotation import Rotations
from sallyport.endpoints.agents.settings import AgentSettings
from sallyport.endpoints.agents.states import States
from sallyport.endpoints.instances import repo as instances_repo
from sallyport.endpoints.instances.service import Instances
from sallyport.endpoints.membership import INSTANCES, NOT_FOUND
from sallyport.endpoints.service import EndpointUsers
from sallyport.metrics import AgentMetrics
from sallyport.store.audit import record_in
from sallyport.store.model import Store, Tx
from sallyport.store.search import Stretch
from sallyport.store.vault import Vault

NEWEST_ORDERS = 20


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a machine. unfit: users whose names no host accepts. waits: whether the agent waits for a change
    now. privileges: the last privilege status, in JSON."""

    agent: Agent
    seen_at: int
    waits: bool
    users: tuple[str, ...]
    unfit: tuple[str, ...]
    report: StoredReport | None
    orders: list[Order]
    privileges: str


class Agents:
    """What there is of agents, wired. `prepare` must have run; `run` is a task of each part that needs one."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        users: EndpointUsers,
        instances: Instances,
        policies: PolicyRules,
        keys: Keys,
        metrics: AgentMetrics,
        clock: Clock = now_us,
    ) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self.metrics = metrics
        self.states = States(store, vault, policies, clock)
        self.machines = Machines(store, vault, instances, keys, clock)
        self.presence = Presence(store, self.states, metrics, clock)
        self.orders = Orders(store, self.states, clock)
        self.reports = Reports(store, users, self.states, clock)
        self.rotations = Rotations(store, vault, self.states, self.orders, clock)
        self.settings = AgentSettings(store, users, self.states, clock)
        self.tasks = (self.states.run, self.presence.run, self.orders.run, self.rotations.run)

    async def prepare(self) -> None:
        """Read what is held in memory; also after the store was replaced. StoreError."""
        await self.presence.load()
        self.states.forget()

    def check_key(self, tx: Tx) -> None:
        """Open what is sealed in a store that is to take the place of this one. SecretError."""
        signers.check_key(tx, self._vault)

    async def rotate_state_key(self, domain_id: int) -> None:
        """Sign the domain's states by another key. Agents learn it from a state that the present one signs; the one
        before that is forgotten. Conflict: there is none yet; SecretError."""

        def work(tx: Tx) -> None:
            if not signers.rotate(tx, self._vault, domain_id):
                raise Conflict("the domain has no key for states yet: no agent has registered")
            record_in(tx, "agent.key.rotate", domain_id, "the key of the states", {}, at=self._clock())

        await self._store.write(work)

    async def page(self, stretch: Stretch, status: str = "") -> tuple[list[Agent], int]:
        """One page of a domain's agents, ordered by instance, and how many. status: only those, such as Active."""
        return await self._store.search(partial(repo.page, stretch=stretch, status=status))

    async def named(self, domain_id: int, name: str) -> int:
        """The id of an instance by its name. NotFound."""
        found = await self._store.read(lambda tx: instances_repo.named(tx, domain_id, name))
        if found is None:
            raise NotFound(NOT_FOUND[INSTANCES])
        return found.id

    async def must_be(self, domain_id: int, instance_id: int) -> Agent:
        """The agent of a domain's instance. NotFound."""
        return await self._store.read(lambda tx: repo.found(tx, instance_id, domain_id))

    async def situation(self, domain_id: int, instance_id: int) -> Situation:
        """How it stands with a machine. NotFound."""
        await self.must_be(domain_id, instance_id)
        wanted = (await self.states.current(instance_id)).wanted
        agent = await self.must_be(domain_id, instance_id)
        reports, _ = await self.reports.newest(instance_id, 1)
        return Situation(
            agent,
            self.presence.seen_at(instance_id, agent.seen_at),
            self.states.waits(instance_id),
            tuple(user.name for user in wanted.state.users),
            wanted.unfit,
            reports[0] if reports else None,
            await self.orders.newest(instance_id, NEWEST_ORDERS),
            await self.reports.privileges(instance_id),
        )
