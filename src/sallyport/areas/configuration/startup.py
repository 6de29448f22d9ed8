"""The folder of the setting `apply`: the node with the lease applies it at its start, and again after each change.

A wrong folder changes nothing: what was applied last stays, with an event in the log, a metric, and a finding of
`doctor`.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
import trio

from sallyport.areas.configuration.files import FileKind, Tenant, read_folder
from sallyport.areas.configuration.item import Item, Prune
from sallyport.areas.configuration.references import References
from sallyport.areas.configuration.schemas import secret_names
from sallyport.areas.configuration.service import Engine
from sallyport.areas.tenancy.service import Tenancy
from sallyport.base.clock import Clock, iso
from sallyport.base.errors import SallyportError
from sallyport.base.wire import JSON, Row
from sallyport.metrics import ConfigurationMetrics
from sallyport.nodes.periodic import every

LOOK_S: Final = 30.0
Stamps = frozenset[tuple[str, int, int]]
"""The name, the time of the last change and the size of each file of a folder."""

log = structlog.get_logger()


@dataclass(slots=True)
class State:
    """What became of the folder. at: the time in microseconds of the last attempt; 0 if there was none. problem: why it
    was not applied, without secrets; empty if it was."""

    at: int = 0
    problem: str = ""


class Startup:
    """The task that applies a folder. folder: None if the setting is not set. environ: the environment."""

    def __init__(
        self,
        folder: Path | None,
        engine: Engine,
        tenancy: Tenancy,
        metrics: ConfigurationMetrics,
        clock: Clock,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._folder, self._engine, self._tenancy = folder, engine, tenancy
        self._metrics, self._clock, self._environ = metrics, clock, environ
        self._stamps: Stamps | None = None
        self.state = State()

    async def run(self) -> None:
        """Apply the folder when the task starts and after each change of its files, until cancelled. Files that could
        not be applied are tried again, because the rest of the configuration may have changed."""
        self._stamps = None
        await every(LOOK_S, self.look, failure="configuration_not_applied")

    def use(self, folder: Path | None) -> None:
        """Apply this folder from now on. None: apply no folder; what was applied stays."""
        if folder != self._folder:
            self._folder, self._stamps, self.state = folder, None, State()

    async def look(self) -> None:
        """Apply the folder if its files have changed since they were applied."""
        if self._folder is None:
            return
        folder = self._folder
        stamps = await trio.to_thread.run_sync(_stamps, folder)
        if stamps == self._stamps:
            return
        try:
            await self._apply(folder)
        except SallyportError as error:
            if self.state.problem != str(error):
                log.warning("configuration_not_applied", folder=str(folder), error=str(error))
            self.state = State(self._clock(), str(error))
            self._metrics.applied(succeeded=False)
            return
        self._stamps, self.state = stamps, State(self._clock())
        self._metrics.applied(succeeded=True)

    async def _apply(self, folder: Path) -> None:
        """Apply the files of each tenant, in one transaction for each. Raises SallyportError."""
        numbers = list((await self._tenancy.numbers()).values())
        for tenant, items in (await self._items(folder, numbers)).items():
            if tenant not in numbers:  # a wrong folder adds no tenant
                await self._engine.plan(0, items)
            tenant_id = await self._tenancy.ensure_tenant(*tenant)
            await self._engine.run(tenant_id, items, prune=Prune.MANAGED)

    async def _items(self, folder: Path, numbers: Sequence[Tenant]) -> dict[Tenant, list[Item]]:
        """Return the objects of the files by tenant. numbers: all tenants. Raises SallyportError."""
        own = (numbers or [(1, 1)])[0] if len(numbers) <= 1 else None
        return await trio.to_thread.run_sync(self._read, folder, own)

    def _read(self, folder: Path, tenant: Tenant | None) -> dict[Tenant, list[Item]]:
        kinds = [
            FileKind(kind.name, kind.key, kind.refers, kind.all_fields(), secret_names(kind), kind.texts)
            for kind in self._engine.kinds()
        ]
        found = read_folder(folder, kinds, tenant, References(folder, self._environ))
        return {numbers: [_item(row) for row in rows] for numbers, rows in found.items()}

    async def shown(self) -> JSON:
        """Return the folder and its state, for `doctor`. differs: the objects that differ from the files, because they
        were changed after this node has applied the files."""
        return {
            "folder": str(self._folder or ""),
            "at": iso(self.state.at) if self.state.at else "",
            "problem": self.state.problem,
            "differs": list[JSON](await self._differences()),
        }

    async def _differences(self) -> list[str]:
        if self._folder is None or self._stamps is None or self.state.problem:
            return []
        ids = {numbers: tenant_id for tenant_id, numbers in (await self._tenancy.numbers()).items()}
        found = list[str]()
        with suppress(SallyportError):  # a wrong change of the files is a problem when they are applied
            for tenant, items in (await self._items(self._folder, list(ids))).items():
                plan = await self._engine.plan(ids.get(tenant, 0), items)
                found += [f"{step.kind.name} {step.name}" for step in plan.changes]
        return found


def _item(row: Row) -> Item:
    fields = row["fields"]
    return Item(str(row["kind"]), str(row["name"]), fields if isinstance(fields, dict) else {}, str(row["source"]))


def _stamps(folder: Path) -> Stamps:
    """Return the stamps of all files below a folder. A folder that is missing has none."""
    found = set[tuple[str, int, int]]()
    for directory, _, names in os.walk(folder):
        for name in names:
            try:
                known = (Path(directory) / name).stat()
            except OSError:  # it was deleted meanwhile, or is a link to nothing
                continue
            found.add((str(Path(directory) / name), known.st_mtime_ns, known.st_size))
    return frozenset(found)
