"""The SQL that writes the groups and units of an import."""

from typing import Final

from sallyport.areas.directory.directory import GROUP_COUNT
from sallyport.areas.directory.imports.job import EntryCounts, ImportRun
from sallyport.areas.directory.imports.lines import PreparedGroup, PreparedUnchanged, PreparedUnit, key_of
from sallyport.areas.directory.stored import memberships
from sallyport.areas.directory.stored.rows import NO_DIGEST, EntryTable, StoredEntry, kept_identifier
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.model import Tx
from sallyport.store.search import SearchIndex

_SEARCH: Final = SearchIndex("directory_groups_search")


GROUPS: Final = EntryTable(memberships.GROUPS_TABLE, StoredEntry)
UNITS: Final = EntryTable("directory_units", StoredEntry)


def touch(
    tx: Tx, table: EntryTable[StoredEntry], run: ImportRun, known: StoredEntry, new: PreparedUnchanged
) -> EntryCounts | None:
    """Mark a group or unit as seen by this import. Write its new name if a unit above it was renamed. Return None if
    the renaming needs more transactions. The caller must then call this function again."""
    if new.dn_key in (b"", known.dn_key):
        return table.mark(tx, run, known)
    if table is GROUPS and not table.rename(tx, run, known, new.dn_key):
        return None
    tx.execute(
        f"update {table.name} set dn = :dn, dn_key = :dn_key, digest = :none, seen = :job where id = :id",  # noqa: S608
        dn=new.dn,
        dn_key=new.dn_key,
        none=NO_DIGEST,
        job=run.job_id,
        id=known.id,
    )
    return EntryCounts(updated=1)


def put_group(tx: Tx, run: ImportRun, new: PreparedUnit, known: StoredEntry | None, at: int) -> EntryCounts:
    """Write a group without its members. If its name changes, call `GROUPS.rename` first. new.digest must be NO_DIGEST
    if the members are written in another transaction."""
    if known is None:
        group_id, key = _insert(tx, GROUPS, run, new, at), fold(new.name)
        _inherit(tx, run, group_id, key)
        _put_key(tx, group_id, key)
        _SEARCH.add(tx, run.domain_id, group_id, (key,))
        _put_sid(tx, group_id, new)
        counters.add(tx, run.domain_id, GROUP_COUNT, 1)
        return EntryCounts(added=1)
    _update(tx, GROUPS, run, known, new, at)
    _put_sid(tx, known.id, new)
    if known.name != new.name:
        key = fold(new.name)
        _put_key(tx, known.id, key)
        _SEARCH.remove(tx, run.domain_id, [known.id])
        _SEARCH.add(tx, run.domain_id, known.id, (key,))
    return EntryCounts(updated=1)


def _put_key(tx: Tx, group_id: int, key: str) -> None:
    tx.execute("update directory_groups set name_key = :key where id = :id", key=key, id=group_id)


def _put_sid(tx: Tx, group_id: int, new: PreparedUnit) -> None:
    if isinstance(new, PreparedGroup) and new.sid:
        tx.execute("update directory_groups set sid = :sid where id = :id", sid=new.sid, id=group_id)


def finish_group(tx: Tx, run: ImportRun, new: PreparedUnit, digest: bytes) -> None:
    """Set the digest of a group after its members were written."""
    sql = "update directory_groups set digest = :digest where directory_id = :dir and dn_key = :key"
    tx.execute(sql, digest=digest, dir=run.directory_id, key=new.dn_key)


def put_unit(tx: Tx, run: ImportRun, new: PreparedUnit, at: int) -> EntryCounts:
    """Write a unit."""
    known = UNITS.find(tx, run, new.external_id, new.dn_key)
    if known is None:
        _insert(tx, UNITS, run, new, at)
        return EntryCounts(added=1)
    if known.digest == new.digest:
        return UNITS.mark(tx, run, known)
    _update(tx, UNITS, run, known, new, at)
    return EntryCounts(updated=1)


def rename_unit(tx: Tx, run: ImportRun, known: StoredEntry, new: PreparedUnit, at: int) -> EntryCounts:
    """Rename a unit. The entries below it are not renamed."""
    _update(tx, UNITS, run, known, new, at)
    return EntryCounts(updated=1)


def remove_group(tx: Tx, run: ImportRun, known: StoredEntry) -> EntryCounts | None:
    """Remove a group. Return None if the group has too many members for one transaction. The caller must then call this
    function again."""
    taken = memberships.is_taken(tx, GROUPS.name, run.directory_id, known.id, known.dn_key)
    if not (taken or memberships.forget_group(tx, run.directory_id, known.dn_key)):
        return None
    own = key_of(known.dn)
    if known.dn_key != own and not memberships.restore_key(tx, GROUPS.name, run.directory_id, known.dn_key, own):
        return None
    _SEARCH.remove(tx, run.domain_id, [known.id])
    mapping = tx.value(str, "delete from directory_groups where id = :id returning mapping", id=known.id)
    if mapping is not None and mapping != "{}":
        run.former[fold(known.name)] = mapping
    counters.add(tx, run.domain_id, GROUP_COUNT, -1)
    return EntryCounts(removed=1)


def remove_unit(tx: Tx, known: StoredEntry) -> EntryCounts:
    """Remove a unit."""
    tx.execute("delete from directory_units where id = :id", id=known.id)
    return EntryCounts(removed=1)


def _inherit(tx: Tx, run: ImportRun, group_id: int, key: str) -> None:
    """Give a new group the mapping of another group that has the same name in the directory. That other group may have
    been deleted. key: the name in the form for comparison.

    Thus an admin's mapping is kept if a group is deleted and created again.
    """
    has = (
        "select mapping from directory_groups where domain_id = :d and directory_id = :dir and mapping <> '{}' "
        "and fold(name) = :name order by id desc limit 1"
    )
    mapping = tx.value(str, has, d=run.domain_id, dir=run.directory_id, name=key) or run.former.get(key)
    if mapping is not None:
        tx.execute("update directory_groups set mapping = :mapping where id = :id", mapping=mapping, id=group_id)


def _insert(tx: Tx, table: EntryTable[StoredEntry], run: ImportRun, new: PreparedUnit, at: int) -> int:
    row_id = tx.value(
        int,
        f"insert into {table.name} (domain_id, directory_id, external_id, dn, dn_key, name, digest, seen, created_at, "  # noqa: S608
        "updated_at) values (:d, :dir, :external, :dn, :dn_key, :name, :digest, :job, :at, :at) returning id",
        d=run.domain_id,
        **_values(run, new, at),
    )
    assert row_id is not None  # noqa: S101  an insert returns its row
    return row_id


def _update(
    tx: Tx, table: EntryTable[StoredEntry], run: ImportRun, known: StoredEntry, new: PreparedUnit, at: int
) -> None:
    values = {**_values(run, new, at), "external": kept_identifier(known, new.external_id)}
    tx.execute(
        f"update {table.name} set external_id = :external, dn = :dn, dn_key = :dn_key, name = :name, digest = :digest, "  # noqa: S608
        "seen = :job, updated_at = :at where id = :id and directory_id = :dir",
        id=known.id,
        **values,
    )


def _values(run: ImportRun, new: PreparedUnit, at: int) -> dict[str, str | bytes | int]:
    return {
        "dir": run.directory_id,
        "external": new.external_id,
        "dn": new.dn,
        "dn_key": new.dn_key,
        "name": new.name,
        "digest": new.digest,
        "job": run.job_id,
        "at": at,
    }
