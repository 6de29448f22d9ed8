"""The SQL of memberships. Entries are identified by the keys of their names (`imports.lines`).

Each row belongs to one entry. If a group lists a member, the row belongs to the group (told = 0). If a member lists its
group, the row belongs to the member (told = 1). Only the entry that owns the row can withdraw the membership.

When an entry is renamed, its name is also changed in the rows that belong to other entries. Most directories change
such links themselves, but some do not. So the digests of the groups that list the renamed entry are cleared. The next
reading of the directory then compares the members of these groups.

If an entry has many memberships, its renaming takes several transactions, and each of them moves at most MAX_CHANGED
rows to the new key. Until the last one, the entry keeps its old key, and two more rows make the two keys equal: each
key is a member of the other (MOVING or TAKEN, and BACK). Lists of nested members and groups follow these rows, so that
at each moment the entry has all its memberships. If the job is cancelled, the next job moves the rows back
(`undo_move`).
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
MAX_CHANGED: Final = 200
"""Maximum number of memberships that one transaction changes."""
BY_GROUP: Final = 0
BY_MEMBER: Final = 1
MOVING: Final = 2
"""The `told` of a row that says: the memberships of the key member_key move to the key group_key."""
BACK: Final = 3
"""The `told` of the opposite row."""
TAKEN: Final = 4
"""The `told` in place of MOVING if another entry had one of the two keys when the move began."""
_COLUMNS: Final = ("directory_id", "member_key", "group_key", "told")
_Part = tuple[str, str]
"""(column, SQL condition): the column in which a key is replaced, and the condition for the rows."""
_ANY: Final = "told < 2"
_LISTED_BY_OLDER: Final = (
    "member_key",
    "told = 0 and not exists (select 1 from directory_groups g where g.directory_id = :dir "
    "and g.dn_key = group_key and g.updated_at >= :since)",
)
_LISTING_OLDER: Final = (
    "group_key",
    "told = 1 and not exists (select 1 from directory_users u where u.directory_id = :dir "
    "and u.dn_key = member_key and u.updated_at >= :since)",
)
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
    """Spread keys over SPREAD sets. The hash of octets differs in each process, so a directory cannot choose the
    set."""
    found = [set[bytes]() for _ in range(SPREAD)]
    for key in keys:
        found[hash(key) % SPREAD].add(key)
    return found


def are_many(tx: Tx, directory_id: int, group_key: bytes) -> bool:
    """Return whether a group's entry lists more than MAX_CHANGED members."""
    return _are_many(tx, directory_id, "group_key = :key and told = 0", group_key)


def is_in_many(tx: Tx, directory_id: int, member_key: bytes) -> bool:
    """Return whether an entry is a member of more than MAX_CHANGED groups."""
    return _are_many(tx, directory_id, "member_key = :key", member_key)


def _are_many(tx: Tx, directory_id: int, condition: str, key: bytes) -> bool:
    some = f"select 1 from directory_members where directory_id = :dir and {condition} limit {MAX_CHANGED + 1}"  # noqa: S608
    return (tx.value(int, f"select count(*) from ({some}) as found", dir=directory_id, key=key) or 0) > MAX_CHANGED  # noqa: S608


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


def forget_group(tx: Tx, directory_id: int, group_key: bytes) -> bool:
    """Delete at most MAX_CHANGED members that a removed group's entry has listed. Return False if some members may
    remain."""
    sql = (
        "select member_key from directory_members where directory_id = :dir and group_key = :g and told = 0 limit :most"
    )
    keys = [_key(row) for row in tx.rows(sql, dir=directory_id, g=group_key, most=MAX_CHANGED)]
    take_members(tx, directory_id, group_key, keys)
    return len(keys) < MAX_CHANGED


def is_taken(tx: Tx, table: str, directory_id: int, row_id: int, *keys: bytes) -> bool:
    """Return whether another person or group already has one of the keys. This happens if an entry was deleted and
    created again, or if an entry was renamed to a name that another entry had. table: the table of people or of groups.
    """
    sql = f"select 1 from {table} where directory_id = :dir and dn_key = :key and id <> :id limit 1"  # noqa: S608
    return any(tx.rows(sql, dir=directory_id, key=key, id=row_id) for key in keys)


def vacate_key(tx: Tx, table: str, directory_id: int, taker: int, key: bytes, since: int) -> bool:
    """Free a key for the entry with the id `taker`. The entry that has the key now gets a temporary key. Thus two
    entries keep their memberships if they swap their names. Return False if this needs more transactions.

    since: the start of the import. If this import has already written an entry, the entry keeps its key. table: the
    table of people or of groups.
    """
    sql = (  # without `order by id`, because SQLite would then read all rows of the directory
        f"select id from {table} where directory_id = :dir and dn_key = :key and id <> :id and updated_at < :since "  # noqa: S608
        "limit 2"
    )
    others = [int(str(found)) for (found,) in tx.rows(sql, dir=directory_id, key=key, id=taker, since=since)]
    for row_id in others[:1]:
        own = blake2b(f"{table}/{row_id}".encode(), digest_size=len(key)).digest()
        last = _LISTING_OLDER if table == GROUPS_TABLE else ("member_key", "told = 1")
        if not _replace_key(tx, directory_id, (_LISTED_BY_OLDER, last), key, own, since):
            return False
        sql = f"update {table} set dn_key = :own, digest = :none where id = :id"  # noqa: S608
        tx.execute(sql, own=own, none=b"", id=row_id)
    return len(others) < 2


def restore_key(tx: Tx, table: str, directory_id: int, own: bytes, key: bytes) -> bool:
    """In at most MAX_CHANGED memberships, replace the temporary key `own` of a removed entry by the key of the entry's
    name. The memberships then belong to the entry that has this name now. Return False if some memberships remain."""
    parts = [("member_key", _ANY), ("group_key", "told = 1")][: 1 + (table == GROUPS_TABLE)]
    return all(_move(tx, directory_id, part, own, key, None) for part in parts)


def members_by_login(tx: Tx, directory_id: int, group_key: bytes) -> set[bytes]:
    """Return the keys of those members that a group's entry lists by login name. A login name that no person has is
    left out."""
    sql = (
        "select m.member_key from directory_members m join directory_users u on u.directory_id = m.directory_id and "
        "u.uid_key = m.member_key where m.directory_id = :dir and m.group_key = :g and m.told = 0"
    )
    return {_key(row) for row in tx.rows(sql, dir=directory_id, g=group_key)}


def rename(tx: Tx, table: str, directory_id: int, old: bytes, new: bytes, since: int | None) -> bool:
    """Replace the key of an entry in its memberships. Return False if this needs more transactions.

    table: the table of people or of groups. since: a time in microseconds, which must be set if another entry has, or
    had, the old or the new name. If a row belongs to an entry that was written at this time or later, the row then
    keeps the old name.
    """
    parts = [("member_key", _ANY), ("group_key", _ANY)] if since is None else [_LISTED_BY_OLDER, _LISTING_OLDER]
    told = MOVING if since is None else TAKEN
    return _replace_key(tx, directory_id, parts[: 1 + (table == GROUPS_TABLE)], old, new, since, told)


def was_taken(tx: Tx, directory_id: int, old: bytes, new: bytes) -> bool:
    """Return whether an unfinished move began when another entry had one of the two keys."""
    sql = "select 1 from directory_members where directory_id = :dir and member_key = :m and group_key = :g "
    return tx.value(int, f"{sql}and told = {TAKEN}", dir=directory_id, m=old, g=new) is not None


def undo_move(tx: Tx, directory_id: int) -> bool:
    """Move at most MAX_CHANGED memberships back to the key that their entry has, if an earlier job has not finished a
    move. Return False if some memberships remain."""
    sql = (
        "select member_key, group_key from directory_members where directory_id = :dir and told > 1 "
        "and told <> :back limit 1"
    )
    for old, new in tx.rows(sql, dir=directory_id, back=BACK):
        assert isinstance(old, bytes)  # noqa: S101  the columns' type
        assert isinstance(new, bytes)  # noqa: S101
        if all(_move(tx, directory_id, (column, _ANY), new, old, None) for column in ("member_key", "group_key")):
            _end_move(tx, directory_id, old, new)
        return False
    return True


def _replace_key(
    tx: Tx, directory_id: int, parts: Sequence[_Part], old: bytes, new: bytes, since: int | None, told: int = MOVING
) -> bool:
    """Replace a key in some memberships. If others remain, make the two keys equal, and return False."""
    if all(_move(tx, directory_id, part, old, new, since) for part in parts):
        _end_move(tx, directory_id, old, new)
        return True
    rows = [(directory_id, old, new, told), (directory_id, new, old, BACK)]
    tx.insert("directory_members", _COLUMNS, rows, on_conflict="on conflict do nothing")
    return False


def _end_move(tx: Tx, directory_id: int, old: bytes, new: bytes) -> None:
    sql = "delete from directory_members where directory_id = :dir and member_key = :m and group_key = :g and told > 1"
    for member_key, group_key in ((old, new), (new, old)):
        tx.execute(sql, dir=directory_id, m=member_key, g=group_key)


def _move(tx: Tx, directory_id: int, part: _Part, old: bytes, new: bytes, since: int | None) -> bool:
    """Replace the key `old` by the key `new` in one column of at most MAX_CHANGED memberships. Clear the digests of the
    groups that list the entry in these memberships. Return False if some memberships remain."""
    mine, condition = part
    is_member = mine == "member_key"
    other = "group_key" if is_member else "member_key"
    sql = (
        f"select {other}, told from directory_members where directory_id = :dir and {mine} = :old and {condition} "  # noqa: S608
        f"limit {MAX_CHANGED + 1}"
    )
    given: dict[str, Value] = {} if since is None or ":since" not in condition else {"since": since}
    found = tx.rows(sql, dir=directory_id, old=old, **given)
    rows = [(_key(row), int(str(row[1]))) for row in found[:MAX_CHANGED]]
    moved = [(directory_id, new, key, told) if is_member else (directory_id, key, new, told) for key, told in rows]
    tx.insert("directory_members", _COLUMNS, moved, on_conflict="on conflict do nothing")
    for key, told in rows:
        member_key, group_key = (old, key) if is_member else (key, old)
        tx.execute(_DELETE, dir=directory_id, m=member_key, g=group_key, told=told)
        if is_member and told == BY_GROUP:
            sql = "update directory_groups set digest = :none where directory_id = :dir and dn_key = :key"
            tx.execute(sql, none=b"", dir=directory_id, key=key)
    return len(found) <= MAX_CHANGED


def _key(row: tuple[object, ...]) -> bytes:
    assert isinstance(row[0], bytes)  # noqa: S101  the column's type
    return row[0]
