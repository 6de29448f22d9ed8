"""The SQL of memberships. Entries are identified by the keys of their names (`imports.lines`).

Each row belongs to one entry. If a group lists a member, the row belongs to the group (told = 0). If a member lists its
group, the row belongs to the member (told = 1). Only the entry that owns the row can withdraw the membership.

When an entry is renamed, its name is also changed in the rows that belong to other entries. Most directories change
such links themselves, but some do not. So the digests of the groups that list the renamed entry are cleared. The next
reading of the directory then compares the members of these groups.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from hashlib import blake2b
from heapq import merge
from typing import Final

from sallyport.store.model import Tx, Value, among

AT_ONCE: Final = 25
"""Maximum number of people that are written together. A login waits until they are written, which takes 3 ms."""
SPREAD: Final = 512
GROUPS_TABLE: Final = "directory_groups"
BY_GROUP: Final = 0
BY_MEMBER: Final = 1
_COLUMNS: Final = ("directory_id", "member_key", "group_key", "told")
_DELETE: Final = (
    "delete from directory_members where directory_id = :dir and member_key = :m and group_key = :g and told = :told"
)


def set_groups(tx: Tx, directory_id: int, member_key: bytes, group_keys: Iterable[bytes]) -> None:
    """Replace the groups that a member's entry lists."""
    _replace(tx, directory_id, {member_key: group_keys}, set(_pairs(tx, directory_id, [member_key], 1)))


def set_groups_of(tx: Tx, directory_id: int, wanted: Mapping[bytes, Iterable[bytes]]) -> None:
    """Replace the groups that the entries of at most AT_ONCE members list. wanted: the keys of the groups, by the key
    of the member."""
    _replace(tx, directory_id, wanted, set(_pairs(tx, directory_id, list(wanted), AT_ONCE)))


def _replace(
    tx: Tx, directory_id: int, wanted: Mapping[bytes, Iterable[bytes]], before: Set[tuple[bytes, bytes]]
) -> None:
    after = {(member_key, key) for member_key, keys in wanted.items() for key in keys}
    for member_key, key in before - after:
        tx.execute(_DELETE, dir=directory_id, m=member_key, g=key, told=BY_MEMBER)
    rows = [(directory_id, member_key, key, BY_MEMBER) for member_key, key in sorted(after - before)]
    tx.insert("directory_members", _COLUMNS, rows, on_conflict="on conflict do nothing")


def _pairs(tx: Tx, directory_id: int, member_keys: Sequence[bytes], most: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield (member, group) for each group that the entries of the members list."""
    keys, parameters = among(member_keys, most)
    sql = (
        "select member_key, group_key from directory_members where directory_id = :dir and told = 1 "  # noqa: S608
        f"and member_key in {keys}"
    )
    for member_key, group_key in tx.rows(sql, dir=directory_id, **parameters):
        assert isinstance(member_key, bytes)  # noqa: S101  the columns' type
        assert isinstance(group_key, bytes)  # noqa: S101
        yield member_key, group_key


def stated_by(tx: Tx, directory_id: int, member_key: bytes) -> list[bytes]:
    """Return the keys of the groups that a member's entry lists, in ascending order."""
    sql = (
        "select group_key from directory_members where directory_id = :dir and member_key = :m and told = 1 "
        "order by group_key"
    )
    return [_key(row) for row in tx.rows(sql, dir=directory_id, m=member_key)]


def stated_members(tx: Tx, directory_id: int, group_key: bytes) -> set[bytes]:
    """Return the keys of the members that a group's entry lists."""
    sql = "select member_key from directory_members where directory_id = :dir and group_key = :g and told = 0"
    return {_key(row) for row in tx.rows(sql, dir=directory_id, g=group_key)}


def difference(after: Iterable[bytes], before: Iterable[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the keys that are only in `after`, and those that are only in `before`, both in ascending order. Call this
    function in a worker thread.

    A group may have half a million members. To sort them at once would hold the interpreter for 0.3 s, and the logins
    would wait. So the keys are spread over many small sets.
    """
    pairs = [*zip(_spread(after), _spread(before), strict=True)]
    return [*merge(*(sorted(new - old) for new, old in pairs))], [*merge(*(sorted(old - new) for new, old in pairs))]


def _spread(keys: Iterable[bytes]) -> list[set[bytes]]:
    """Spread keys over SPREAD sets. The hash of octets differs in each process, so a
    directory cannot choose the set."""
    found = [set[bytes]() for _ in range(SPREAD)]
    for key in keys:
        found[hash(key) % SPREAD].add(key)
    return found


def are_many(tx: Tx, directory_id: int, group_key: bytes, most: int) -> bool:
    """Return whether a group's entry lists more than `most` members."""
    sql = (
        "select count(*) from (select 1 from directory_members where directory_id = :dir and group_key = :g "
        "and told = 0 limit :some) as found"
    )
    return (tx.value(int, sql, dir=directory_id, g=group_key, some=most + 1) or 0) > most


def add_members(tx: Tx, directory_id: int, group_key: bytes, member_keys: Sequence[bytes]) -> None:
    """Add members to the members that a group's entry lists."""
    rows = [(directory_id, key, group_key, BY_GROUP) for key in member_keys]
    tx.insert("directory_members", _COLUMNS, rows, on_conflict="on conflict do nothing")


def take_members(tx: Tx, directory_id: int, group_key: bytes, member_keys: Iterable[bytes]) -> None:
    """Delete members that a group's entry no longer lists."""
    for key in member_keys:
        tx.execute(_DELETE, dir=directory_id, m=key, g=group_key, told=BY_GROUP)


def forget_member(tx: Tx, directory_id: int, member_key: bytes) -> None:
    """Delete the memberships that a removed member's entry has listed."""
    sql = "delete from directory_members where directory_id = :dir and member_key = :m and told = 1"
    tx.execute(sql, dir=directory_id, m=member_key)


def forget_group(tx: Tx, directory_id: int, group_key: bytes, most: int) -> bool:
    """Delete at most `most` members that a removed group's entry has listed. Return False if some members may
    remain."""
    sql = (
        "select member_key from directory_members where directory_id = :dir and group_key = :g and told = 0 limit :most"
    )
    keys = [_key(row) for row in tx.rows(sql, dir=directory_id, g=group_key, most=most)]
    take_members(tx, directory_id, group_key, keys)
    return len(keys) < most


def is_taken(tx: Tx, table: str, directory_id: int, row_id: int, *keys: bytes) -> bool:
    """Return whether another person or group already has one of the keys. This happens if an entry was deleted and
    created again, or if an entry was renamed to a name that another entry had. table: the table of people or of groups.
    """
    sql = f"select 1 from {table} where directory_id = :dir and dn_key = :key and id <> :id limit 1"  # noqa: S608
    return any(tx.rows(sql, dir=directory_id, key=key, id=row_id) for key in keys)


def vacate_key(tx: Tx, table: str, directory_id: int, taker: int, key: bytes, since: int) -> None:
    """Free a key for the entry with the id `taker`. The entry that has the key now gets a temporary key. Thus two
    entries keep their memberships if they swap their names.

    since: the start of the import. If this import has already written an entry, the entry keeps its key. table: the
    table of people or of groups.
    """
    others = f"select id from {table} where directory_id = :dir and dn_key = :key and id <> :id and updated_at < :since"  # noqa: S608
    for (found,) in tx.rows(others, dir=directory_id, key=key, id=taker, since=since):
        row_id = int(str(found))
        own = blake2b(f"{table}/{row_id}".encode(), digest_size=len(key)).digest()
        if table == GROUPS_TABLE:
            rename_group(tx, directory_id, key, own, since)
        else:
            rename_member(tx, directory_id, key, own, since)
            _move(tx, directory_id, "member_key, group_key", key, own, "told = 1", since)
        sql = f"update {table} set dn_key = :own, digest = :none where id = :id"  # noqa: S608
        tx.execute(sql, own=own, none=b"", id=row_id)


def restore_key(tx: Tx, table: str, directory_id: int, own: bytes, key: bytes) -> None:
    """In all memberships, replace the temporary key `own` of a removed entry by the key of the entry's name. The
    memberships then belong to the entry that has this name now."""
    rename_member(tx, directory_id, own, key)
    if table == GROUPS_TABLE:
        _move(tx, directory_id, "group_key, member_key", own, key, "told = 1", 0)


def members_by_login(tx: Tx, directory_id: int, group_key: bytes) -> set[bytes]:
    """Return the keys of those members that a group's entry lists by login name. A login name that no person has is
    left out."""
    sql = (
        "select m.member_key from directory_members m join directory_users u on u.directory_id = m.directory_id and "
        "u.uid_key = m.member_key where m.directory_id = :dir and m.group_key = :g and m.told = 0"
    )
    return {_key(row) for row in tx.rows(sql, dir=directory_id, g=group_key)}


def rename_member(tx: Tx, directory_id: int, old: bytes, new: bytes, since: int | None = None) -> None:
    """Rename an entry in all rows that have the entry as the member.

    since: a time in microseconds, which must be set if another entry has the old or the new name. If a row belongs to
    an entry that was written at this time or later, the row then keeps the old name.
    """
    tx.execute(
        "update directory_groups set digest = :none where directory_id = :dir and dn_key in (select group_key "
        "from directory_members where directory_id = :dir and member_key = :old and told = 0)",
        dir=directory_id,
        old=old,
        none=b"",
    )
    older = (
        "told = 0 and not exists (select 1 from directory_groups g where g.directory_id = :dir "
        "and g.dn_key = group_key and g.updated_at >= :since)"
    )
    _move(tx, directory_id, "member_key, group_key", old, new, older, since)


def rename_group(tx: Tx, directory_id: int, old: bytes, new: bytes, since: int | None = None) -> None:
    """Rename a group in all memberships. since: see `rename_member`."""
    rename_member(tx, directory_id, old, new, since)
    older = (
        "told = 1 and not exists (select 1 from directory_users u where u.directory_id = :dir "
        "and u.dn_key = member_key and u.updated_at >= :since)"
    )
    _move(tx, directory_id, "group_key, member_key", old, new, older, since)


def _move(tx: Tx, directory_id: int, ends: str, old: bytes, new: bytes, older: str, since: int | None) -> None:
    """Replace the key `old` by the key `new` in one column of the memberships.

    ends: the names of the two key columns; the first of them is changed. If `since` is set, only rows that meet the SQL
    condition `older` are changed.
    """
    mine, other = ends.split(", ")
    where = f"directory_id = :dir and {mine} = :old"
    parameters: dict[str, Value] = {"dir": directory_id, "old": old}
    if since is not None:
        where, parameters = f"{where} and {older}", {**parameters, "since": since}
    moved = (
        f"insert into directory_members (directory_id, {mine}, {other}, told) "  # noqa: S608
        f"select directory_id, :new, {other}, told from directory_members where {where} on conflict do nothing"
    )
    tx.execute(moved, new=new, **parameters)
    tx.execute(f"delete from directory_members where {where}", **parameters)  # noqa: S608


def _key(row: tuple[object, ...]) -> bytes:
    assert isinstance(row[0], bytes)  # noqa: S101  the column's type
    return row[0]
