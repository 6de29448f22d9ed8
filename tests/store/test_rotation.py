"""Rotation of the master key: no value stays under the old key, and none is lost wherever the rotation stops."""

import re
from functools import partial
from pathlib import Path

import pytest

from sallyport import store as package
from sallyport.areas.users.accounts.account import UserChange
from sallyport.areas.users.instances.instance import Instance
from sallyport.base.errors import Conflict, SecretError, StoreError
from sallyport.base.secret import Secret
from sallyport.settings.master_key import KEY_FILE
from sallyport.store.model import Store, T, Tx, Work
from sallyport.store.rotation import Rotation
from sallyport.store.sealed import BATCH, Sealed, check_keys
from sallyport.store.vault import MasterKeys, Vault, load_master_keys
from tests.areas import Areas, areas, clock, declared
from tests.areas.did.world import identity

__all__ = ["areas", "clock"]
SEALING = {
    "areas/did/credentials/repo.py",
    "areas/did/dids/service.py",
    "areas/directory/imports/collect.py",
    "areas/factors/bypass_codes/repo.py",
    "areas/directory/service.py",
    "areas/agents/rotation.py",
    "areas/agents/signers.py",
    "areas/agents/states.py",
    "areas/users/repo.py",
    "areas/certificates/service.py",
    "areas/clients/repo.py",
    "areas/configuration/transactions.py",
    "areas/policy/bypass/service.py",
    "areas/login/first/settings.py",
    "areas/login/second/session.py",  # devices keep a State for two minutes
    "areas/mfa/service.py",
    "nodes/answers.py",  # the console keeps an answer for two minutes
    "nodes/certificates.py",
    "store/rotation.py",
    "areas/signin/repo.py",
}
_, SEALED_COLUMNS = declared()
LATE_S = 0.05


def test_every_sealed_column_is_known() -> None:
    """Each module that seals values has its columns in the `sealed` of its area. A new module must be added here."""
    root = Path(package.__file__).parents[1]
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"vault\.seal\(", path.read_text("utf-8"))
    }
    assert found == SEALING


def rotation_of(areas: Areas, vault: Vault, store: Store | None = None) -> Rotation:
    """Return the rotation of the areas' keys. store: replaces the store of the areas."""
    return Rotation(store or areas.store, vault, lambda: SEALED_COLUMNS, areas.clock, late_s=LATE_S)


async def everything(areas: Areas) -> None:
    """Add one sealed value to each column, and more users than a batch has."""
    await areas.client()

    def add_users(tx: Tx) -> None:
        for number in range(BATCH + 3):
            areas.users.add_in(tx, areas.domain, UserChange(f"user{number}", password=b"secret"))

    await areas.store.write(add_users)
    enrolment = await areas.seeds.enrol(areas.domain, "user0")
    assert enrolment
    some = await identity(areas)
    await some.issue(password="hunter2")
    await areas.instances.add(areas.domain, Instance("host", os_id=1))
    for place in SEALED_COLUMNS:
        await areas.store.write(partial(fill, areas.vault, place))


def fill(vault: Vault, place: Sealed, tx: Tx) -> None:
    """Put a sealed value into the first row of a table, if it has none. An empty table gets a row of zeros."""
    if tx.rows(f"select 1 from {place.table} where length({place.column}) > 0"):  # noqa: S608
        return
    if not tx.rows(f"select 1 from {place.table}"):  # noqa: S608
        columns = [
            (str(name), str(kind))
            for _, name, kind, required, _, primary in tx.rows(f"pragma table_info({place.table})")
            if required or primary
        ]
        zero = {"text": "", "bytea": b""}
        row = [1 if name == "id" or name.endswith("_id") else zero.get(kind.lower(), 0) for name, kind in columns]
        tx.insert(place.table, [name for name, _ in columns], [row])
    key = tx.rows(f"select {', '.join(place.key)} from {place.table} order by 1 limit 1")[0]  # noqa: S608
    where = " and ".join(f"{name} = :{name}" for name in place.key)
    tx.execute(
        f"update {place.table} set {place.column} = :sealed where {where}",  # noqa: S608
        sealed=vault.seal(b"secret", place.identity.format(*key)),
        **dict(zip(place.key, key, strict=True)),
    )


async def opened(store: Store, vault: Vault) -> dict[str, list[bytes]]:
    """Return the opened values of each column. SecretError."""
    found: dict[str, list[bytes]] = {}
    for place in SEALED_COLUMNS:
        sql = f"select {', '.join(place.key)}, {place.column} from {place.table} where {place.column} is not null"  # noqa: S608
        for *key, sealed in await store.read(lambda tx, sql=sql: tx.rows(sql)):
            assert isinstance(sealed, bytes)
            found.setdefault(f"{place.table}.{place.column}", []).append(
                vault.open(sealed, place.identity.format(*key))
            )
    return found


def kept_keys(areas: Areas, directory: Path) -> Vault:
    """Return the areas' vault, with its key in a file."""
    (directory / KEY_FILE).write_text(bytes(32).hex())
    areas.vault.file = directory / KEY_FILE
    return areas.vault


async def test_a_store_is_checked_against_the_keys(areas: Areas) -> None:
    """A store with a value of another master key in any column is refused before it replaces the present store."""
    await areas.store.read(lambda tx: check_keys(tx, SEALED_COLUMNS, Vault(Secret(b"1" * 32))))
    await everything(areas)
    await areas.store.read(lambda tx: check_keys(tx, SEALED_COLUMNS, areas.vault))
    other = Vault(MasterKeys({2: Secret(b"1" * 32)}))
    for place in SEALED_COLUMNS:
        with pytest.raises(SecretError, match=f"{place.identity.partition('/')[0]}/.* needs version 2"):
            await areas.store.write(partial(check_with, areas.vault, place, other))


def check_with(vault: Vault, place: Sealed, other: Vault, tx: Tx) -> None:
    """Seal one value of a column under another master key, and check the store. The error rolls the change back."""
    *key, _ = tx.rows(
        f"select {', '.join(place.key)}, 1 from {place.table} where {place.column} is not null limit 1"  # noqa: S608
    )[0]
    where = " and ".join(f"{name} = :{name}" for name in place.key)
    tx.execute(
        f"update {place.table} set {place.column} = :sealed where {where}",  # noqa: S608
        sealed=other.seal(b"secret", place.identity.format(*key)),
        **dict(zip(place.key, key, strict=True)),
    )
    check_keys(tx, SEALED_COLUMNS, vault)


async def test_a_key_that_only_the_memory_has_is_missing_at_the_next_start(areas: Areas, tmp_path: Path) -> None:
    """After a rotation, the process opens old values, but the next start does not. The error says which file has the
    key and where to add it.
    """
    vault = kept_keys(areas, tmp_path)
    old = vault.seal(b"secret", "a/1")
    await rotation_of(areas, vault).rotate()
    assert vault.open(old, "a/1") == b"secret"
    file = tmp_path / KEY_FILE
    message = (
        f"a/1 cannot be decrypted: it needs version 1 of the master key, which {file} does not have: "
        f"add the line in {file}.1 to {file}"
    )
    with pytest.raises(SecretError, match=f"^{re.escape(message)}$"):
        vault.at_next_start().open(old, "a/1")
    started = vault.at_next_start()
    file.write_text(file.read_text() + (tmp_path / f"{KEY_FILE}.1").read_text())
    assert vault.at_next_start().open(old, "a/1") == b"secret"
    with pytest.raises(SecretError, match="restart the service"):
        started.open(old, "a/1")


def test_a_missing_key_of_the_environment_is_named() -> None:
    """If the keys come from the environment, the error names the variable and the form of the entry."""
    old = Vault(Secret(bytes(32))).seal(b"secret", "a/1")
    with pytest.raises(SecretError, match="SALLYPORT_MASTER_KEY does not have: add 1:KEY to it"):
        Vault(MasterKeys({2: Secret(bytes(32))})).open(old, "a/1")


def test_a_missing_key_without_its_file_is_named(tmp_path: Path) -> None:
    """If no file has the old key, the error names the file to which its line belongs."""
    old = Vault(Secret(bytes(32))).seal(b"secret", "a/1")
    (tmp_path / KEY_FILE).write_text(f"2:{'00' * 32}")
    with pytest.raises(SecretError, match=f"add the line 1:KEY to {tmp_path / KEY_FILE}, .* moved to master.key.1$"):
        Vault(MasterKeys({2: Secret(bytes(32))}, tmp_path / KEY_FILE)).open(old, "a/1")


async def test_everything_is_sealed_under_the_new_key(areas: Areas, tmp_path: Path) -> None:
    """Each value opens under the new key alone, unchanged. The old key is in a file of its own."""
    await everything(areas)
    before = await opened(areas.store, areas.vault)
    assert len(before) == len(SEALED_COLUMNS)
    done = await Rotation(
        areas.store, kept_keys(areas, tmp_path), lambda: SEALED_COLUMNS, areas.clock, late_s=LATE_S
    ).rotate()
    assert (done.sealed, done.version) == (sum(map(len, before.values())), 2)
    keys = load_master_keys(tmp_path, {}, may_make=False)
    assert list(keys.keys) == [2]
    assert await opened(areas.store, Vault(keys)) == before
    with pytest.raises(SecretError):
        await opened(areas.store, Vault(Secret(bytes(32))))
    assert (tmp_path / f"{KEY_FILE}.1").read_text() == f"1:{bytes(32).hex()}\n"
    assert done.old_file == str(tmp_path / f"{KEY_FILE}.1")


async def test_the_service_continues_after_a_rotation(areas: Areas, tmp_path: Path) -> None:
    """Values from before the rotation still open, later ones are sealed under the new key, and another rotation makes a
    third key.
    """
    some = await identity(areas)
    await areas.add_user(areas.domain, "ann", b"secret")
    vault = kept_keys(areas, tmp_path)
    in_flight = vault.seal(b"x", "radius/state/1")
    rotation = rotation_of(areas, vault)
    assert (await rotation.rotate()).version == 2
    areas.users.forget()
    assert await areas.users.load(areas.domain, "ann")
    assert vault.open(in_flight, "radius/state/1") == b"x"
    await some.issue(password="hunter2")
    assert (await rotation.rotate()).version == 3
    assert list(load_master_keys(tmp_path, {}, may_make=False).keys) == [3]
    assert sorted(path.name for path in tmp_path.glob(f"{KEY_FILE}*")) == [KEY_FILE, f"{KEY_FILE}.1", f"{KEY_FILE}.2"]
    assert await opened(areas.store, Vault(load_master_keys(tmp_path, {}, may_make=False)))


class Failing:
    """A store that fails from one of its writes on."""

    def __init__(self, store: Store, after: int) -> None:
        self._store = store
        self._left = after

    async def read(self, work: Work[T]) -> T:
        return await self._store.read(work)

    async def write(self, work: Work[T]) -> T:
        if not self._left:
            raise StoreError("the power is gone")
        self._left -= 1
        return await self._store.write(work)


@pytest.mark.parametrize("after", range(7))
async def test_wherever_it_stops_nothing_is_lost(areas: Areas, tmp_path: Path, after: int) -> None:
    """After a crash at any write the next start opens everything, and the next rotation continues with the same key."""
    await everything(areas)
    before = await opened(areas.store, areas.vault)
    failing = Failing(areas.store, after)
    with pytest.raises(StoreError):
        await rotation_of(areas, kept_keys(areas, tmp_path), failing).rotate()  # type: ignore[arg-type]
    started = Vault(load_master_keys(tmp_path, {}, may_make=False))
    assert started.versions == (1, 2)
    assert await opened(areas.store, started) == before
    done = await rotation_of(areas, started).rotate()
    assert done.version == 2
    assert await opened(areas.store, Vault(load_master_keys(tmp_path, {}, may_make=False))) == before


class Late(Failing):
    """A store in which another write follows the first one."""

    def __init__(self, store: Store, late: Work[int]) -> None:
        super().__init__(store, after=100)
        self._late: list[Work[int]] = [late]

    async def write(self, work: Work[T]) -> T:
        done = await super().write(work)
        while self._late:
            await super().write(self._late.pop())
        return done


async def test_a_late_write_is_sealed_again(areas: Areas, tmp_path: Path) -> None:
    """A value that was sealed under the old key, and is written during the rotation, is sealed again, and counts."""
    client = await areas.client()
    vault = kept_keys(areas, tmp_path)
    late = vault.seal(b"late", f"radius_clients/{client.id}/secret")
    store = Late(areas.store, lambda tx: tx.execute("update radius_clients set secret = :s", s=late))
    rotated = await rotation_of(areas, vault, store).rotate()  # type: ignore[arg-type]
    assert rotated.sealed == 2
    found = await opened(areas.store, Vault(load_master_keys(tmp_path, {}, may_make=False)))
    assert found == {"radius_clients.secret": [b"late"]}


async def test_a_value_that_does_not_open(areas: Areas, tmp_path: Path) -> None:
    """A value that cannot be opened stops the rotation with an error that names it. Both keys stay in the file."""
    client = await areas.client()
    await areas.store.write(lambda tx: tx.execute("update radius_clients set secret = :s", s=b"\1" + bytes(40)))
    with pytest.raises(SecretError, match=f"radius_clients/{client.id}/secret"):
        await Rotation(
            areas.store, kept_keys(areas, tmp_path), lambda: SEALED_COLUMNS, areas.clock, late_s=LATE_S
        ).rotate()
    assert list(load_master_keys(tmp_path, {}, may_make=False).keys) == [2, 1]


async def test_a_key_of_the_environment(areas: Areas) -> None:
    """With a key from the environment the operator adds the new key there. All values are then sealed under it, and no
    file is written.
    """
    await areas.client()
    with pytest.raises(Conflict, match="SALLYPORT_MASTER_KEY"):
        await rotation_of(areas, areas.vault).rotate()
    both = Vault(MasterKeys({1: Secret(bytes(32)), 2: Secret(b"2" * 32)}))
    done = await rotation_of(areas, both).rotate()
    assert (done.sealed, done.version, done.old_file) == (1, 2, "")
    assert await opened(areas.store, Vault(MasterKeys({2: Secret(b"2" * 32)})))
