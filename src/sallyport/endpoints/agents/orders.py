"""What agents are told to do now: to synchronize, to discover, to rotate passwords; and what becomes of it.

An order stands in the state of its machine, so that an agent that waits has it within a second, and one that is away
when it comes back; after a day it is given up. The same order again, while one waits, is that one.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.base.agentwire.state import TriggerKind
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Conflict, invalid_field
from sallyport.base.periodic import every
from sallyport.base.wire import JSON
from sallyport.endpoints.agents import orders_repo, repo
from sallyport.endpoints.agents.desired import account_name
from sallyport.endpoints.agents.orders_repo import Order
from sallyport.endpoints.agents.states import States
from sallyport.store.audit import record_in
from sallyport.store.model import Store, Tx
from sallyport.store.turns import in_turns
from sallyport.web.peer import parked

LOOK_S: Final = 0.25
SWEEP_S: Final = 60.0
LONGEST_US: Final = 86_400 * SECOND
MOST_WAIT_S: Final = 60

log = structlog.get_logger()


class Orders:
    """The orders of all machines. `run` must run, for those that nobody carries out to end."""

    def __init__(self, store: Store, states: States, clock: Clock = now_us) -> None:
        self._store = store
        self._states = states
        self._clock = clock

    async def give(
        self,
        domain_id: int,
        instance_ids: Sequence[int],
        kind: TriggerKind,
        accounts: Sequence[str] = (),
        *,
        wait_s: float = 0,
    ) -> list[Order]:
        """Tell the agents of machines to do something now, all or none; the orders, in that order.

        accounts: whom to rotate; none: everybody there who has a password, which fails where nobody has. wait_s: how
        long to wait for the outcomes, at most MOST_WAIT_S; the orders go on after it. NotFound: no such agent. Invalid:
        no host has such an account. Conflict: too many wait.
        """
        named = dict.fromkeys(instance_ids, accounts)
        if kind is TriggerKind.ROTATE and not accounts:
            named = await self._keeping(domain_id, instance_ids)

        def work(tx: Tx) -> list[int]:
            return [self.give_in(tx, domain_id, each, kind, named[each]) for each in named]

        ids = await self._store.write(work)
        for each in instance_ids:
            self._states.touch(each)
        return await self._outcomes(ids, min(wait_s, MOST_WAIT_S))

    def give_in(self, tx: Tx, domain_id: int, instance_id: int, kind: TriggerKind, accounts: Sequence[str]) -> int:
        """`give` in a transaction; the order's id. To rotate nobody fails at once. NotFound, Invalid, Conflict."""
        if not all(name and account_name(name) == name for name in accounts):
            raise invalid_field("userNames", "not a name that an account has on a host")
        agent, at = repo.found(tx, instance_id, domain_id), self._clock()
        order_id = orders_repo.add(tx, instance_id, kind, accounts, at)
        if not order_id:
            raise Conflict(f"{orders_repo.MOST_OPEN} orders wait for this instance already")
        told: dict[str, JSON] = {"order": order_id, "kind": kind.value}
        if accounts:
            told["users"] = list[JSON](accounts)
        record_in(tx, "agent.order", domain_id, f"instance {instance_id} {agent.name}", told, at=at)
        if kind is TriggerKind.ROTATE and not accounts:
            orders_repo.end(tx, instance_id, order_id, "nobody there has a password", at)
        return order_id

    async def _keeping(self, domain_id: int, instance_ids: Sequence[int]) -> dict[int, Sequence[str]]:
        """The accounts of machines that have passwords. NotFound: no such agent."""
        await self._store.read(lambda tx: [repo.found(tx, each, domain_id) for each in instance_ids])
        return {each: (await self._states.current(each)).wanted.keeping(self._clock()) for each in instance_ids}

    async def newest(self, instance_id: int, limit: int) -> list[Order]:
        """The newest orders of a machine, the newest first."""
        return await self._store.read(lambda tx: orders_repo.newest(tx, instance_id, limit))

    async def _outcomes(self, ids: Sequence[int], seconds: float) -> list[Order]:
        deadline = trio.current_time() + seconds
        while True:
            found = await self._store.read(lambda tx: [orders_repo.get(tx, each) for each in ids])
            orders = [each for each in found if each is not None]
            if all(each.ended_at is not None for each in orders) or trio.current_time() >= deadline:
                return orders
            with parked():
                await trio.sleep(min(LOOK_S, max(0.0, deadline - trio.current_time())))

    async def run(self) -> None:
        """End orders that nobody carries out, until cancelled."""
        await every(SWEEP_S, self.sweep, failure="agent_orders_not_ended")

    async def sweep(self) -> None:
        """Once. StoreError."""
        at = self._clock()
        overdue = await self._store.read(partial(orders_repo.overdue, before=at - LONGEST_US))

        def work(tx: Tx, orders: Iterator[Order]) -> None:
            for each in orders:
                orders_repo.end(tx, each.instance_id, each.id, "the agent did not come for it within a day", at)

        await in_turns(self._store, overdue, work)
        for each in overdue:
            self._states.touch(each.instance_id)
