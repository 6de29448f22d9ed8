"""The certificates of `sallyport cert` on every node: encrypted rows of the store, and files on each machine.

The programs that use certificates read files. So if the store has a newer row, each node writes the row to a file. A
node looks for newer rows at its start and after an announcement. A command works on the files, and its changes are
committed to the store before any file is changed. If two nodes run commands at the same time, one of the commands finds
newer rows in the store, and runs again. So no change is lost.

With SQLite, only the files are used. If a backup of PostgreSQL is restored to SQLite, its rows become files.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

import structlog
import trio

from sallyport.base.errors import Conflict, SallyportError
from sallyport.certs.folder import CertificateFolder
from sallyport.store.model import Engine, Tx
from sallyport.store.vault import Vault

T = TypeVar("T")
LOOK_S: Final = 5.0
"""Maximum time in seconds between two reads of the table, in case an announcement is lost."""
TRIES: Final = 5

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Row:
    """The row of a certificate file. name: the path of the file, relative to the folder. version: a number for all
    files together; it grows when any file changes."""

    name: str
    content: bytes
    version: int


class CertificateFiles(Protocol):
    """The files of `sallyport cert` on this machine. folder: the folder of the files."""

    folder: CertificateFolder

    async def change(self, work: Callable[[CertificateFolder], T]) -> T:
        """Run `work` on the files in a thread, and store its changes for all nodes. Raises StoreError, and the errors
        of `work`."""

    async def load(self) -> None:
        """If the store has newer versions of the files, write them to the files. Call this method at the start and
        after a restore. Raises StoreError, SecretError."""

    def changed(self) -> None:
        """Make `run` look for newer files in the store at once."""

    async def run(self) -> None:
        """Whenever the store has newer versions of the files, write them to the files. Continue until cancelled."""


class OwnFiles:
    """The certificate files if there is only one node."""

    def __init__(self, store: Engine, vault: Vault, folder: CertificateFolder) -> None:
        self.folder = folder
        self._store = store
        self._vault = vault

    async def change(self, work: Callable[[CertificateFolder], T]) -> T:
        return await trio.to_thread.run_sync(work, self.folder)

    async def load(self) -> None:
        """Write the certificates in the store to files, and delete their rows. The store has such rows only after a
        backup of PostgreSQL was restored. If the folder already has an authority, delete the rows without writing
        files."""
        rows = await self._store.read(partial(_newer, than=0))
        if rows:
            if not self.folder.ca.exists():
                await trio.to_thread.run_sync(self.folder.adopt, _opened(self._vault, rows))
            await self._store.write(lambda tx: tx.execute("delete from certificate_files"))

    def changed(self) -> None:
        """Do nothing."""

    async def run(self) -> None:
        """Do nothing."""


class SharedFiles:
    """The certificate files of a node that shares a PostgreSQL database with other nodes."""

    def __init__(self, store: Engine, vault: Vault, folder: CertificateFolder) -> None:
        self.folder = folder
        self._store = store
        self._vault = vault
        self._version = 0  # the version of the newest row that this node has written to a file
        self._one = trio.Lock()
        self._announced = trio.Event()

    async def change(self, work: Callable[[CertificateFolder], T]) -> T:
        """Run `work` on the files in a thread, and store its changes for all nodes. If another node has changed the
        files in the meantime, try again. Raises Conflict if TRIES attempts were not enough. Raises StoreError, and the
        errors of `work`."""
        async with self._one:
            for _ in range(TRIES):
                await self._fetch()
                made: dict[Path, bytes] = {}
                result = await trio.to_thread.run_sync(work, self.folder.staged(made.__setitem__))
                if await self._keep({str(each.relative_to(self.folder.path)): made[each] for each in made}):
                    await self._fetch()
                    return result
        raise Conflict("other nodes change certificates at the same time: try again")

    async def load(self) -> None:
        """If the store has newer versions of the files, write them to the files.

        If the store has no authority, first store the files of this node for all nodes. If the authority in the store
        is not the authority in the folder, first rename the folder.
        """
        async with self._one:
            self._version = 0
            own = await trio.to_thread.run_sync(self.folder.files)
            rows = await self._store.read(partial(_newer, than=0))
            authority = next((each for each in rows if each.name == "ca.pem"), None)
            if authority is None and "ca.pem" in own:
                await self._keep(own)
            elif authority is not None and own.get("ca.pem") not in {None, *_opened(self._vault, [authority]).values()}:
                aside = self.folder.path.with_name(f"{self.folder.path.name}.before-{int(time.time())}")
                self.folder.path.rename(aside)
                log.warning("certificates_replaced", former=str(aside))
            await self._fetch()

    def changed(self) -> None:
        self._announced.set()

    async def run(self) -> None:
        while True:
            with trio.move_on_after(LOOK_S):
                await self._announced.wait()
            self._announced = trio.Event()
            try:
                async with self._one:
                    await self._fetch()
            except SallyportError as error:
                log.warning("certificates_not_read", error=str(error))

    async def _fetch(self) -> None:
        rows = await self._store.read(partial(_newer, than=self._version))
        if rows:
            await trio.to_thread.run_sync(self.folder.adopt, _opened(self._vault, rows))
            self._version = max(each.version for each in rows)

    async def _keep(self, files: Mapping[str, bytes]) -> bool:
        """Store files for all nodes. If the store has newer files than this node, store nothing and return False."""
        sealed = [(name, self._vault.seal(octets, _identity(name))) for name, octets in files.items()]

        def keep(tx: Tx) -> bool:
            tx.execute("lock table certificate_files in share row exclusive mode")
            newest = tx.value(int, "select max(version) from certificate_files") or 0
            if newest != self._version:
                return False
            tx.insert(
                "certificate_files",
                ("name", "content"),
                sealed,
                same={"version": newest + 1},
                on_conflict="on conflict (name) do update set content = excluded.content, version = excluded.version",
            )
            return True

        return await self._store.write(keep)


def _newer(tx: Tx, than: int) -> list[_Row]:
    sql = "select name, content, version from certificate_files where version > :than order by version, name"
    return tx.all(_Row, sql, than=than)


def _opened(vault: Vault, rows: list[_Row]) -> dict[str, bytes]:
    """Return the decrypted content of each row, by the name of the file. Raises SecretError."""
    return {each.name: vault.open(each.content, _identity(each.name)) for each in rows}


def _identity(name: str) -> str:
    return f"certificate_files/{name}"
