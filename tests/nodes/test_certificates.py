"""Certificates of one node at another."""

import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from sallyport.base.errors import StoreError
from sallyport.certs.authority import common_name
from sallyport.certs.folder import CertificateFolder, present
from sallyport.nodes.certificates import OwnFiles, SharedFiles
from tests.areas import Areas, running_store, stored
from tests.certs.conftest import made
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres
from tests.waiting import until

__all__ = ["made"]

pytestmark = needs_postgres
BOB = "bob@example.org"


@pytest.fixture
async def nodes(pair: Pair, made: Path) -> AsyncIterator[tuple[Areas, Areas]]:
    """Yield two nodes. The first had an authority when it moved to PostgreSQL, and the second starts after it."""
    one, two = pair.one, pair.two
    shutil.copytree(made / "certs", one.settings.data_dir / "certs")
    await one.certificate_files.load()
    await two.certificate_files.load()
    async with trio.open_nursery() as nursery:
        for each in (one, two):
            nursery.start_soon(each.certificate_files.run)
        yield one, two
        nursery.cancel_scope.cancel()


async def test_a_node_has_the_certificates_of_the_others(nodes: tuple[Areas, Areas], made: Path) -> None:
    """A node that starts has the authority and all certificates. One that is issued, and one that is revoked, is known
    to the others within a second."""
    one, two = nodes
    assert two.certificate_files.folder.files() == CertificateFolder(made).files()
    used = two.certificates.server()
    issued = await two.certificate_files.change(lambda folder: folder.issue(BOB, present()))
    await until(one.certificate_files.folder.client(BOB).exists)
    assert two.certificates.server() is used  # no listener has a reason to load the files again
    await one.certificate_files.change(lambda folder: folder.revoke(BOB, present()))

    def revoked() -> set[str]:
        return {each.name for each in two.certificate_files.folder.issued() if each.revoked}

    await until(lambda: revoked() == {common_name(issued)})
    await until(lambda: two.certificates.server() is not used)


async def test_changes_at_the_same_time(nodes: tuple[Areas, Areas]) -> None:
    """Two nodes that issue certificates at the same time both have both."""
    names = BOB, "cid@example.org"
    async with trio.open_nursery() as nursery:
        for areas, name in zip(nodes, names, strict=True):
            nursery.start_soon(areas.certificate_files.change, partial(_issue, name))
    for areas in nodes:
        for name in names:
            await until(areas.certificate_files.folder.client(name).exists)


def _issue(name: str, folder: CertificateFolder) -> None:
    folder.issue(name, present())


async def test_a_failed_commit_changes_no_file(nodes: tuple[Areas, Areas]) -> None:
    """A certificate that the store does not keep is on no disk."""
    one, _ = nodes
    await one.store.write(lambda tx: tx.execute("alter table certificate_files add check (version < 2)"))
    with pytest.raises(Exception, match="certificate_files"):
        await one.certificate_files.change(partial(_issue, BOB))
    assert not one.certificate_files.folder.client(BOB).exists()


async def test_a_node_with_another_authority(nodes: tuple[Areas, Areas], made: Path, tmp_path: Path) -> None:
    """A node that had an authority of its own takes that of the others. Its files are kept beside."""
    one, _ = nodes
    third = tmp_path / "third"
    other = CertificateFolder(third)
    await trio.to_thread.run_sync(other.make, "Another CA", ["radius.example.com"], present())
    before = other.files()
    await SharedFiles(one.store, one.vault, other).load()
    assert other.files() == CertificateFolder(made).files()
    (aside,) = third.glob("certs.before-*")
    assert (aside / "ca.pem").read_bytes() == before["ca.pem"]


async def test_keys_are_sealed(nodes: tuple[Areas, Areas]) -> None:
    """No private key is in the store in clear."""
    one, _ = nodes
    assert b"PRIVATE KEY" not in stored(one.store)


async def test_a_restored_backup_without_certificates(nodes: tuple[Areas, Areas], tmp_path: Path) -> None:
    """If a backup has no certificates, those of the nodes stay, and become those of the restored store. All nodes
    accept writes again."""
    one, two = nodes
    await one.store.write(lambda tx: tx.execute("delete from certificate_files"))
    await one.copies.backup(tmp_path / "backup.db")
    before = one.certificate_files.folder.files()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(two.app.follower.run)
        await one.copies.restore(tmp_path / "backup.db")
        for each in nodes:
            await until(partial(stores, each, len(before)))
            assert each.certificate_files.folder.files() == before
        nursery.cancel_scope.cancel()


async def stores(areas: Areas, number: int) -> bool:
    """Return whether a node accepts writes, and the store has this number of files."""
    with suppress(StoreError):
        sql = "select count(*) from certificate_files"
        return await areas.store.write(lambda tx: tx.value(int, sql)) == number
    return False


async def test_a_backup_of_postgresql_is_restored_to_sqlite(nodes: tuple[Areas, Areas], tmp_path: Path) -> None:
    """The certificates of the backup become files."""
    one, _ = nodes
    await one.copies.backup(tmp_path / "backup.db")
    (tmp_path / "sqlite").mkdir()
    async with running_store(tmp_path / "sqlite" / "s.db") as store:
        areas = Areas(store, one.clock)
        await areas.copies.restore(tmp_path / "backup.db")
        assert areas.certificate_files.folder.files() == one.certificate_files.folder.files()


async def test_a_backup_has_the_certificates(nodes: tuple[Areas, Areas], made: Path, tmp_path: Path) -> None:
    """A backup of PostgreSQL that becomes a SQLite store brings the files, once."""
    one, _ = nodes
    place = tmp_path / "sqlite"
    place.mkdir()
    one.store.write_copy(place / "s.db")
    async with running_store(place / "s.db") as store:
        files = OwnFiles(store, one.vault, CertificateFolder(place))
        await files.load()
        assert files.folder.files() == CertificateFolder(made).files()
        assert await store.read(lambda tx: tx.value(int, "select count(*) from certificate_files")) == 0
