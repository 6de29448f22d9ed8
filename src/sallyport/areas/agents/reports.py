"""Reports of agents: actions, drift, discovered accounts. If an agent sends a report twice, it is stored once."""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import trio

from sallyport.agentwire.report import Discovery, Drift, DriftKind, FoundAccount, PrivilegeStatus, Report
from sallyport.areas.agents import repo
from sallyport.areas.agents import reports_repo as stored
from sallyport.areas.agents.grants import account_name
from sallyport.areas.agents.reports_repo import ACCOUNT, GROUP, Discovered, StoredDrift, StoredReport
from sallyport.areas.agents.states import States
from sallyport.areas.users.accounts import repo as accounts
from sallyport.areas.users.accounts.account import DISCOVERED, UserChange
from sallyport.areas.users.service import EndpointUsers
from sallyport.base.clock import Clock, now_us
from sallyport.base.wire import JSON, encode
from sallyport.store.audit import record_in
from sallyport.store.model import Store, Tx
from sallyport.store.slices import in_batches

T = TypeVar("T")
MAX_LENGTH: Final = 32_768
"""Maximum total length of the lists that are stored for a report or a privilege status, in characters of JSON."""
MAX_FORGOTTEN: Final = 20
"""Maximum number of discovered accounts that one transaction deletes when a machine is deleted. Deleting an account
takes up to 0.5 ms."""
MAX_PEOPLE: Final = 200
"""Maximum number of users with the source `discovered` that the accounts of one machine add."""
MIN_UID, MAX_UID = 1000, 59_999
"""Lowest and highest uid of accounts of people (login.defs(5)). System accounts of Debian have lower uids, or uids from
60000 on."""
_PRIVILEGES: Final = (DriftKind.PRIVILEGE, DriftKind.SUDOERS)
_REST: Final = tuple(kind for kind in DriftKind if kind not in _PRIVILEGES)
_Key = tuple[str, str]
"""The kind and name of a discovered account or group."""


class Reports:
    """The service for the reports of all agents. users: the service that adds and deletes discovered users."""

    def __init__(self, store: Store, users: EndpointUsers, states: States, clock: Clock = now_us) -> None:
        self._store = store
        self._users = users
        self._states = states
        self._clock = clock
        self._locks = WeakValueDictionary[int, trio.Lock]()

    async def take(self, instance_id: int, report: Report) -> bool:
        """Store a report. Return False if the report is stored already. Raises NotFound if the instance has no agent.

        A large report is stored in several transactions. The last transaction stores the report itself. If the storing
        is interrupted before this transaction, the agent gets no answer and sends the report again. Then the missing
        parts are stored.
        """
        content, outcome = await trio.to_thread.run_sync(_content, report)
        found = await trio.to_thread.run_sync(_found, report.discovery, self._clock())
        async with self._alone(instance_id):
            agent = await self._agent_without(instance_id, report.id)
            if agent is None:
                return False
            at, names = self._clock(), list[str]()
            try:
                await self._drift(agent, report.drift, _REST, at)
                if report.discovery is not None:
                    await self._discover(agent, report.discovery, found, names)

                def work(tx: Tx) -> bool:
                    repo.found(tx, instance_id)
                    repo.applied(tx, instance_id, report.version, at)
                    if report.discovery is not None:
                        repo.mark_discovered(tx, instance_id, at)
                    for each in report.outcomes:
                        repo.end_order(tx, instance_id, each.trigger, each.error, at)
                    new = StoredReport(0, instance_id, report.id, at, report.version, outcome, content)
                    return stored.add_report(tx, agent.domain_id, new)

                return await self._store.write(work)
            finally:
                self._users.drop(agent.domain_id, *names)
                self._states.touch(instance_id)

    async def take_privileges(self, instance_id: int, status: PrivilegeStatus) -> None:
        """Store the last privilege status of an agent, and the unexpected privileges on its host. Raises
        NotFound if the instance has no agent."""
        value: dict[str, JSON] = {"version": status.version}
        _put_lists(value, (("privileged", status.privileged),))
        content = json.dumps(value)
        async with self._alone(instance_id):
            agent, at = await self._store.read(lambda tx: repo.found(tx, instance_id)), self._clock()
            await self._drift(agent, status.drift, _PRIVILEGES, at)
            await self._store.write(lambda tx: repo.store_privileges(tx, instance_id, content, at))

    @asynccontextmanager
    async def _alone(self, instance_id: int) -> AsyncIterator[None]:
        """Hold the lock of a machine, so that its messages are processed one at a time, in the order of their
        arrival."""
        async with self._locks.setdefault(instance_id, trio.Lock()):
            yield

    async def _agent_without(self, instance_id: int, number: str) -> repo.Agent | None:
        """Return the agent of an instance, or None if the agent's report with this number is stored already. Raises
        NotFound if the instance has no agent."""

        def query(tx: Tx) -> repo.Agent | None:
            agent = repo.found(tx, instance_id)
            return None if stored.is_stored(tx, instance_id, number) else agent

        return await self._store.read(query)

    async def _in_turns(
        self, agent: repo.Agent, entries: Iterable[T], work: Callable[[Tx, Iterator[T]], object]
    ) -> None:
        """Write the entries of a message in several short transactions. Raises NotFound if the instance was deleted in
        the meantime."""

        def checked(tx: Tx, part: Iterator[T]) -> None:
            repo.found(tx, agent.instance_id)
            work(tx, part)

        await in_batches(self._store, entries, checked)

    async def _drift(self, agent: repo.Agent, found: Sequence[Drift], ending: Sequence[DriftKind], at: int) -> None:
        """Store the drift that an agent reports in one message.

        found: the reported drift. ending: the kinds of drift of which the message lists every entry. If stored drift
        has one of these kinds and is not in `found`, it ends.
        """
        new = list[Drift]()

        def look(tx: Tx, entries: Iterator[Drift]) -> None:
            new.extend(each for each in entries if not stored.drift_lasts(tx, agent.instance_id, each, at))

        def end(tx: Tx) -> list[Drift]:
            repo.found(tx, agent.instance_id)
            stored.end_drift(tx, agent.instance_id, ending, at)
            added = stored.within_limits(tx, agent.instance_id, new)
            if added:
                changes: dict[str, JSON] = {
                    "drift": [f"{each.kind} {each.name} {each.detail}".strip() for each in added[:50]]
                }
                target = f"instance {agent.instance_id} {agent.name}"
                record_in(tx, "agent.drift", agent.domain_id, target, changes, at=at)
            return added

        def add(tx: Tx, entries: Iterator[Drift]) -> None:
            stored.add_drift(tx, agent.domain_id, agent.instance_id, entries, at)

        await self._in_turns(agent, dict.fromkeys(found), look)
        await self._in_turns(agent, await self._store.write(end), add)

    async def _discover(
        self, agent: repo.Agent, discovery: Discovery, found: Mapping[_Key, Discovered], names: list[str]
    ) -> None:
        """Store discovered accounts and groups, and add an endpoint user for each account of a person.

        Stored accounts and groups that are not in `found` are deleted. There is one exception: if the discovery is
        incomplete, accounts whose users have the source `discovered` are kept. names: a list to which this method
        appends the names of the users that it adds or deletes. The caller passes these names to `EndpointUsers.drop`.
        """
        instance_id = agent.instance_id
        before, people = await self._store.search(
            lambda tx: (stored.discovered_users(tx, instance_id), stored.discovered_people(tx, instance_id))
        )
        known = {(ACCOUNT, each.name) for each in people}
        staying = known & found.keys() if discovery.complete else known
        capacity = MAX_PEOPLE - len(staying)
        by_name = {each.name: each for each in discovery.accounts}

        def put(tx: Tx, entries: Iterator[Discovered]) -> None:
            nonlocal capacity
            rows, left = list[Discovered](), set[int | None]()
            for each in entries:
                user_id = None
                if each.kind == ACCOUNT:
                    user_id, is_new = self._user(tx, agent, by_name[each.name], capacity)
                    if is_new:
                        capacity -= 1
                        names.append(each.name)
                rows.append(replace(each, user_id=user_id))
                left |= {before.get((each.kind, each.name))} - {user_id}
            stored.store_discovered(tx, instance_id, rows)
            names.extend(self._unfound(tx, agent.domain_id, left))

        def forget(tx: Tx, entries: Iterator[_Key]) -> None:
            for key in entries:
                stored.forget_discovered(tx, instance_id, *key)
                names.extend(self._unfound(tx, agent.domain_id, {before[key]}))

        await self._in_turns(agent, found.values(), put)
        await self._in_turns(agent, before.keys() - found.keys() - staying, forget)

    def _unfound(self, tx: Tx, domain_id: int, user_ids: Iterable[int | None]) -> list[str]:
        """Delete discovered users that no longer have an account on any machine, and return the names of the deleted
        users.

        user_ids: the ids of the users to check. A user is deleted only if the user has the source `discovered`. A user
        is kept if an admin has enrolled the user for one-time passwords, or has assigned the user to an instance or a
        group.
        """
        names = list[str]()
        for user_id in sorted(each for each in user_ids if each is not None):
            account = accounts.get(tx, domain_id, user_id)
            if account is not None and account.source == DISCOVERED and not stored.is_discovered(tx, user_id):
                if account.has_totp or accounts.instances(tx, [user_id]) or accounts.groups(tx, [user_id]):
                    continue  # an admin has enrolled or assigned the user
                self._users.delete_found(tx, account)
                names.append(account.name)
        return names

    def forget(self, tx: Tx, instance_id: int) -> int:
        """Delete the accounts and groups that an agent discovered on an instance, before the instance is deleted.

        Users that were discovered only on this instance are deleted too, unless an admin has enrolled or assigned them.
        One call deletes at most MAX_FORGOTTEN accounts and groups, and returns their number. The deleted users may
        remain in the cache of users. This is harmless, because a login treats a user without password, seed and groups
        like an unknown user.
        """
        agent = repo.get(tx, instance_id)
        found = stored.discovered_users(tx, instance_id, MAX_FORGOTTEN)
        for key in found:
            stored.forget_discovered(tx, instance_id, *key)
        if agent is not None:
            self._unfound(tx, agent.domain_id, set(found.values()))
        return len(found)

    def _user(self, tx: Tx, agent: repo.Agent, account: FoundAccount, capacity: int) -> tuple[int | None, bool]:
        """Return the id of the endpoint user that has the name of an account, and whether this call has added this
        user.

        If there is no such user and the account belongs to a person, add a user. The new user does not get the
        account's privileges. capacity: the number of users that may still be added. If no user exists and none is
        added, the id is None.
        """
        known = accounts.named(tx, agent.domain_id, account.name)
        if known is not None:
            return known.id, False
        if not is_persons(account.uid) or not account_name(account.name) or capacity <= 0:
            return None, False
        return self._users.add_in(tx, agent.domain_id, UserChange(account.name), source=DISCOVERED), True

    # --- for admins -------------------------------------------------------------------------------------------

    async def newest(self, instance_id: int, limit: int, offset: int = 0) -> tuple[list[StoredReport], int]:
        """Return one page of a machine's reports, the newest first, and the number of stored reports."""

        def query(tx: Tx) -> tuple[list[StoredReport], int]:
            return stored.reports(tx, instance_id, limit, offset), stored.count_reports(tx, instance_id)

        return await self._store.read(query)

    async def privileges(self, instance_id: int) -> str:
        """Return the last privilege status of an agent as JSON, or `{}` if the agent has sent none."""
        return await self._store.read(lambda tx: repo.privileges(tx, instance_id))

    async def drift(
        self, domain_id: int, instance_id: int | None, *, lasting: bool, limit: int, offset: int
    ) -> tuple[list[StoredDrift], int]:
        """Return one page of the drift on a domain's machines, or on one machine, and the total number of drift
        entries. The newest drift comes first."""
        return await self._store.search(
            partial(
                stored.drift, domain_id=domain_id, instance_id=instance_id, lasting=lasting, limit=limit, offset=offset
            )
        )

    async def discovered(
        self, instance_id: int, kind: str, limit: int, offset: int = 0
    ) -> tuple[list[Discovered], int]:
        """Return one page of the accounts or the groups that were discovered on a machine, ordered by name, and their
        total number."""
        return await self._store.search(lambda tx: stored.discovered(tx, instance_id, kind, limit, offset))


def is_persons(uid: int) -> bool:
    """Return whether an account with this uid belongs to a person and is not a system account."""
    return MIN_UID <= uid <= MAX_UID


def _found(discovery: Discovery | None, at: int) -> dict[_Key, Discovered]:
    """Return the discovered accounts and groups as rows for the store, without duplicates."""
    if discovery is None:
        return {}
    accounts = [(ACCOUNT, each.name, encode(each)) for each in discovery.accounts]
    groups = [(GROUP, each.name, encode(each)) for each in discovery.groups]
    return {(kind, name): Discovered(kind, name, None, json.dumps(told), at) for kind, name, told in accounts + groups}


def _content(report: Report) -> tuple[str, str]:
    """Return (content, outcome) of a report for the store. content: the report as JSON, with the failed actions first.
    outcome: `ok` or `errors`."""
    actions = sorted(report.actions, key=lambda action: not action.error)
    value: dict[str, JSON] = {
        "agent": report.agent,
        "system": report.system,
        "host": report.host,
        "clockUs": report.clock_us,
        "sentAt": report.at,
    }
    _put_lists(value, (("actions", actions), ("managed", report.managed), ("drift", report.drift)))
    return json.dumps(value), "errors" if any(each.error for each in report.actions) else "ok"


def _put_lists(value: dict[str, JSON], lists: Iterable[tuple[str, Sequence[object]]]) -> None:
    """Add lists to a JSON object, and set the field `more` to true if entries are left out. Entries are left out as
    soon as the entries of all lists together are longer than MAX_LENGTH characters."""
    left = MAX_LENGTH
    for name, entries in lists:
        texts: list[JSON] = []
        for each in entries:
            encoded = encode(each)
            left -= len(json.dumps(encoded))
            if left < 0:
                value["more"] = True
                break
            texts.append(encoded)  # type: ignore[arg-type]
        value[name] = texts
