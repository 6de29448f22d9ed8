"""Create the services of directories, for the composition root and the tests."""

from collections.abc import Callable, Mapping
from pathlib import Path

from sallyport.areas.directory.imports.files import ImportFiles
from sallyport.areas.directory.imports.handover import Handover
from sallyport.areas.directory.imports.job import Check, Read, Revocations
from sallyport.areas.directory.imports.service import Jobs
from sallyport.areas.directory.mappings.service import Mappings
from sallyport.areas.directory.principals import Principals
from sallyport.areas.directory.runs.service import Runs
from sallyport.areas.directory.schedules.service import Schedules
from sallyport.areas.directory.service import Directories
from sallyport.areas.directory.trial import Trials
from sallyport.base.clock import Clock
from sallyport.metrics import DirectoryMetrics
from sallyport.nodes.periodic import store_of_leader
from sallyport.nodes.service import Cluster
from sallyport.store.model import Engine
from sallyport.store.vault import Vault


class DirectoryArea:
    """The services of directories.

    readers: functions that read directories, by kind of directory. checks: functions that test directories, by kind of
    directory. advice: a function that `trial.Trials` describes.
    """

    def __init__(
        self,
        store: Engine,
        vault: Vault,
        data_dir: Path,
        cluster: Cluster,
        revocations: Revocations,
        readers: Mapping[str, Read],
        checks: Mapping[str, Check],
        clock: Clock,
        metrics: DirectoryMetrics,
        advice: Callable[[int], list[str]] = lambda _: [],
    ) -> None:
        files = ImportFiles(data_dir)
        self.principals = Principals(store)
        changed = self.principals.changed
        self.jobs = Jobs(store, vault, files, cluster, revocations, readers, clock, metrics=metrics, changed=changed)
        self.handover = Handover(store_of_leader(store, cluster), cluster, self.jobs)
        self.directories = Directories(store, vault, files, self.jobs, clock)
        self.trials = Trials(self.directories, checks, advice, clock)
        self.mappings = Mappings(store, self.directories, clock)
        self.schedules = Schedules(store, self.directories, clock)
        self.runs = Runs(store, files, cluster, self.directories, clock)

    async def restored(self) -> None:
        """Cancel the running jobs and load the principals again. Call this method after a backup has replaced the
        store. Raises StoreError if the store cannot be read."""
        self.jobs.forget()
        await self.principals.load()
