"""What agents did and found. A report that comes twice is kept once, and does nothing the second time."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from sallyport.base.agentwire.report import Discovery, Drift, DriftKind, FoundAccount, PrivilegeStatus, Report
from sallyport.base.clock import Clock, now_us
from sallyport.base.command import JSON
from sallyport.base.wire import encode
from sallyport.endpoints.agents import orders_repo, repo
from sallyport.endpoints.agents import reports_repo as kept
from sallyport.endpoints.agents.desired import account_name
from sallyport.endpoints.agents.reports_repo import ACCOUNT, GROUP, Discovered, StoredDrift, StoredReport
from sallyport.endpoints.agents.states import States
from sallyport.endpoints.service import EndpointUsers
from sallyport.endpoints.trail import note
from sallyport.endpoints.users import repo as accounts
from sallyport.endpoints.users.model import DISCOVERED, Said
from sallyport.store.model import Store, Tx

LONGEST: Final = 32_768
"""Characters that are kept of the lists of a report or of a privilege status."""
MOST_PEOPLE: Final = 200
"""Accounts of a machine that become users whose source is `discovered`."""
LOWEST_UID, HIGHEST_UID = 1000, 59_999
"""Of accounts that are people's (login.defs(5); Debian's 60000 and above are the system's)."""
_PRIVILEGES: Final = (DriftKind.PRIVILEGE, DriftKind.SUDOERS)
_REST: Final = tuple(kind for kind in DriftKind if kind not in _PRIVILEGES)


class Reports:
    """The reports of all agents. users: told of those who are discovered."""

    def __init__(self, store: Store, users: EndpointUsers, states: States, clock: Clock = now_us) -> None:
        self._store = store
        self._users = users
        self._states = states
        self._clock = clock

    async def take(self, instance_id: int, report: Report) -> bool:
        """Keep a report; False: it came before. NotFound: there is no such agent."""
        names: list[str] = []
        domain_id = 0
        told, outcome = await trio.to_thread.run_sync(_told, report)
        found = await trio.to_thread.run_sync(_found, report.discovery, self._clock())

        def work(tx: Tx) -> bool:
            nonlocal domain_id
            agent, at = repo.found(tx, instance_id), self._clock()
            domain_id = agent.domain_id
            stored = StoredReport(0, instance_id, report.id, at, report.version, outcome, told)
            if not kept.add_report(tx, domain_id, stored):
                return False
            repo.applied(tx, instance_id, report.version, at)
            for each in report.outcomes:
                orders_repo.end(tx, instance_id, each.trigger, each.error, at)
            self._drift(tx, agent, report.drift, _REST, at)
            if report.discovery is not None:
                names.extend(self._discover(tx, agent, report.discovery, found, at))
            return True

        try:
            return await self._store.write(work)
        finally:
            self._users.drop(domain_id, *names)
            self._states.touch(instance_id)

    async def take_privileges(self, instance_id: int, status: PrivilegeStatus) -> None:
        """Keep the last privilege status of an agent, and its drift. NotFound: no such agent."""
        value: dict[str, JSON] = {"version": status.version}
        _put_lists(value, (("privileged", status.privileged),))
        told = json.dumps(value)

        def work(tx: Tx) -> None:
            agent, at = repo.found(tx, instance_id), self._clock()
            repo.keep_privileges(tx, instance_id, told, at)
            self._drift(tx, agent, status.drift, _PRIVILEGES, at)

        await self._store.write(work)

    def _drift(self, tx: Tx, agent: repo.Agent, found: Sequence[Drift], ending: Sequence[DriftKind], at: int) -> None:
        new = kept.note_drift(tx, agent.domain_id, agent.instance_id, found, ending, at)
        if new:
            told: dict[str, JSON] = {"drift": [f"{each.kind} {each.name} {each.detail}".strip() for each in new[:50]]}
            note(tx, "agent.drift", agent.domain_id, f"instance {agent.instance_id} {agent.name}", told, at=at)

    def _discover(
        self, tx: Tx, agent: repo.Agent, discovery: Discovery, found: Mapping[tuple[str, str], Discovered], at: int
    ) -> list[str]:
        """Keep what was found, and let people's accounts be users; whose names are to be dropped from memory. Nobody is
        gone for not being in a discovery that was cut off."""
        repo.mark_discovered(tx, agent.instance_id, at)
        unseen = [] if discovery.complete else kept.people(tx, agent.instance_id)
        unseen = [each for each in unseen if (ACCOUNT, each.name) not in found]
        names, room = list[str](), MOST_PEOPLE - len(unseen)
        users = {each.name: self._user(tx, agent, each, names, room) for each in discovery.accounts}
        rows = [replace(row, user_id=users[name]) if kind == ACCOUNT else row for (kind, name), row in found.items()]
        gone = kept.replace_discovered(tx, agent.instance_id, [*rows, *unseen])
        return names + self._unfound(tx, agent.domain_id, gone)

    def _unfound(self, tx: Tx, domain_id: int, user_ids: Sequence[int]) -> list[str]:
        """A machine has these users' accounts no more: who was only discovered, and on no other, is deleted."""
        names = list[str]()
        for user_id in user_ids:
            account = accounts.get(tx, domain_id, user_id)
            if account is not None and account.source == DISCOVERED and not kept.is_discovered(tx, user_id):
                if account.has_totp or accounts.machines(tx, [user_id]) or accounts.groups(tx, [user_id]):
                    continue  # an admin has enrolled or assigned him since
                self._users.delete_in(tx, account)
                names.append(account.name)
        return names

    def forget(self, tx: Tx, instance_id: int) -> None:
        """An instance is deleted, in this transaction, and with it who was discovered there alone. They are not dropped
        from memory: without password, seed and groups they are to a login what nobody is."""
        agent = repo.get(tx, instance_id)
        if agent is not None:
            self._unfound(tx, agent.domain_id, kept.replace_discovered(tx, instance_id, []))

    def _user(self, tx: Tx, agent: repo.Agent, account: FoundAccount, names: list[str], room: int) -> int | None:
        """The user that an account is, who is made if there is none and the account is a person's. What a host says of
        his rights there gives him none elsewhere. room: how many may be made."""
        known = accounts.named(tx, agent.domain_id, account.name)
        if known is not None:
            return known.id
        if not is_persons(account.uid) or not account_name(account.name) or len(names) >= room:
            return None
        names.append(account.name)
        return self._users.add_in(tx, agent.domain_id, Said(account.name), source=DISCOVERED)

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


def _found(discovery: Discovery | None, at: int) -> dict[tuple[str, str], Discovered]:
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
