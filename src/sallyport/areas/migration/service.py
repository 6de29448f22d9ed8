"""Imports by the API: the plan of a file, and the objects of a plan.

Endpoint users are written after the other objects, in transactions of their own, because their passwords are no
configuration, which the engine of `apply` writes and can undo. If the service stops in between, some users are missing,
so that less is admitted than planned. The next import of the same file adds only what is missing.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_network
from typing import BinaryIO, Final, cast

import trio
from pydantic_core import to_jsonable_python

from sallyport.areas.clients.changes import check_ranges
from sallyport.areas.configuration.exporting import exported
from sallyport.areas.configuration.item import Item, Plan
from sallyport.areas.configuration.service import Engine
from sallyport.areas.domains.service import Domains
from sallyport.areas.migration.child import ReaderLimits, translate_open
from sallyport.areas.migration.groups import resolved, sids_of
from sallyport.areas.migration.merging import Present, merged, present_kinds
from sallyport.areas.migration.translation import Finding, Options, Translation, Weight
from sallyport.areas.migration.uploads import NamelessFiles
from sallyport.areas.users.imports import Outcome
from sallyport.areas.users.imports import Planned as PlannedUser
from sallyport.base.errors import Conflict, Refused
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.store.model import Store, Tx
from sallyport.web.scope import Role

LIMITS: Final = ReaderLimits(cpu_s=30, octets=1 << 29, answer=2 << 20)
"""The limits of a file that was uploaded. Its result is parsed in the process that answers logins."""
PIECE: Final = 1 << 18
ARCHIVED: Final = "freeradius"
"""The format whose file is an archive of a folder."""
GroupsBySid = Callable[[int, Sequence[str]], Awaitable[Mapping[str, str]]]
"""A function that returns the names of a domain's groups by SID."""


ImportUsers = Callable[..., Awaitable[Sequence[PlannedUser]]]
"""The function `import_users` of endpoint users, for a store and the users of all domains."""
USERS: Final = 50
"""Maximum number of users in one transaction. Each takes up to 1 ms."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of a file.

    people: the users that are new or change, each with its plan. unchanged: the number of users that are present
    already. name: a digest of the file, the options and the plan. unknown_groups: SIDs without a name.
    """

    plan: Plan
    found: Translation
    people: Sequence[tuple[Item, PlannedUser]]
    unchanged: int
    name: str
    unknown_groups: list[str]


class Import:
    """Imports of uploaded files. One file is read at a time, because a reader takes a processor and much memory. A
    tenant has one file at a time (`uploads`), so waiting tenants take turns."""

    def __init__(
        self,
        engine: Engine,
        domains: Domains,
        groups_by_sid: GroupsBySid,
        import_users: ImportUsers,
        files: NamelessFiles,
        store: Store,
    ) -> None:
        self._engine = engine
        self._domains = domains
        self._groups_by_sid = groups_by_sid
        self._import_users = import_users
        self._files = files
        self._store = store
        self._one = trio.CapacityLimiter(1)

    async def plan(
        self, tenant_id: int, domain_id: int, form: str, file: BinaryIO, name: str, options: Options, by: Role | None
    ) -> Planned:
        """Return the plan of a file. by: the role of the caller; None for the installation's administrator. Raises
        NotFound, Invalid, Forbidden, Conflict, StoreError."""
        domain = self._domains.table.present(domain_id).name
        options = replace(options, domain=domain)
        read = partial(self._read, form, file, name, options)
        found = await trio.to_thread.run_sync(read, limiter=self._one)
        sids, known = sids_of(found), dict(options.groups)
        if sids:
            known = {**await self._groups_by_sid(domain_id, sids), **known}
            found = resolved(found, known, options.decisions)
        present = await self._present(tenant_id, present_kinds(found))
        found = await trio.to_thread.run_sync(merged, found, domain, present)
        await self._check_networks(tenant_id, found, by)
        users = [each for each in found.items if each.kind == "user"]
        people = list(zip(users, await self._users(domain_id, users, apply=False), strict=True))
        found = _without_refused(found, people)
        plan = await self._engine.plan(tenant_id, found.items, manages=False)
        writing = [each for each in people if each[1].outcome in (Outcome.NEW, Outcome.CHANGED)]
        digest = await trio.to_thread.run_sync(_digest, file, options, plan, writing, found)
        unchanged = sum(each.outcome is Outcome.UNCHANGED for _, each in people)
        return Planned(plan, found, writing, unchanged, digest, [sid for sid in sids if sid not in known])

    def _read(self, form: str, file: BinaryIO, name: str, options: Options) -> Translation:
        with self._files.unpacked() if form == ARCHIVED else nullcontext("") as folder:
            return translate_open(form, file, name, options, LIMITS, folder)

    async def _users(self, domain_id: int, users: Sequence[Item], *, apply: bool) -> list[PlannedUser]:
        """Return the plans of users. apply: whether to write them too, in several transactions."""
        rows = [{name: each.fields[name] for name in ("userName", "password")} for each in users]
        parts = [rows[at : at + USERS] for at in range(0, len(rows), USERS)]
        return [each for part in parts for each in await self._import_users(domain_id, part, apply=apply)]

    async def write(self, domain_id: int, planned: Planned, name: str, *, override: bool = False) -> Planned:
        """Write a plan, and return what was written. name: that of the plan that the admin has seen. override: whether
        it may change objects that files manage. Raises Conflict, StoreError. If a user is refused after the other
        objects were written, a finding names the user, and the users from the same transaction on are not written."""
        if undecided := planned.found.named(Weight.UNDECIDED):
            raise Conflict(f"{counted(len(undecided), 'policy', 'policies')} must be decided first")
        if name != planned.name:
            raise Conflict("the file, the options or the configuration differ from those of the plan: make a new plan")
        await self._engine.apply(planned.plan, override=override)
        for at in range(0, len(planned.people), USERS):
            part = [item for item, _ in planned.people[at : at + USERS]]
            try:
                await self._users(domain_id, part, apply=True)
            except Refused as error:
                return _without_users(planned, at, error)
        return planned

    async def _present(self, tenant_id: int, kinds: Sequence[str]) -> Present:
        if not kinds:
            return {}
        present = await self._engine.present(tenant_id, kinds)

        def shown() -> dict[str, list[Row]]:
            own = self._engine.kinds(kinds)
            return {kind.name: cast("list[Row]", exported(kind, present.objects[kind.name])) for kind in own}

        return await trio.to_thread.run_sync(shown)

    async def _check_networks(self, tenant_id: int, found: Translation, by: Role | None) -> None:
        """Raise Forbidden or Conflict if a client's address is not allowed for the caller. The files of `apply` come
        from the installation's administrator, to whom less is forbidden."""
        clients = [each for each in found.items if each.kind == "client"]

        def check(tx: Tx) -> None:
            networks = [ip_network(str(each.fields["address"]), strict=False) for each in clients]
            check_ranges(tx, tenant_id, networks, by)

        await self._store.read(check)


def _without_refused(found: Translation, people: Sequence[tuple[Item, PlannedUser]]) -> Translation:
    """Return a translation without its users. Those that cannot be imported become findings."""
    refused = [
        Finding(Weight.LEFT_OUT, item.name, item.source, f"the user cannot be imported: {each.reason}")
        for item, each in people
        if each.outcome is Outcome.REFUSED
    ]
    return Translation([each for each in found.items if each.kind != "user"], [*found.findings, *refused])


def _without_users(planned: Planned, start: int, error: Refused) -> Planned:
    """Return a plan without the users from `start` on, which were not written because of an error."""
    missing = counted(len(planned.people) - start, "user")
    text = f"{error}; {missing} not written, all other objects were: import the file again"
    finding = Finding(Weight.LEFT_OUT, "users", planned.people[start][0].source, text)
    return replace(
        planned,
        people=planned.people[:start],
        found=replace(planned.found, findings=[finding, *planned.found.findings]),
    )


def _digest(
    file: BinaryIO, options: Options, plan: Plan, people: Sequence[tuple[Item, PlannedUser]], found: Translation
) -> str:
    """Return a digest of everything that a person has seen, and of the file with its secrets."""
    digest = hashlib.sha256()
    file.seek(0)
    while piece := file.read(PIECE):
        digest.update(piece)
    steps = [(each.sign, each.kind.name, each.identity, to_jsonable_python(each.fields)) for each in plan.changes]
    users = [(item.name, each.outcome, [*each.changes]) for item, each in people]
    seen = [options.as_json(), steps, users, [each.as_json() for each in found.findings]]
    digest.update(json.dumps(seen, sort_keys=True).encode())
    return digest.hexdigest()
