"""The removal of a directory, as a job does it: first all people, who lose their access one after the other, groups and
units; then the directory itself with its secret, its mapping, its schedule and its jobs, the removal's own too."""

from collections.abc import Callable

import trio

from sallyport.directory import repo as directories
from sallyport.directory.entries.model import Run
from sallyport.directory.imports.applier import Applier
from sallyport.directory.imports.files import ImportFiles
from sallyport.store.model import Store, Tx


class Remover:
    """Removes directories."""

    def __init__(self, store: Store, files: ImportFiles, applier: Applier) -> None:
        self._store = store
        self._files = files
        self._applier = applier

    async def remove(self, run: Run, end: Callable[[Tx], None]) -> None:
        """Remove a run's directory; `end` is called in the transaction in which it goes. StoreError, OSError."""
        await self._applier.remove_unseen(run)

        def work(tx: Tx) -> list[str]:
            end(tx)
            return directories.delete(tx, run.directory_id)

        for name in await self._store.write(work):
            await trio.to_thread.run_sync(self._files.delete, name)
