"""Imports by the API: the plan of a file, and the objects of a plan."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_network
from typing import BinaryIO, Final, cast

import trio
from pydantic_core import to_jsonable_python

from sallyport.areas.clients.changes import check_ranges
from sallyport.areas.configuration.exporting import exported
from sallyport.areas.configuration.item import Plan
from sallyport.areas.configuration.service import Engine
from sallyport.areas.domains.service import Domains
from sallyport.areas.migration.child import ReaderLimits, translate_open
from sallyport.areas.migration.groups import resolved, sids_of
from sallyport.areas.migration.merging import Present, merged, present_kinds
from sallyport.areas.migration.translation import Options, Translation, Weight
from sallyport.base.errors import Conflict
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.store.model import Store, Tx
from sallyport.web.scope import Role

LIMITS: Final = ReaderLimits(cpu_s=30, octets=1 << 29, answer=2 << 20)
"""The limits of a file that was uploaded. Its result is parsed in the process that answers logins."""
PIECE: Final = 1 << 18
GroupsBySid = Callable[[int, Sequence[str]], Awaitable[Mapping[str, str]]]
"""A function that returns the names of a domain's groups by SID."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of a file. name: a digest of the file, the options and the plan. unknown_groups: SIDs without a name."""

    plan: Plan
    found: Translation
    name: str
    unknown_groups: list[str]


class Import:
    """Imports of uploaded files. One file is read at a time, because a reader takes a processor and much memory."""

    def __init__(self, engine: Engine, domains: Domains, groups_by_sid: GroupsBySid, store: Store) -> None:
        self._engine = engine
        self._domains = domains
        self._groups_by_sid = groups_by_sid
        self._store = store
        self._one = trio.CapacityLimiter(1)

    async def plan(
        self, tenant_id: int, domain_id: int, form: str, file: BinaryIO, name: str, options: Options, by: Role | None
    ) -> Planned:
        """Return the plan of a file. by: the role of the caller; None for the installation's administrator. Raises
        NotFound, Invalid, Forbidden, Conflict, StoreError."""
        domain = self._domains.table.present(domain_id).name
        options = replace(options, domain=domain)
        read = partial(translate_open, form, file, name, options, LIMITS)
        found = await trio.to_thread.run_sync(read, limiter=self._one)
        sids, known = sids_of(found), dict(options.groups)
        if sids:
            known = {**await self._groups_by_sid(domain_id, sids), **known}
            found = resolved(found, known, options.decisions)
        present = await self._present(tenant_id, present_kinds(found))
        found = await trio.to_thread.run_sync(merged, found, domain, present)
        await self._check_networks(tenant_id, found, by)
        plan = await self._engine.plan(tenant_id, found.items, manages=False)
        digest = await trio.to_thread.run_sync(_digest, file, options, plan, found)
        return Planned(plan, found, digest, [sid for sid in sids if sid not in known])

    async def write(self, planned: Planned, name: str) -> None:
        """Write a plan. name: that of the plan that the admin has seen. Raises Conflict, StoreError."""
        if undecided := planned.found.named(Weight.UNDECIDED):
            raise Conflict(f"{counted(len(undecided), 'policy', 'policies')} must be decided first")
        if name != planned.name:
            raise Conflict("the file, the options or the configuration differ from those of the plan: make a new plan")
        await self._engine.apply(planned.plan)

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


def _digest(file: BinaryIO, options: Options, plan: Plan, found: Translation) -> str:
    """Return a digest of everything that a person has seen, and of the file with its secrets."""
    digest = hashlib.sha256()
    file.seek(0)
    while piece := file.read(PIECE):
        digest.update(piece)
    steps = [(each.sign, each.kind.name, each.identity, to_jsonable_python(each.fields)) for each in plan.changes]
    seen = [options.as_json(), steps, [each.as_json() for each in found.findings]]
    digest.update(json.dumps(seen, sort_keys=True).encode())
    return digest.hexdigest()
