"""Rotation of the master key: every sealed value is decrypted, and encrypted again under a new key.

A rotation can be interrupted at any point without a loss, and the next rotation continues it. The new key is written to
the key file before a value is sealed under it. A value is replaced only if it has not changed since it was read. When
no value is sealed under the old key any more, the old key moves from the key file to a file such as `master.key.1`.
Earlier backups need this file.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import trio

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict
from sallyport.base.secret import Secret
from sallyport.store import audit
from sallyport.store.model import Store, Tx, Value
from sallyport.store.sealed import Sealed, rows_of, sealed_of
from sallyport.store.vault import KEY_OCTETS, LAST, Vault, write_keys

LATE_S: Final = 1.0
"""Pause in seconds before another search for values under the old key. In this time, values that were sealed before the
rotation reach the store."""


@dataclass(frozen=True, slots=True)
class Rotated:
    """The result of a rotation.

    sealed: the number of values that were sealed again. version: the version of the new key. old_file: the path of the
    file with the old key; empty if the keys come from the environment.
    """

    sealed: int
    version: int
    old_file: str


async def _alone(_version: int) -> Sequence[str]:
    return ()


class Rotation:
    """The rotation of a store's master key.

    without: gets the version of a key, and returns the names of the other running nodes that do not have this version
    yet. late_s: see LATE_S.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        columns: Callable[[], Sequence[Sealed]],
        clock: Clock = now_us,
        *,
        without: Callable[[int], Awaitable[Sequence[str]]] = _alone,
        late_s: float = LATE_S,
    ) -> None:
        self._store = store
        self._columns = columns
        self._without = without
        self._vault = vault
        self._clock = clock
        self._late_s = late_s
        self._one = trio.Lock()

    async def rotate(self) -> Rotated:
        """Seal all values under a new key, or continue an interrupted rotation.

        Raises Conflict if another node does not have the new key. Raises Conflict if the keys come from the
        environment, and the environment contains only the old key. Raises SecretError if a value cannot be decrypted.
        Raises ConfigError, StoreError. After an error, both keys are kept.
        """
        async with self._one:
            await self._begin()
            sealed = await self._walk()
            while True:
                await trio.sleep(self._late_s)
                late = await self._walk()
                if not late:
                    break
                sealed += late
            return await self._end(sealed)

    async def _begin(self) -> None:
        """Write a new key to the key file, and use the new key from now on. Do nothing if an earlier call has already
        added a new key, or if the environment contains one."""
        versions = self._vault.versions
        new = versions[-1] if len(versions) > 1 else versions[-1] + 1
        if others := await self._without(new):
            raise Conflict(
                f"other nodes ({', '.join(others)}) do not have version {new} of the master key: on every node, add "
                f"{new}:NEW before the current key in master.key or SALLYPORT_MASTER_KEY (`openssl rand -hex 32` "
                "makes NEW), restart all nodes, and rotate again"
            )
        if len(versions) > 1:
            return
        if self._vault.file is None:
            raise Conflict(
                f"{self._vault.source} has no new key: set it to {new}:NEW,{versions[-1]}:OLD, restart the service, "
                "and rotate again"
            )
        if versions[-1] == LAST:
            raise Conflict(f"the master key cannot be rotated: its version {LAST} is the highest possible version")
        version, key = versions[-1] + 1, Secret(secrets.token_bytes(KEY_OCTETS))
        await trio.to_thread.run_sync(write_keys, self._vault.file, {**self._vault.keys, version: key})
        self._vault.add(version, key)

    async def _walk(self) -> int:
        """Seal again all values that are not sealed under the newest key. Return their number."""
        sealed = 0
        for column in self._columns():
            after: tuple[Value, ...] | None = None
            while True:
                rows = await self._store.read(partial(rows_of, column, after))
                if not rows:
                    break
                after = rows[-1][:-1]
                old = [row for row in rows if not self._vault.is_current(sealed_of(row))]
                if old:
                    sealed += await self._store.write(partial(self._seal, column, old))
        return sealed

    def _seal(self, column: Sealed, rows: list[tuple[Value, ...]], tx: Tx) -> int:
        where = " and ".join(f"{name} = :{name}" for name in column.key)
        sql = f"update {column.table} set {column.column} = :new where {where} and {column.column} = :old"  # noqa: S608
        sealed = 0
        for row in rows:
            key, old = dict(zip(column.key, row, strict=False)), sealed_of(row)
            identity = column.identity_of(row)
            new = self._vault.seal(self._vault.open(old, identity), identity)
            sealed += tx.execute(sql, new=new, old=old, **key)
        return sealed

    async def _end(self, sealed: int) -> Rotated:
        """Move the old keys from the key file to files of their own. The old keys stay in memory until the next start,
        because the State attribute of a pending login may be sealed under them."""
        keys, version, file, old_file = self._vault.keys, self._vault.versions[-1], self._vault.file, ""
        if file is not None:
            for each in self._vault.versions[:-1]:
                old_file = f"{file}.{each}"
                await trio.to_thread.run_sync(write_keys, Path(old_file), {each: keys[each]})
            await trio.to_thread.run_sync(write_keys, file, {version: keys[version]})
            self._vault.retire()
        entry: Callable[[Tx], None] = partial(_record, at=self._clock(), version=version)
        await self._store.write(entry)
        return Rotated(sealed, version, old_file)


def _record(tx: Tx, *, at: int, version: int) -> None:
    audit.record(
        tx, "store.key.rotate", at=at, tenant_id=audit.INSTALLATION, target=f"master key, now version {version}"
    )
