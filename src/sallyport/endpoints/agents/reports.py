"""What agents did and found. A report that comes twice is kept once, and does nothing the second time."""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import trio

from sallyport.base.agentwire.report import Discovery, Drift, DriftKind, FoundAccount, PrivilegeStatus, Report
from sallyport.base.clock import Clock, now_us
from sallyport.base.wire import JSON, encode
from sallyport.endpoints.agents import orders_repo, repo
from sallyport.endpoints.agents import reports_repo as kept
from sallyport.endpoints.agents.desired import account_name
from sallyport.endpoints.agents.reports_repo import ACCOUNT, GROUP, Discovered, StoredDrift, StoredReport
from sallyport.endpoints.agents.states import States
from sallyport.endpoints.service import EndpointUsers
from sallyport.endpoints.users import repo as accounts
from sallyport.endpoints.users.account import DISCOVERED, UserChange
from sallyport.store.audit import record_in
from sallyport.store.model import Store, Tx
from sallyport.store.turns import in_turns

T = TypeVar("T")
LONGEST: Final = 32_768
"""Characters that are kept of the lists of a report or of a privilege status."""
MOST_FORGOTTEN: Final = 20
"""Accounts of a deleted machine that are forgotten at a time, up to 0.5 ms each."""
MOST_PEOPLE: Final = 200
"""Accounts of a machine that become users whose source is `discovered`."""
LOWEST_UID, HIGHEST_UID = 1000, 59_999
"""Of accounts that are people's (login.defs(5); Debian's 60000 and above are the system's)."""
_PRIVILEGES: Final = (DriftKind.PRIVILEGE, DriftKind.SUDOERS)
_REST: Final = tuple(kind for kind in DriftKind if kind not in _PRIVILEGES)
_Key = tuple[str, str]
"""Kind and name of what was discovered."""


class Reports:
    """The reports of all agents. users: told of those who are discovered."""

    def __init__(self, store: Store, users: EndpointUsers, states: States, clock: Clock = now_us) -> None:
        self._store = store
        self._users = users
        self._states = states
        self._clock = clock
        self._turns = WeakValueDictionary[int, trio.Lock]()

    async def take(self, instance_id: int, report: Report) -> bool:
        """Keep a report; False: it came before. NotFound: there is no such agent.

        A large report takes several transactions. The last one stores that the report is kept, so that an agent that
        has no answer sends it again, and what an interrupted report has left out is written then.
        """
        told, outcome = await trio.to_thread.run_sync(_told, report)
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
                        orders_repo.end(tx, instance_id, each.trigger, each.error, at)
                    stored = StoredReport(0, instance_id, report.id, at, report.version, outcome, told)
                    return kept.add_report(tx, agent.domain_id, stored)

                return await self._store.write(work)
            finally:
                self._users.drop(agent.domain_id, *names)
                self._states.touch(instance_id)

    async def take_privileges(self, instance_id: int, status: PrivilegeStatus) -> None:
        """Keep the last privilege status of an agent, and its drift. NotFound: no such agent."""
        value: dict[str, JSON] = {"version": status.version}
        _put_lists(value, (("privileged", status.privileged),))
        told = json.dumps(value)
        async with self._alone(instance_id):
            agent, at = await self._store.read(lambda tx: repo.found(tx, instance_id)), self._clock()
            await self._drift(agent, status.drift, _PRIVILEGES, at)
            await self._store.write(lambda tx: repo.keep_privileges(tx, instance_id, told, at))

    @asynccontextmanager
    async def _alone(self, instance_id: int) -> AsyncIterator[None]:
        """Take one message of a machine at a time, in the order of arrival."""
        async with self._turns.setdefault(instance_id, trio.Lock()):
            yield

    async def _agent_without(self, instance_id: int, number: str) -> repo.Agent | None:
        """Return the agent of an instance; None if its report of that number was kept before. NotFound."""

        def work(tx: Tx) -> repo.Agent | None:
            agent = repo.found(tx, instance_id)
            return None if kept.is_kept(tx, instance_id, number) else agent

        return await self._store.read(work)

    async def _in_turns(
        self, agent: repo.Agent, entries: Iterable[T], work: Callable[[Tx, Iterator[T]], object]
    ) -> None:
        """Write entries of a message, in short transactions. NotFound: the instance was deleted meanwhile."""

        def checked(tx: Tx, part: Iterator[T]) -> None:
            repo.found(tx, agent.instance_id)
            work(tx, part)

        await in_turns(self._store, entries, checked)

    async def _drift(self, agent: repo.Agent, found: Sequence[Drift], ending: Sequence[DriftKind], at: int) -> None:
        """Keep what was found; drift of the kinds `ending` that was not found again has ended."""
        new = list[Drift]()

        def look(tx: Tx, entries: Iterator[Drift]) -> None:
            new.extend(each for each in entries if not kept.drift_lasts(tx, agent.instance_id, each, at))

        def end(tx: Tx) -> list[Drift]:
            repo.found(tx, agent.instance_id)
            kept.end_drift(tx, agent.instance_id, ending, at)
            added = kept.with_room(tx, agent.instance_id, new)
            if added:
                told: dict[str, JSON] = {
                    "drift": [f"{each.kind} {each.name} {each.detail}".strip() for each in added[:50]]
                }
                record_in(tx, "agent.drift", agent.domain_id, f"instance {agent.instance_id} {agent.name}", told, at=at)
            return added

        def add(tx: Tx, entries: Iterator[Drift]) -> None:
            kept.add_drift(tx, agent.domain_id, agent.instance_id, entries, at)

        await self._in_turns(agent, dict.fromkeys(found), look)
        await self._in_turns(agent, await self._store.write(end), add)

    async def _discover(
        self, agent: repo.Agent, discovery: Discovery, found: Mapping[_Key, Discovered], names: list[str]
    ) -> None:
        """Keep what was found, and let people's accounts be users. Nobody is gone for not being in a discovery that was
        cut off. names: gets the names to be dropped from memory."""
        instance_id = agent.instance_id
        before, people = await self._store.search(
            lambda tx: (kept.discovered_users(tx, instance_id), kept.people(tx, instance_id))
        )
        known = {(ACCOUNT, each.name) for each in people}
        staying = known & found.keys() if discovery.complete else known
        room = MOST_PEOPLE - len(staying)
        by_name = {each.name: each for each in discovery.accounts}

        def put(tx: Tx, entries: Iterator[Discovered]) -> None:
            nonlocal room
            rows, left = list[Discovered](), set[int | None]()
            for each in entries:
                user_id = None
                if each.kind == ACCOUNT:
                    user_id, is_new = self._user(tx, agent, by_name[each.name], room)
                    if is_new:
                        room -= 1
                        names.append(each.name)
                rows.append(replace(each, user_id=user_id))
                left |= {before.get((each.kind, each.name))} - {user_id}
            kept.put_discovered(tx, instance_id, rows)
            names.extend(self._unfound(tx, agent.domain_id, left))

        def forget(tx: Tx, entries: Iterator[_Key]) -> None:
            for key in entries:
                kept.forget_discovered(tx, instance_id, *key)
                names.extend(self._unfound(tx, agent.domain_id, {before[key]}))

        await self._in_turns(agent, found.values(), put)
        await self._in_turns(agent, before.keys() - found.keys() - staying, forget)

    def _unfound(self, tx: Tx, domain_id: int, user_ids: Iterable[int | None]) -> list[str]:
        """Delete the users whose accounts a machine no longer has: those that were only discovered, and on no other
        machine. Return their names."""
        names = list[str]()
        for user_id in sorted(each for each in user_ids if each is not None):
            account = accounts.get(tx, domain_id, user_id)
            if account is not None and account.source == DISCOVERED and not kept.is_discovered(tx, user_id):
                if account.has_totp or accounts.instances(tx, [user_id]) or accounts.groups(tx, [user_id]):
                    continue  # an admin has enrolled or assigned him since
                self._users.delete_found(tx, account)
                names.append(account.name)
        return names

    def forget(self, tx: Tx, instance_id: int) -> int:
        """Delete what was discovered on an instance that is to be deleted, with the users who were discovered there
        alone, up to MOST_FORGOTTEN at a time; how many accounts and groups.

        The users are not dropped from memory: without password, seed and groups they are to a login what nobody is.
        """
        agent = repo.get(tx, instance_id)
        found = kept.discovered_users(tx, instance_id, MOST_FORGOTTEN)
        for key in found:
            kept.forget_discovered(tx, instance_id, *key)
        if agent is not None:
            self._unfound(tx, agent.domain_id, set(found.values()))
        return len(found)

    def _user(self, tx: Tx, agent: repo.Agent, account: FoundAccount, room: int) -> tuple[int | None, bool]:
        """Return the user that an account is, and whether it is new: a person's account becomes a user. What a host
        says of its rights there gives it none elsewhere. room: how many may be made."""
        known = accounts.named(tx, agent.domain_id, account.name)
        if known is not None:
            return known.id, False
        if not is_persons(account.uid) or not account_name(account.name) or room <= 0:
            return None, False
        return self._users.add_in(tx, agent.domain_id, UserChange(account.name), source=DISCOVERED), True

    # --- for admins -------------------------------------------------------------------------------------------

    async def newest(self, instance_id: int, limit: int, offset: int = 0) -> tuple[list[StoredReport], int]:
        """One page of a machine's reports, the newest first, and how many are kept."""

        def work(tx: Tx) -> tuple[list[StoredReport], int]:
            return kept.reports(tx, instance_id, limit, offset), kept.count_reports(tx, instance_id)

        return await self._store.read(work)

    async def privileges(self, instance_id: int) -> str:
        """Return the last privilege status of an agent as JSON; an empty object before the first one."""
        return await self._store.read(lambda tx: repo.privileges(tx, instance_id))

    async def drift(
        self, domain_id: int, instance_id: int | None, *, lasting: bool, limit: int, offset: int
    ) -> tuple[list[StoredDrift], int]:
        """One page of what others changed on a domain's machines, or on one, the newest first, and how many."""
        return await self._store.search(
            partial(
                kept.drift, domain_id=domain_id, instance_id=instance_id, lasting=lasting, limit=limit, offset=offset
            )
        )

    async def discovered(
        self, instance_id: int, kind: str, limit: int, offset: int = 0
    ) -> tuple[list[Discovered], int]:
        """One page of the accounts or the groups of a machine, by name, and how many."""
        return await self._store.search(lambda tx: kept.discovered(tx, instance_id, kind, limit, offset))


def is_persons(uid: int) -> bool:
    """Whether an account of that number is a person's, not the system's."""
    return LOWEST_UID <= uid <= HIGHEST_UID


def _found(discovery: Discovery | None, at: int) -> dict[_Key, Discovered]:
    """What was found, each once, as it is kept."""
    if discovery is None:
        return {}
    accounts = [(ACCOUNT, each.name, encode(each)) for each in discovery.accounts]
    groups = [(GROUP, each.name, encode(each)) for each in discovery.groups]
    return {(kind, name): Discovered(kind, name, None, json.dumps(told), at) for kind, name, told in accounts + groups}


def _told(report: Report) -> tuple[str, str]:
    """What is kept of a report, as JSON, and its outcome. Actions that failed come first."""
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
    """Put lists into an object, cut after LONGEST characters in all; `more` tells that they are cut."""
    room = LONGEST
    for name, entries in lists:
        texts: list[JSON] = []
        for each in entries:
            told = encode(each)
            room -= len(json.dumps(told))
            if room < 0:
                value["more"] = True
                break
            texts.append(told)  # type: ignore[arg-type]
        value[name] = texts
