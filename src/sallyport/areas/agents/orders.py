"""Orders to agents to synchronize, to discover accounts or to rotate passwords, and the outcomes of these orders.

An open order is part of the desired state of its machine. If the agent is waiting for a state, it gets the order within
a second. An offline agent gets the order at its next poll. An order fails if the agent does not carry it out within a
day. If an equal order is open already, no order is added, and the open order is returned.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import trio

from sallyport.agentwire.state import TriggerKind
from sallyport.areas.agents import repo
from sallyport.areas.agents.bodies import MAX_WAIT_S
from sallyport.areas.agents.grants import account_name
from sallyport.areas.agents.repo import MAX_OPEN, Order
from sallyport.areas.agents.states import States
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Conflict, invalid_field
from sallyport.base.wire import JSON
from sallyport.nodes.periodic import every
from sallyport.store.audit import record_in
from sallyport.store.model import Store, Tx
from sallyport.store.slices import in_batches
from sallyport.web.connections import parked

CHECK_S: Final = 0.25
SWEEP_S: Final = 60.0
MAX_US: Final = 86_400 * SECOND


class Orders:
    """The orders of all machines. The task `run` must run, because it ends overdue orders."""

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
        """Give an order to the agents of several machines. Return the order of each machine, in the sequence of
        `instance_ids`. If one order cannot be given, none is given.

        accounts: the names of the accounts whose passwords are to be rotated. If `accounts` is empty, an order to
        rotate passwords applies to all accounts that have a password. If no account has one, the order fails. wait_s:
        the longest time to wait for the outcomes, in seconds, at most MAX_WAIT_S. An order that has no outcome by then
        stays open.

        Raises NotFound if an instance has no agent. Raises Invalid if a name is not a valid name of an account. Raises
        Conflict if too many orders are open.
        """
        by_instance = dict.fromkeys(instance_ids, accounts)
        if kind is TriggerKind.ROTATE and not accounts:
            by_instance = await self._with_passwords(domain_id, instance_ids)

        def transaction(tx: Tx) -> list[int]:
            return [self.give_in(tx, domain_id, each, kind, names) for each, names in by_instance.items()]

        ids = await self._store.write(transaction)
        for each in instance_ids:
            self._states.touch(each)
        return await self._outcomes(ids, min(wait_s, MAX_WAIT_S))

    def give_in(self, tx: Tx, domain_id: int, instance_id: int, kind: TriggerKind, accounts: Sequence[str]) -> int:
        """Give an order to the agent of one machine in a transaction, and return the order's id. An order to rotate
        passwords fails at once if `accounts` is empty. Raises NotFound, Invalid, Conflict."""
        if not all(name and account_name(name) == name for name in accounts):
            raise invalid_field(
                "userNames",
                "must be names of accounts on hosts, such as ann or web_2",
            )
        agent, at = repo.found(tx, instance_id, domain_id), self._clock()
        order_id = repo.add_order(tx, instance_id, kind, accounts, at)
        if not order_id:
            raise Conflict(
                f"{MAX_OPEN} orders wait for this instance already; try again when its agent has carried out "
                "some of them"
            )
        changes: dict[str, JSON] = {"order": order_id, "kind": kind.value}
        if accounts:
            changes["users"] = list[JSON](accounts)
        record_in(tx, "agent.order", domain_id, f"instance {instance_id} {agent.name}", changes, at=at)
        if kind is TriggerKind.ROTATE and not accounts:
            repo.end_order(tx, instance_id, order_id, "no account on this machine has a password", at)
        return order_id

    async def _with_passwords(self, domain_id: int, instance_ids: Sequence[int]) -> dict[int, Sequence[str]]:
        """Return the accounts with a password on each machine. Raises NotFound if an instance has no agent."""
        await self._store.read(lambda tx: [repo.found(tx, each, domain_id) for each in instance_ids])
        return {each: (await self._states.current(each)).desired.with_password(self._clock()) for each in instance_ids}

    async def newest(self, instance_id: int, limit: int) -> list[Order]:
        """Return the newest orders of a machine, at most `limit`, the newest first."""
        return await self._store.read(lambda tx: repo.newest_orders(tx, instance_id, limit))

    async def _outcomes(self, ids: Sequence[int], seconds: float) -> list[Order]:
        deadline = trio.current_time() + seconds
        while True:
            found = await self._store.read(lambda tx: [repo.order(tx, each) for each in ids])
            orders = [each for each in found if each is not None]
            if all(each.ended_at is not None for each in orders) or trio.current_time() >= deadline:
                return orders
            with parked():
                await trio.sleep(min(CHECK_S, max(0.0, deadline - trio.current_time())))

    async def run(self) -> None:
        """End overdue orders, until cancelled. One node runs this task for all nodes. If two nodes ran it, each order
        would still be ended only once."""
        await every(SWEEP_S, self.sweep, failure="agent_orders_not_ended")

    async def sweep(self) -> None:
        """End the overdue orders. Raises StoreError."""
        at = self._clock()
        overdue = await self._store.read(partial(repo.overdue_orders, before=at - MAX_US))

        def end(tx: Tx, orders: Iterator[Order]) -> None:
            for each in orders:
                repo.end_order(tx, each.instance_id, each.id, "the agent did not carry out the order within a day", at)

        await in_batches(self._store, overdue, end)
        for each in overdue:
            self._states.touch(each.instance_id)
