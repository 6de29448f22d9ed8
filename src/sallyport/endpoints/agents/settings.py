"""How agents behave, in a domain or on one machine of it, and which accounts that were there before they may manage."""

from collections.abc import Mapping, Sequence

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.wire import JSON
from sallyport.endpoints import membership
from sallyport.endpoints.agents import repo, reports_repo, settings_repo
from sallyport.endpoints.agents.desired import account_name
from sallyport.endpoints.agents.reports import is_persons
from sallyport.endpoints.agents.states import States
from sallyport.endpoints.membership import INSTANCES, USERS_OF_INSTANCE, Action
from sallyport.endpoints.service import EndpointUsers
from sallyport.endpoints.user import NO_USER
from sallyport.endpoints.users import repo as accounts
from sallyport.endpoints.users.account import DISCOVERED, LOCAL
from sallyport.store.audit import changed, record_in
from sallyport.store.model import Store, Tx


class AgentSettings:
    """The settings of all domains and machines. users: told of those who are taken over."""

    def __init__(self, store: Store, users: EndpointUsers, states: States, clock: Clock = now_us) -> None:
        self._store = store
        self._users = users
        self._states = states
        self._clock = clock

    async def get(self, domain_id: int, instance_id: int) -> dict[str, JSON]:
        """What was said for a machine, over what was said for its domain; instance_id 0: for the domain. NotFound."""

        def work(tx: Tx) -> dict[str, JSON]:
            if instance_id:
                membership.must_exist(tx, INSTANCES, domain_id, [instance_id])
            return settings_repo.merged(tx, domain_id, instance_id)

        return await self._store.read(work)

    async def set(self, domain_id: int, instance_id: int, said: Mapping[str, JSON]) -> None:
        """Say something; what is not said stays, and None takes back what was said. NotFound."""

        def work(tx: Tx) -> None:
            if instance_id:
                membership.must_exist(tx, INSTANCES, domain_id, [instance_id])
            old = settings_repo.said(tx, domain_id, instance_id)
            new = {name: value for name, value in {**old, **said}.items() if value is not None}
            changes = changed(old, new)
            if changes:
                settings_repo.say(tx, domain_id, instance_id, new)
                target = f"instance {instance_id}" if instance_id else "all instances"
                record_in(tx, "agent.settings", domain_id, target, changes, at=self._clock())

        await self._store.write(work)
        self._states.touch(instance_id)

    async def take_over(self, domain_id: int, instance_id: int, names: Sequence[str], action: Action) -> None:
        """Let the agent of a machine manage accounts that it has discovered there, or no more; all or none.

        Who is taken over is assigned to the machine, and a user like others. NotFound: no such account; Conflict: it is
        the system's.
        """

        def work(tx: Tx) -> None:
            agent = repo.found(tx, instance_id, domain_id)
            step = self._take if action is Action.ADD else self._give_back
            for name in dict.fromkeys(names):
                step(tx, agent, name)
            told: dict[str, JSON] = {"accounts": list[JSON](names)}
            target = f"instance {instance_id} {agent.name}"
            record_in(tx, f"agent.takeover.{action}", domain_id, target, told, at=self._clock())

        try:
            await self._store.write(work)
        finally:
            self._users.drop(domain_id, *names)
        self._states.touch(instance_id)

    def _take(self, tx: Tx, agent: repo.Agent, name: str) -> None:
        found = reports_repo.find_discovered(tx, agent.instance_id, name)
        user = accounts.named(tx, agent.domain_id, name)
        if found is None or user is None or account_name(name) != name:
            raise NotFound("no account of that name was discovered there")
        uid = found.fields.get("uid")
        if not isinstance(uid, int) or not is_persons(uid):
            raise Conflict("an account of the system is not taken over")
        if user.source == DISCOVERED:
            accounts.set_source(tx, user, LOCAL)
        settings_repo.take_over(tx, agent.instance_id, name, self._clock())
        membership.change(tx, USERS_OF_INSTANCE, Action.ADD, [agent.instance_id], [user.id])

    def _give_back(self, tx: Tx, agent: repo.Agent, name: str) -> None:
        user = accounts.named(tx, agent.domain_id, name)
        if user is None:
            raise NotFound(NO_USER)
        settings_repo.give_back(tx, agent.instance_id, account_name(name))
        membership.change(tx, USERS_OF_INSTANCE, Action.REMOVE, [agent.instance_id], [user.id])
