"""All of the directories' services, wired: what the composition root, and the tests, hold of this area."""

from collections.abc import Mapping
from pathlib import Path

from sallyport.base.clock import Clock
from sallyport.directory.imports.files import ImportFiles
from sallyport.directory.imports.model import Read
from sallyport.directory.imports.service import Jobs
from sallyport.directory.principals.service import Principals
from sallyport.directory.removal import Removal
from sallyport.directory.revoking import Revocations
from sallyport.directory.runs.service import Runs
from sallyport.directory.schedules.service import Schedules
from sallyport.directory.service import Directories
from sallyport.metrics import DirectoryMetrics
from sallyport.store.model import Store
from sallyport.store.vault import Vault


class DirectoryArea:
    """The services of directories. readers: by the kind of directory."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        data_dir: Path,
        revocations: Revocations,
        readers: Mapping[str, Read],
        clock: Clock,
        metrics: DirectoryMetrics,
    ) -> None:
        files = ImportFiles(data_dir)
        self.principals = Principals(store)
        changed = self.principals.changed
        self.jobs = Jobs(store, vault, files, revocations, readers, clock, metrics=metrics, changed=changed)
        self.directories = Directories(store, vault, files, self.jobs, clock)
        self.removal = Removal(store, self.jobs, clock)
        self.schedules = Schedules(store, self.directories, clock)
        self.runs = Runs(store, files, self.directories, clock)

    async def restored(self) -> None:
        """The store was replaced as a whole. StoreError."""
        self.jobs.forget()
        await self.principals.load()
