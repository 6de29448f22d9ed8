"""The entrance of directories: people, groups and units that other systems keep."""

from collections.abc import Collection, Mapping, Sequence

from sallyport.areas.directory import operations as api
from sallyport.areas.directory.configured import DirectoryKind
from sallyport.areas.directory.imports.files import ImportFiles
from sallyport.areas.directory.imports.handover import Handover
from sallyport.areas.directory.imports.job import Check, Read, Revocations
from sallyport.areas.directory.imports.readers import checks, readers
from sallyport.areas.directory.imports.service import Jobs
from sallyport.areas.directory.local_operations import local_operations
from sallyport.areas.directory.mappings.service import Mappings
from sallyport.areas.directory.principals import Principals
from sallyport.areas.directory.runs.service import Runs
from sallyport.areas.directory.schedules.ages import Ages
from sallyport.areas.directory.schedules.service import Schedules
from sallyport.areas.directory.service import Directories, DirectoryTrials
from sallyport.areas.domains.area import DomainsArea
from sallyport.areas.entrance import Area, Parts
from sallyport.metrics import DirectoryMetrics
from sallyport.shell.command import Command
from sallyport.store.erasure import DependentTable, Rows
from sallyport.store.foreign import PRINCIPALS
from sallyport.store.sealed import Sealed
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class DirectoryArea(Area):
    """The services of directories.

    read, check: functions that read and test directories, by kind of directory; the default ones read them over the
    network.
    """

    erased_rows = (
        Rows("directory_schedules", "directory schedules", "directory_id"),
        Rows("directory_runs"),
        Rows("directory_jobs", "imports"),
        Rows("directory_names", key="domain_id, name_key, user_id"),
        Rows(
            "directory_users",
            "directory users",
            parts=(DependentTable("directory_attributes", "user_id", "user_id"),),
            searched="domain_id",
        ),
        Rows("directory_groups", "directory groups", searched="domain_id"),
        Rows("directory_units", "organizational units"),
        Rows(
            "directories",
            "directories",
            parts=(DependentTable("directory_members", "directory_id, member_key, group_key, told", "directory_id"),),
        ),
    )
    sealed = (
        Sealed("directories", "secret", ("id",), "directories/{}/secret"),
        Sealed("directory_jobs", "secret", ("id",), "directory_jobs/{}/secret"),
    )

    def __init__(
        self,
        parts: Parts,
        domains: DomainsArea,
        revocations: Revocations,
        *,
        read: Mapping[str, Read] | None = None,
        check: Mapping[str, Check] | None = None,
    ) -> None:
        store, vault, cluster, clock = parts.store, parts.vault, parts.cluster, parts.clock
        self._domains, http_of = domains.service, domains.http_of
        metrics = DirectoryMetrics(parts.registry)
        metrics.watch_domains(self._domains.shown)
        read = readers(http_of, clock) if read is None else read
        check = checks(http_of, clock) if check is None else check
        files = ImportFiles(parts.settings.data_dir)
        self.principals = Principals(store, clock)
        changed = self.principals.changed
        self.jobs = Jobs(store, vault, files, cluster, revocations, read, clock, metrics=metrics, changed=changed)
        self.handover = Handover(parts.leader_store, cluster, self.jobs)
        self.directories = Directories(store, vault, files, self.jobs, clock)
        self.trials = DirectoryTrials(
            self.directories, check, lambda domain_id: http_of(domain_id).egress.advice(), clock
        )
        self.mappings = Mappings(store, self.directories, clock)
        self.schedules = Schedules(store, self.directories, clock)
        self.configured = (DirectoryKind(self.directories, self.mappings, self.schedules),)
        self.ages = Ages(store, lambda: self._domains.table, metrics, clock)
        self.runs = Runs(store, files, cluster, self.directories, clock)
        self.node_tasks = (self.jobs.run,)  # the node's own files, and jobs without a file
        self.leader_tasks = (self.schedules.run, self.ages.run, self.handover.run)
        self.foreign = {PRINCIPALS: self.principals.changed_elsewhere}

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations for admins and for directory agents."""
        return [
            api.operations(self.directories, self.trials, self.mappings, self.schedules, self._domains_of, gate),
            api.agent_operations(self.runs, gate),
        ]

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of imports."""
        return local_operations(self.directories, self._domains.id_of)

    def _domains_of(self, tenant_id: int) -> Collection[int]:
        return {domain.id for domain in self._domains.of_tenant(tenant_id)}

    async def prepare(self) -> None:
        """Load the groups and units of principals."""
        await self.principals.load()

    def forget(self) -> None:
        """Empty the cache of principals."""
        self.principals.forget()

    async def restored(self) -> None:
        """Cancel the running jobs, and load the principals again. Raises StoreError."""
        self.jobs.forget()
        await self.principals.load()
