"""The SQL that writes the people of an import."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.directory.directory import CLOUD_USER_COUNT, USER_COUNT
from sallyport.areas.directory.entry.entry import ALIASES, DEVICE_ID
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.imports.job import EntryCounts, ImportRun, Revocations
from sallyport.areas.directory.imports.lines import PreparedPerson, PreparedUnchanged, identifiers_of, key_of
from sallyport.areas.directory.mappings.mapping import FieldMapping, PersonFields, fields_of
from sallyport.areas.directory.stored import memberships
from sallyport.areas.directory.stored.rows import NO_DIGEST, EntryTable, StoredEntry, kept_identifier
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.model import Tx, Value
from sallyport.store.search import IndexEntry, SearchIndex

_SEARCH: Final = SearchIndex("directory_users_search")
GONE: Final = frozenset({Status.DISABLED, Status.EXPIRED})
"""The statuses that end a person's access. LOCKED is not one of these statuses, because a lock is temporary."""
IDENTIFIER: Final = 2
"""The value of `is_alias` for an identifier. It is no login name: only the name in a client certificate finds it."""
_IN_SESSIONS: Final = frozenset({"upn", "mail", "id"})
Unindexed = list[IndexEntry]
"""Added people that are not in the search index yet."""


@dataclass(frozen=True, slots=True)
class StoredPerson(StoredEntry):
    """A stored person."""

    uid_key: bytes
    login: str
    display_name: str
    email: str
    upn: str
    status: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts by which a search finds the person."""
        return _texts(self.name, self.display_name, self.email, self.upn)


PEOPLE: Final = EntryTable("directory_users", StoredPerson)


def put(
    tx: Tx, run: ImportRun, several: Sequence[PreparedPerson], revocations: Revocations, at: int, unindexed: Unindexed
) -> EntryCounts | None:
    """Write at most AT_ONCE people in the order of the sequence. No two of them have the same identifier or name.

    New people are appended to `unindexed`. The caller must then call `index_added` with it. If the renaming of a person
    needs more transactions, return None without writing a person. The caller must then call this function again in the
    next transaction, with each of the people alone.
    """
    counts, added, same = EntryCounts(), list[PreparedPerson](), list[StoredPerson]()
    found, is_current = _found(tx, run, several), True
    if len(several) > 1 and _is_long(tx, run, found, several):
        return None
    for index, new in enumerate(several):
        known = found[index] if is_current else PEOPLE.find(tx, run, new.external_id, new.dn_key)
        if known is None:
            added.append(new)
        elif known.digest == new.digest:
            same.append(known)
        else:
            _add_all(tx, run, added, at, unindexed)
            index_added(tx, unindexed)
            while not PEOPLE.rename(tx, run, known, new.dn_key):
                if len(several) == 1:
                    return None
            update(tx, run, known, new, revocations, at)
            counts.updated += 1
            # a person who takes a name changes the row that has had the name
            is_current = is_current and known.dn_key == new.dn_key
            counts.added += len(added)
            added = []
    _add_all(tx, run, added, at, unindexed)
    counts.added += len(added)
    counts += PEOPLE.mark_all(tx, run, same)
    return counts


def _is_long(tx: Tx, run: ImportRun, found: Sequence[StoredPerson | None], several: Sequence[PreparedPerson]) -> bool:
    pairs = zip(found, several, strict=True)
    return any(known is not None and PEOPLE.is_long_rename(tx, run, known, new.dn_key) for known, new in pairs)


def _found(tx: Tx, run: ImportRun, several: Sequence[PreparedPerson]) -> list[StoredPerson | None]:
    if len(several) == 1:
        return [PEOPLE.find(tx, run, several[0].external_id, several[0].dn_key)]
    return PEOPLE.find_all(tx, run, [(new.external_id, new.dn_key) for new in several])


def index_added(tx: Tx, unindexed: Unindexed) -> None:
    """Add people to the search index. Call this function before one of these people is changed, and at the latest at
    the end of the transaction."""
    _SEARCH.add_all(tx, unindexed)
    unindexed.clear()


def merge_index(tx: Tx) -> None:
    """Merge the search index. Call this function at the end of each transaction that has changed people."""
    _SEARCH.merge(tx)


def update(tx: Tx, run: ImportRun, known: StoredPerson, new: PreparedPerson, revocations: Revocations, at: int) -> None:
    """Write a person whose entry has changed. If the name has changed, call `PEOPLE.rename` first."""
    has_other_facts = (
        DEVICE_ID in new.attributes
        and revocations.device_matters(run.domain_id)
        and device_facts(new.attributes) != device_facts(attributes_of(tx, known.id))
    )
    is_lost = _loses_access(known, new.status)
    names = session_names(tx, run.domain_id, known.id) if is_lost or has_other_facts else ()
    columns = _columns(fields_of(new.attributes, run.mapping), new.login)
    tx.execute(
        "update directory_users set external_id = :external, dn = :dn, dn_key = :dn_key, uid_key = :uid_key, "
        "login = :login, name = :name, display_name = :display_name, email = :email, upn = :upn, status = :status, "
        "fields = :fields, mapping = :mapping, digest = :digest, seen = :job, updated_at = :at where id = :id and "
        "directory_id = :dir",
        id=known.id,
        at=at,
        **{**_values(run, new), "external": kept_identifier(known, new.external_id)},
        **columns,
    )
    sql = "update directory_attributes set attributes = :a where user_id = :id"
    tx.execute(sql, id=known.id, a=json.dumps(new.attributes))
    own = identifiers_of(new.dn, new.login, new.attributes)
    _replace_names(tx, run.domain_id, known.id, columns["name"], (new.login, *new.aliases), own)
    _release(tx, run, known, columns["name"], revocations)
    _search_again(tx, run.domain_id, known, columns)
    memberships.set_groups(tx, run.directory_id, new.dn_key, new.group_keys)
    if names:
        reason = f"the directory has the user as {new.status}" if is_lost else "the facts of the device have changed"
        _revoke(tx, run, names, revocations, reason)


def touch(
    tx: Tx, run: ImportRun, known: StoredPerson, new: PreparedUnchanged, revocations: Revocations, at: int
) -> EntryCounts | None:
    """Mark a person as seen by this import. If the name or the status has changed, write it. Both can change while the
    content of the person's entry stays the same. Return None if the renaming needs more transactions. The caller must
    then call this function again."""
    dn_key, status = new.dn_key or known.dn_key, new.status or known.status
    if (dn_key, status) == (known.dn_key, known.status):
        return PEOPLE.mark(tx, run, known)
    if not PEOPLE.rename(tx, run, known, dn_key):
        return None
    tx.execute(
        "update directory_users set dn = :dn, dn_key = :dn_key, status = :status, digest = :none, seen = :job, "
        "updated_at = :at where id = :id",
        dn=new.dn or known.dn,
        dn_key=dn_key,
        status=status,
        none=NO_DIGEST,
        job=run.job_id,
        at=at,
        id=known.id,
    )
    if _loses_access(known, status):
        names = session_names(tx, run.domain_id, known.id)
        _revoke(tx, run, names, revocations, f"the directory has the user as {status}")
    return EntryCounts(updated=1)


def remove(tx: Tx, run: ImportRun, known: StoredPerson, revocations: Revocations) -> EntryCounts | None:
    """Remove a person. Return None if this needs more transactions. The caller must then call this function again."""
    if not memberships.is_taken(tx, PEOPLE.name, run.directory_id, known.id, known.dn_key):
        memberships.forget_member(tx, run.directory_id, known.dn_key)
    own = key_of(known.dn)
    if known.dn_key != own and not memberships.restore_key(tx, PEOPLE.name, run.directory_id, known.dn_key, own):
        return None
    names = () if known.status in GONE else session_names(tx, run.domain_id, known.id)
    _SEARCH.remove(tx, run.domain_id, [known.id])
    for table in ("directory_names", "directory_attributes"):
        tx.execute(f"delete from {table} where user_id = :id", id=known.id)  # noqa: S608
    tx.execute("delete from directory_users where id = :id", id=known.id)
    counters.add_row(tx, run.domain_id, USER_COUNT, known.id, -1)
    if run.cloud:
        counters.add(tx, run.domain_id, CLOUD_USER_COUNT, -1)
    _release(tx, run, known, "", revocations)
    if names:
        _revoke(tx, run, names, revocations, "the directory does not have the user any more")
    return EntryCounts(removed=1)


def attributes_of(tx: Tx, user_id: int) -> dict[str, list[str]]:
    """Return the stored attributes of a person."""
    kept = tx.value(str, "select attributes from directory_attributes where user_id = :id", id=user_id)
    attributes: dict[str, list[str]] = json.loads(kept or "{}")
    return attributes


_FLAGS: Final = {"iscompliant": ("compliant", "noncompliant"), "ismanaged": ("managed", "unmanaged")}
_TRUSTS: Final = {"azuread": "joined", "serverad": "hybrid-joined", "workplace": "registered"}


def device_facts(attributes: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the facts of a device of Entra ID: compliant or noncompliant, managed or unmanaged, and how it has joined.
    A fact that Entra ID does not state is left out. Return none for a person."""
    if DEVICE_ID not in attributes:
        return ()
    stated = {name: "".join(attributes.get(name, ())).lower() for name in (*_FLAGS, "trusttype")}
    flags = [yes if stated[name] == "true" else no for name, (yes, no) in _FLAGS.items() if stated[name]]
    return (*flags, *filter(None, (_TRUSTS.get(stated["trusttype"]),)))


def names_of(tx: Tx, user_id: int) -> list[str]:
    """Return the case-folded login names of a person, the most important one first."""
    sql = "select name_key from directory_names where user_id = :id and is_alias < 2 order by is_alias, name_key"
    return [str(row[0]) for row in tx.rows(sql, id=user_id)]


def session_names(tx: Tx, domain_id: int, user_id: int) -> list[str]:
    """Return the case-folded names that the sessions of a person or a device can have: the login names, the names in
    client certificates, and the host names of a device in the realms of the domain.

    People and admins can write a mail address or the name of a device. So a name is left out if it is a login name of
    another user. The name of a device without a realm is left out too, because a directory that is not imported may
    have a person with this name.
    """
    sql = "select name_key from directory_names where user_id = :id and is_alias = :alias order by name_key"
    named = [str(row[0]).partition(":") for row in tx.rows(sql, id=user_id, alias=IDENTIFIER)]
    own = dict.fromkeys(names_of(tx, user_id))
    if not named:
        return list(own)
    sql = "select distinct realm_key from domain_realms where domain_id = :d order by realm_key"
    realms = [str(row[0]) for row in tx.rows(sql, d=domain_id)]
    found = [name for kind, _, name in named if kind in _IN_SESSIONS]
    hosts = [f"{name}.{realm}" for kind, _, name in named if kind == "dns" for realm in realms]
    found += [each for host in hosts for each in (f"host/{host}", host)]
    others = [each for each in found if each not in own and not _is_of_another(tx, domain_id, user_id, each, realms)]
    return list(dict.fromkeys((*own, *others)))


def _is_of_another(tx: Tx, domain_id: int, user_id: int, name: str, realms: Sequence[str]) -> bool:
    """Return whether an endpoint user or another imported person has a login name, with or without a realm."""
    user, _, realm = name.rpartition("@")
    plain = user if user and realm in realms else name
    sql = (
        "select 1 from directory_names where domain_id = :d and name_key = :key and user_id <> :id and is_alias < 2 "
        "union select 1 from endpoint_users where domain_id = :d and name_key = :key limit 1"
    )
    keys = (plain, *(f"{plain}@{each}" for each in realms))
    return any(tx.rows(sql, d=domain_id, id=user_id, key=key) for key in keys)


def remap(tx: Tx, run: ImportRun, user_id: int, mapping: FieldMapping, revocations: Revocations, at: int) -> bool:
    """Update a person's fields from the stored attributes. Return whether a field has changed."""
    known = PEOPLE.get(tx, user_id)
    if known is None:
        return False
    before = tx.value(str, "select fields from directory_users where id = :id", id=user_id)
    attributes = attributes_of(tx, user_id)
    columns = _columns(fields_of(attributes, mapping), known.login)
    sql = (
        "update directory_users set name = :name, display_name = :display_name, email = :email, upn = :upn, "
        "fields = :fields, mapping = :mapping, updated_at = :at where id = :id"
    )
    tx.execute(sql, id=user_id, mapping=mapping.digest, at=at, **columns)
    _search_again(tx, run.domain_id, known, columns)
    if columns["name"] != known.name:
        # Names from the directory are kept. A name that came only from the former mapping is deleted.
        own = {fold(value) for attribute in ALIASES for value in attributes.get(attribute, ())}
        aliases = [key for key in names_of(tx, user_id) if key != fold(known.name) or key in own]
        identifiers = identifiers_of(known.dn, known.login, attributes)
        _replace_names(tx, run.domain_id, user_id, columns["name"], (known.login, *aliases), identifiers)
        _release(tx, run, known, columns["name"], revocations)
    shown = (known.name, known.display_name, known.email, known.upn, before)
    return shown != tuple(columns[name] for name in ("name", "display_name", "email", "upn", "fields"))


# --- parts ----------------------------------------------------------------------------------------------------------


_COLUMNS: Final = (
    "external_id", "dn", "dn_key", "uid_key", "login", "status", "digest", "name", "display_name", "email", "upn",
    "fields",
)  # fmt: skip


def _add_all(tx: Tx, run: ImportRun, several: Sequence[PreparedPerson], at: int, unindexed: Unindexed) -> None:
    """Add at most AT_ONCE new people."""
    if not several:
        return
    columns = [_columns(fields_of(new.attributes, run.mapping), new.login) for new in several]
    rows = list[tuple[Value, ...]]()
    for new, shown in zip(several, columns, strict=True):
        own = (new.external_id, new.dn, new.dn_key, new.uid_key, new.login, new.status, new.digest)
        rows.append((*own, *shown.values()))
    same: dict[str, Value] = {"domain_id": run.domain_id, "directory_id": run.directory_id, "cloud": int(run.cloud)}
    more: dict[str, Value] = {"mapping": run.mapping.digest, "seen": run.job_id, "created_at": at, "updated_at": at}
    tx.insert("directory_users", _COLUMNS, rows, same={**same, **more})
    ids = PEOPLE.ids_of(tx, run, [new.external_id for new in several])
    tx.insert(
        "directory_attributes",
        ("user_id", "attributes"),
        [(user_id, json.dumps(new.attributes)) for user_id, new in zip(ids, several, strict=True)],
    )
    names = list[tuple[int, str, int, int]]()
    for user_id, new, shown in zip(ids, several, columns, strict=True):
        identifiers = identifiers_of(new.dn, new.login, new.attributes)
        names += _names(run.domain_id, user_id, shown["name"], (new.login, *new.aliases), identifiers)
        unindexed.append(IndexEntry(run.domain_id, user_id, _texts(*(shown[name] for name in _SHOWN))))
    tx.insert("directory_names", _NAMES, names)
    memberships.set_groups_of(tx, run.directory_id, {new.dn_key: new.group_keys for new in several})
    counters.add_rows(tx, run.domain_id, USER_COUNT, ids, 1)
    if run.cloud:
        counters.add(tx, run.domain_id, CLOUD_USER_COUNT, len(ids))


_SHOWN: Final = ("name", "display_name", "email", "upn")


def _columns(fields: PersonFields, login: str) -> dict[str, str]:
    return {
        "name": fields.username or login,
        "display_name": fields.display_name,
        "email": fields.email,
        "upn": fields.upn,
        "fields": json.dumps(fields.others) if fields.others else "{}",
    }


def _values(run: ImportRun, new: PreparedPerson) -> dict[str, str | bytes | int]:
    return {
        "dir": run.directory_id,
        "external": new.external_id,
        "dn": new.dn,
        "dn_key": new.dn_key,
        "uid_key": new.uid_key,
        "login": new.login,
        "status": new.status,
        "mapping": run.mapping.digest,
        "digest": new.digest,
        "job": run.job_id,
    }


def _texts(*shown: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fold(text) for text in shown if text))


def _search_again(tx: Tx, domain_id: int, known: StoredPerson, columns: Mapping[str, str]) -> None:
    texts = _texts(*(columns[name] for name in _SHOWN))
    if texts != known.texts:
        _SEARCH.remove(tx, domain_id, [known.id])
        _SEARCH.add(tx, domain_id, known.id, texts)


_NAMES: Final = ("domain_id", "name_key", "user_id", "is_alias")


def _replace_names(
    tx: Tx, domain_id: int, user_id: int, name: str, aliases: Sequence[str], identifiers: Sequence[str]
) -> None:
    tx.execute("delete from directory_names where user_id = :id", id=user_id)
    tx.insert("directory_names", _NAMES, _names(domain_id, user_id, name, aliases, identifiers))


def _names(
    domain_id: int, user_id: int, name: str, aliases: Sequence[str], identifiers: Sequence[str]
) -> list[tuple[int, str, int, int]]:
    """Return the rows with the case-folded names of a person, and with the person's identifiers. A login name that
    looks like an identifier of the person is left to the login names."""
    keys = dict.fromkeys((fold(name), *map(fold, aliases)))
    rows = [(domain_id, key, user_id, int(index > 0)) for index, key in enumerate(keys)]
    return rows + [(domain_id, key, user_id, IDENTIFIER) for key in identifiers if key not in keys]


def _loses_access(known: StoredPerson, status: str) -> bool:
    """Return whether the status of a person changes to an inactive one."""
    return status in GONE and known.status not in GONE


def _revoke(tx: Tx, run: ImportRun, names: Sequence[str], revocations: Revocations, reason: str) -> None:
    """Revoke the access of a person, unless `_is_elsewhere`. names: the names of the person, the login name first."""
    if not _is_elsewhere(tx, run, names[0] if names else ""):
        revocations.revoke(tx, run.domain_id, names, reason)


def _release(tx: Tx, run: ImportRun, known: StoredPerson, name: str, revocations: Revocations) -> None:
    """Release the former login name of a person unless it is still `name`, or unless `_is_elsewhere`."""
    former = fold(known.name)
    if former != fold(name) and not _is_elsewhere(tx, run, former):
        revocations.release(tx, run.domain_id, former)


def _is_elsewhere(tx: Tx, run: ImportRun, name: str) -> bool:
    """Return whether another directory of the domain has an active person with a case-folded login name."""
    sql = (
        "select 1 from directory_names n join directory_users u on u.id = n.user_id where n.domain_id = :d and "
        "n.name_key = :name and n.is_alias = 0 and u.status = :active and u.directory_id <> :dir"
    )
    return bool(tx.rows(sql, d=run.domain_id, name=name, active=Status.ACTIVE.value, dir=run.directory_id))
