"""The SQL of who is a member of what, by keys (`imports.lines`).

Each statement belongs to whoever made it: a group that names a member (told 0), a member that names its group (told 1).
It is taken back only by the same. When an entry gets another name, what others have said of it goes with it, as
directories do with their own links; where one does not, its groups say so when they are read again, so what tells
whether they have changed is forgotten.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from sallyport.store.model import Tx, Value

GROUPS_TABLE: Final = "directory_groups"
BY_GROUP: Final = 0
BY_MEMBER: Final = 1
_COLUMNS: Final = ("directory_id", "member_key", "group_key", "told")
_DELETE: Final = (
    "delete from directory_members where directory_id = :dir and member_key = :m and group_key = :g and told = :told"
)


def tell_groups(tx: Tx, directory_id: int, member_key: bytes, group_keys: Iterable[bytes]) -> None:
    """What a member says of its groups, in place of what it said before."""
    before = set(told_by(tx, directory_id, member_key))
    after = set(group_keys)
    for key in before - after:
        tx.execute(_DELETE, dir=directory_id, m=member_key, g=key, told=BY_MEMBER)
    tx.insert(
        "directory_members",
        _COLUMNS,
        [(directory_id, member_key, key, BY_MEMBER) for key in sorted(after - before)],
        on_conflict="on conflict do nothing",
    )


def told_by(tx: Tx, directory_id: int, member_key: bytes) -> list[bytes]:
    """The groups that a member names, in order."""
    sql = (
        "select group_key from directory_members where directory_id = :dir and member_key = :m and told = 1 "
        "order by group_key"
    )
    return [_key(row) for row in tx.rows(sql, dir=directory_id, m=member_key)]


def members_told(tx: Tx, directory_id: int, group_key: bytes) -> set[bytes]:
    """The members that a group names."""
    sql = "select member_key from directory_members where directory_id = :dir and group_key = :g and told = 0"
    return {_key(row) for row in tx.rows(sql, dir=directory_id, g=group_key)}


def are_many(tx: Tx, directory_id: int, group_key: bytes, most: int) -> bool:
    """Whether a group names more members than that."""
    sql = (
        "select count(*) from (select 1 from directory_members where directory_id = :dir and group_key = :g "
        "and told = 0 limit :some) as found"
    )
    return (tx.value(int, sql, dir=directory_id, g=group_key, some=most + 1) or 0) > most


def add_members(tx: Tx, directory_id: int, group_key: bytes, member_keys: Sequence[bytes]) -> None:
    """A group names these members too."""
    rows = [(directory_id, key, group_key, BY_GROUP) for key in member_keys]
    tx.insert("directory_members", _COLUMNS, rows, on_conflict="on conflict do nothing")


def take_members(tx: Tx, directory_id: int, group_key: bytes, member_keys: Iterable[bytes]) -> None:
    """A group does not name these members any more."""
    for key in member_keys:
        tx.execute(_DELETE, dir=directory_id, m=key, g=group_key, told=BY_GROUP)


def forget_member(tx: Tx, directory_id: int, member_key: bytes) -> None:
    """What was a member is gone, and what it said of its groups."""
    sql = "delete from directory_members where directory_id = :dir and member_key = :m and told = 1"
    tx.execute(sql, dir=directory_id, m=member_key)


def forget_group(tx: Tx, directory_id: int, group_key: bytes, most: int) -> bool:
    """Forget at most so many of the members that a group has named; False: there are more."""
    sql = (
        "select member_key from directory_members where directory_id = :dir and group_key = :g and told = 0 limit :most"
    )
    keys = [_key(row) for row in tx.rows(sql, dir=directory_id, g=group_key, most=most)]
    take_members(tx, directory_id, group_key, keys)
    return len(keys) < most


def is_taken(tx: Tx, table: str, directory_id: int, row_id: int, *keys: bytes) -> bool:
    """Whether another person or group than that one is known by one of these names: it was made anew, or takes the name
    over. table: of people, or of groups."""
    sql = f"select 1 from {table} where directory_id = :dir and dn_key = :key and id <> :id limit 1"  # noqa: S608
    return any(tx.rows(sql, dir=directory_id, key=key, id=row_id) for key in keys)


def give_way(tx: Tx, table: str, directory_id: int, taker: int, key: bytes, since: int) -> None:
    """Who has the name that `taker` takes over, and was not told of since, gets a key that no name has until that
    happens: two that swap their names keep what is said of each. table: as for `is_taken`."""
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


def give_back(tx: Tx, table: str, directory_id: int, own: bytes, key: bytes) -> None:
    """Who gave way is gone: what others say of the name means who has it now."""
    rename_member(tx, directory_id, own, key)
    if table == GROUPS_TABLE:
        _move(tx, directory_id, "group_key, member_key", own, key, "told = 1", 0)


def members_by_login(tx: Tx, directory_id: int, group_key: bytes) -> set[bytes]:
    """Of the members that a group names, those that it names by a login name, as far as somebody has it."""
    sql = (
        "select m.member_key from directory_members m join directory_users u on u.directory_id = m.directory_id and "
        "u.uid_key = m.member_key where m.directory_id = :dir and m.group_key = :g and m.told = 0"
    )
    return {_key(row) for row in tx.rows(sql, dir=directory_id, g=group_key)}


def rename_member(tx: Tx, directory_id: int, old: bytes, new: bytes, since: int | None = None) -> None:
    """An entry has another name, and with it what it says and what is said of it as a member.

    since: set where another entry is known by either name; what was said later than that then means what it says.
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
    """A group has another name. since: see `rename_member`."""
    rename_member(tx, directory_id, old, new, since)
    older = (
        "told = 1 and not exists (select 1 from directory_users u where u.directory_id = :dir "
        "and u.dn_key = member_key and u.updated_at >= :since)"
    )
    _move(tx, directory_id, "group_key, member_key", old, new, older, since)


def _move(tx: Tx, directory_id: int, ends: str, old: bytes, new: bytes, older: str, since: int | None) -> None:
    """Give what has one key at its first end another one there; only what is older, where the key is taken."""
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
