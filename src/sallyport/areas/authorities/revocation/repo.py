"""SQL for revocation lists and their entries."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.authorities.revocation.entries import Entries
from sallyport.areas.authorities.revocation.lists import RevocationList, Scope
from sallyport.store.model import Tx, columns_of

PART: Final = 400_000
"""About the number of octets of a part. Each part is written in a transaction of its own, so that no login waits."""


@dataclass(frozen=True, slots=True)
class ListRow:
    """The row of a list.

    issuer: the certificate in DER for which a login has looked up the list, or empty. list: the JSON of `stored_list`,
    or empty. The times are in microseconds.
    """

    id: int
    authority_id: int
    tenant_id: int
    address: str
    issuer: bytes
    wanted_at: int
    checked_at: int
    next_at: int
    failures: int
    error: str
    version: int
    list: str


_ROW: Final = ", ".join(columns_of(ListRow))


@dataclass(frozen=True, slots=True)
class ListStamp:
    """The short columns of a list's row, by which a change is seen. issuer_size: the length of the issuer."""

    id: int
    wanted_at: int
    checked_at: int
    next_at: int
    failures: int
    error: str
    version: int
    issuer_size: int

    @classmethod
    def of(cls, row: ListRow) -> "ListStamp":
        """Return the stamp of a row."""
        return cls(
            row.id,
            row.wanted_at,
            row.checked_at,
            row.next_at,
            row.failures,
            row.error,
            row.version,
            len(row.issuer),
        )


def stamps(tx: Tx) -> list[ListStamp]:
    """Return the stamps of all lists."""
    columns = ", ".join(name for name in columns_of(ListStamp) if name != "issuer_size")
    return tx.all(ListStamp, f"select {columns}, length(issuer) as issuer_size from revocation_lists order by id")


def row_of(tx: Tx, list_id: int) -> ListRow | None:
    """Return the row of a list. Return None if it was removed."""
    return tx.one(ListRow, f"select {_ROW} from revocation_lists where id = :id", id=list_id)


def add(tx: Tx, authority_id: int, tenant_id: int, address: str, issuer: bytes, now: int) -> None:
    """Insert a list that is fetched next, unless the authority has a list with this address. If that list has neither
    an issuer nor content, it gets the issuer, and is fetched again."""
    tx.execute(
        "insert into revocation_lists (authority_id, tenant_id, address, issuer, wanted_at) "
        "values (:authority, :tenant, :address, :issuer, :now) on conflict (authority_id, address) do nothing",
        authority=authority_id,
        tenant=tenant_id,
        address=address,
        issuer=issuer,
        now=now,
    )
    tx.execute(
        "update revocation_lists set issuer = :issuer, next_at = 0 "
        "where authority_id = :authority and address = :address and list = '' and length(issuer) = 0",
        authority=authority_id,
        address=address,
        issuer=issuer,
    )


def change_issuer(tx: Tx, list_id: int, issuer: bytes, soon: int) -> None:
    """Replace the issuer of a list whose last fetch has failed, and fetch the list again at `soon` at the latest."""
    tx.execute(
        "update revocation_lists set issuer = :issuer, error = '', "
        "next_at = case when next_at > :soon then :soon else next_at end where id = :id and error <> ''",
        issuer=issuer,
        soon=soon,
        id=list_id,
    )


def touch(tx: Tx, list_id: int, now: int) -> None:
    """Store that a list is still wanted."""
    tx.execute("update revocation_lists set wanted_at = :now where id = :id", now=now, id=list_id)


def look_again(tx: Tx, authority_id: int, pause: int) -> None:
    """Make the leader fetch the lists of an authority, each `pause` microseconds after its last fetch, or at once."""
    tx.execute(
        "update revocation_lists set next_at = checked_at + :pause "
        "where authority_id = :id and next_at > checked_at + :pause",
        id=authority_id,
        pause=pause,
    )


def checked(tx: Tx, row: ListRow, before: int, soon: int) -> None:
    """Store the result of a fetch: the times, the failures, the error, the version and the list.

    before: `next_at` at the beginning of the fetch. If it has changed meanwhile, the list was requested again. Then it
    is fetched at `soon` at the latest.
    """
    tx.execute(
        "update revocation_lists set checked_at = :checked_at, "
        "next_at = case when next_at <> :before and :next_at > :soon then :soon else :next_at end, "
        "failures = :failures, error = :error, version = :version, list = :list where id = :id",
        checked_at=row.checked_at,
        next_at=row.next_at,
        before=before,
        soon=soon,
        failures=row.failures,
        error=row.error,
        version=row.version,
        list=row.list,
        id=row.id,
    )


def put_part(tx: Tx, list_id: int, version: int, part: int, content: bytes) -> None:
    """Store a part of a list's entries. A part of an interrupted attempt is replaced."""
    tx.execute(
        "insert into revocation_entries (list_id, version, part, content) values (:list, :version, :part, :content) "
        "on conflict (list_id, version, part) do update set content = excluded.content",
        list=list_id,
        version=version,
        part=part,
        content=content,
    )


def part_of(tx: Tx, list_id: int, version: int, part: int) -> bytes | None:
    """Return a part of a list's entries, or None after the last part."""
    return tx.value(
        bytes,
        "select content from revocation_entries where list_id = :list and version = :version and part = :part",
        list=list_id,
        version=version,
        part=part,
    )


def delete_old_part(tx: Tx, list_id: int, version: int, parts: int) -> int:
    """Delete one part of another version of a list, or one after its last part. Return whether there was one. parts:
    the number of its parts."""
    return tx.execute(
        "delete from revocation_entries where (list_id, version, part) in (select list_id, version, part "
        "from revocation_entries where list_id = :list and (version <> :version or part >= :parts) limit 1)",
        list=list_id,
        version=version,
        parts=parts,
    )


def remove(tx: Tx, list_id: int) -> None:
    """Delete a list whose parts are deleted."""
    tx.execute("delete from revocation_lists where id = :id", id=list_id)


def stored_list(found: RevocationList) -> str:
    """Return a list without its entries as JSON."""
    return json.dumps(
        {
            "issuer": found.issuer_key.hex(),
            "number": None if found.number is None else str(found.number),
            "base": None if found.base is None else str(found.base),
            "times": [found.this_update, found.next_update],
            "users": found.scope.users,
            "authorities": found.scope.authorities,
            "addresses": sorted(found.scope.addresses),
            "freshest": found.freshest,
            "size": found.size,
            "sha256": found.sha256.hex(),
            "count": found.entries.count,
        }
    )


def read_stored_list(text: str, entries: Entries) -> RevocationList:
    """Return the list of a JSON text. Raises ValueError, KeyError, TypeError if another program has written it."""
    of = json.loads(text)
    return RevocationList(
        bytes.fromhex(of["issuer"]),
        None if of["number"] is None else int(of["number"]),
        None if of["base"] is None else int(of["base"]),
        int(of["times"][0]),
        int(of["times"][1]),
        Scope(of["users"], of["authorities"], frozenset(of["addresses"])),
        tuple(of["freshest"]),
        int(of["size"]),
        bytes.fromhex(of["sha256"]),
        entries,
    )


def entry_count(text: str) -> int:
    """Return the number of entries of a stored list; 0 if there is none."""
    return int(json.loads(text).get("count", 0)) if text else 0


def parts_of(entries: Entries) -> Sequence[bytes]:
    """Return the entries of a table in parts of about PART octets."""
    parts, waiting, size = list[bytes](), list[bytes](), 0
    for bucket in entries.buckets:
        waiting.append(bucket)
        size += len(bucket)
        if size >= PART:
            parts.append(b"".join(waiting))
            waiting, size = [], 0
    if size:
        parts.append(b"".join(waiting))
    return parts
