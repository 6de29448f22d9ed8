"""SQL for profiles."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sallyport.areas.profiles.profile import MAX_PROFILES, LoginBy, Method, Profile, Security
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.store.erasure import PRESENT
from sallyport.store.model import Tx

_COLUMNS = "id, domain_id, name, uuid, settings, link_expires_at"


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    domain_id: int
    name: str
    uuid: str
    settings: str
    link_expires_at: int | None


def profiles(tx: Tx, domain_id: int) -> list[Profile]:
    """Return the profiles of a domain, ordered by name."""
    sql = f"select {_COLUMNS} from network_profiles where domain_id = :domain order by name_key"
    return [_profile(row) for row in tx.all(_Row, sql, domain=domain_id)]


def get(tx: Tx, domain_id: int, name: str) -> Profile | None:
    """Return a domain's profile, or None if the domain has no profile of this name. Case is ignored."""
    sql = f"select {_COLUMNS} from network_profiles where domain_id = :domain and name_key = :key"
    row = tx.one(_Row, sql, domain=domain_id, key=fold(name))
    return None if row is None else _profile(row)


def behind(tx: Tx, link_hash: str, at: int) -> Profile | None:
    """Return the profile behind a link, or None if the link is not valid at the time `at` in microseconds."""
    sql = f"select {_COLUMNS} from network_profiles where link_hash = :hash and link_expires_at > :at and {PRESENT}"
    row = tx.one(_Row, sql, hash=link_hash, at=at)
    return None if row is None else _profile(row)


def put(tx: Tx, profile: Profile, at: int) -> None:
    """Insert a profile, or replace the settings of the profile with the same name. Raises Conflict if the domain would
    have too many profiles. at: the time in microseconds."""
    tx.execute(
        "insert into network_profiles (domain_id, name, name_key, uuid, settings, updated_at) "
        "values (:domain, :name, :key, :uuid, :settings, :at) on conflict (domain_id, name_key) "
        "do update set settings = excluded.settings, updated_at = excluded.updated_at",
        domain=profile.domain_id,
        name=profile.name,
        key=fold(profile.name),
        uuid=str(profile.uuid),
        settings=json.dumps(settings_of(profile)),
        at=at,
    )
    sql = "select count(*) from network_profiles where domain_id = :domain"
    if (tx.value(int, sql, domain=profile.domain_id) or 0) > MAX_PROFILES:
        raise Conflict(f"a domain has at most {MAX_PROFILES} profiles: remove some first")


def set_link(tx: Tx, profile: Profile, link_hash: str | None, expires_at: int | None, at: int) -> None:
    """Set the link of a profile, in place of its former link. None ends the link."""
    tx.execute(
        "update network_profiles set link_hash = :hash, link_expires_at = :expires, updated_at = :at where id = :id",
        id=profile.id,
        hash=link_hash,
        expires=expires_at,
        at=at,
    )


def end_links(tx: Tx, at: int) -> None:
    """End the links of all profiles. at: the time in microseconds."""
    tx.execute("update network_profiles set link_hash = null, link_expires_at = null, updated_at = :at", at=at)


def delete(tx: Tx, profile: Profile) -> None:
    """Delete a profile."""
    tx.execute("delete from network_profiles where id = :id", id=profile.id)


def settings_of(profile: Profile) -> Mapping[str, JSON]:
    """Return the settings of a profile as the store and the audit trail have them."""
    return {
        "ssids": list(profile.ssids),
        "hidden": profile.hidden,
        "security": profile.security,
        "wired": profile.wired,
        "method": profile.method,
        "loginBy": profile.login_by,
        "outerIdentity": profile.outer_identity,
        "serverNames": list(profile.server_names),
        "anchors": profile.anchors,
    }


def _profile(row: _Row) -> Profile:
    stored = json.loads(row.settings)
    return Profile(
        row.id,
        row.domain_id,
        row.name,
        UUID(row.uuid),
        tuple(stored["ssids"]),
        stored["hidden"],
        Security(stored["security"]),
        stored["wired"],
        Method(stored["method"]),
        LoginBy(stored["loginBy"]),
        stored["outerIdentity"],
        tuple(stored["serverNames"]),
        stored["anchors"],
        row.link_expires_at,
    )
