"""The local operations of the store, which `sallyport db` runs in the service."""

from functools import partial
from pathlib import Path
from typing import cast

import pytest

from sallyport.base.errors import Invalid
from sallyport.shell.command import Commands
from sallyport.store.copies import Copies
from sallyport.store.operations import local_operations
from sallyport.store.rotation import Rotation
from sallyport.store.sqlite import SqliteStore
from tests.store.conftest import names, put
from tests.store.test_copies import Keeper


def operations(copies: Copies) -> Commands:
    """Return the operations of these copies. The tests do not rotate the key."""
    return Commands([local_operations(copies, cast(Rotation, None))])


async def test_backups_and_their_restore(sqlite: SqliteStore, tmp_path: Path) -> None:
    """A backup is one file. If a number to keep is given, the path is a directory, and older backups are deleted."""
    keeper, folder = Keeper(sqlite, sqlite.path), tmp_path / "backups"
    folder.mkdir()
    db = operations(keeper.copies)
    await keeper.configuration.change(partial(put, name="a"))
    answer = await db.ready("db.backup", {"path": str(folder / "own.db")})()
    assert answer == {"path": str(folder / "own.db"), "size": (folder / "own.db").stat().st_size, "deleted": 0}
    for deleted in (0, 1):
        answer = await db.ready("db.backup", {"path": str(folder), "keep": 1})()
        (made,) = folder.glob("sallyport-*")
        assert answer == {"path": str(made), "size": made.stat().st_size, "deleted": deleted}
    await keeper.configuration.change(partial(put, name="later"))
    assert await db.ready("db.restore", {"path": str(made)})() is None
    assert await sqlite.read(names) == keeper.listed.value == ["a"]


@pytest.mark.parametrize("keep", [0, 10_001, "all"])
async def test_an_impossible_number_of_backups_is_refused(sqlite: SqliteStore, keep: object) -> None:
    """With 0, the new backup itself would be deleted."""
    db = operations(Keeper(sqlite, sqlite.path).copies)
    with pytest.raises(Invalid) as raised:
        db.ready("db.backup", {"path": "/backups", "keep": keep})
    assert [each.field for each in raised.value.errors] == ["keep"]
