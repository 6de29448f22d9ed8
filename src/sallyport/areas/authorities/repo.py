"""SQL for authorities."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sallyport.areas.authorities.authority import (
    MAX_AUTHORITIES,
    MAX_OF_DOMAIN,
    Anchor,
    Authority,
    AuthorityTable,
    HolderKind,
    Revocation,
)
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.text import counted, fold
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.store.model import LISTED, Tx, Value, columns_of, listed

NOT_FOUND: Final = "authority not found"


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    tenant_id: int
    name: str
    certificates: str
    anchors: str
    settings: str
    version: int


@dataclass(frozen=True, slots=True)
class _DomainOf:
    authority_id: int
    domain_id: int


@dataclass(frozen=True, slots=True)
class _Anchored:
    name: str
    anchors: str


_COLUMNS: Final = ", ".join(columns_of(_Row))


def load(tx: Tx, before: AuthorityTable) -> AuthorityTable:
    """Return the authorities of all tenants. before: an earlier result; an authority whose rows are the same is taken
    from it, and `before` itself is returned if nothing has changed."""
    domains: dict[int, list[int]] = {}
    for each in tx.all(_DomainOf, "select authority_id, domain_id from authority_domains order by domain_id"):
        domains.setdefault(each.authority_id, []).append(each.domain_id)
    stored = {
        row.id: (row, tuple(domains.get(row.id, ()))) for row in tx.all(_Row, f"select {_COLUMNS} from authorities")
    }
    if stored == before.stored:
        return before
    found = [before.by_id[key] if before.stored.get(key) == own else _authority(*own) for key, own in stored.items()]
    return AuthorityTable.of(found, stored)


def get(tx: Tx, tenant_id: int, authority_id: int) -> Authority:
    """Return an authority of a tenant. Raises NotFound."""
    sql = f"select {_COLUMNS} from authorities where id = :id and tenant_id = :t"
    row = tx.one(_Row, sql, id=authority_id, t=tenant_id)
    if row is None:
        raise NotFound(NOT_FOUND)
    domains = tx.rows("select domain_id from authority_domains where authority_id = :a order by domain_id", a=row.id)
    return _authority(row, tuple(int(str(each)) for (each,) in domains))


def put(tx: Tx, authority: Authority, at: int) -> Authority:
    """Store an authority, and return it as it is stored. If its id is 0, it is added.

    Raises Conflict if the name is taken, if the tenant or a domain would have too many authorities, or if another
    authority of a domain has the same key, or the same subject and key identifier. at: the time in microseconds.
    """
    key, tenant_id = fold(authority.name), authority.tenant_id
    sql = "select id from authorities where tenant_id = :t and name_key = :key and id <> :id"
    if tx.value(int, sql, t=tenant_id, key=key, id=authority.id) is not None:
        raise Conflict("the tenant has an authority of this name")
    values: dict[str, Value] = {
        "name": authority.name,
        "key": key,
        "pem": authority.certificates,
        "anchors": json.dumps([asdict(each) for each in authority.anchors]),
        "settings": json.dumps({name: getattr(authority, name) for name in _READ}),
        "at": at,
    }
    number = authority.id
    if number:
        tx.execute(
            "update authorities set name = :name, name_key = :key, certificates = :pem, anchors = :anchors, "
            "settings = :settings, version = version + 1, updated_at = :at where id = :id",
            id=number,
            **values,
        )
        tx.execute("delete from authority_domains where authority_id = :id", id=number)
    else:
        number = (
            tx.value(
                int,
                "insert into authorities "
                "(tenant_id, name, name_key, certificates, anchors, settings, version, updated_at) "
                "values (:t, :name, :key, :pem, :anchors, :settings, 1, :at) returning id",
                t=tenant_id,
                **values,
            )
            or 0
        )
        count = tx.value(int, "select count(*) from authorities where tenant_id = :t", t=tenant_id) or 0
        if count > MAX_AUTHORITIES:
            raise Conflict(f"a tenant has at most {counted(MAX_AUTHORITIES, 'authority', 'authorities')}")
    tx.insert(
        "authority_domains", ("domain_id",), [(each,) for each in authority.domain_ids], same={"authority_id": number}
    )
    found = get(tx, tenant_id, number)
    _check_domains(tx, found)
    return found


def present_domains(tx: Tx, authority: Authority) -> tuple[int, ...]:
    """Return the ids of the domains of an authority that were not removed meanwhile."""
    sql = f"select id from domains where id in {LISTED} and removed_at is null order by id"
    return tuple(int(str(each)) for (each,) in tx.rows(sql, ids=listed(authority.domain_ids)))


def delete(tx: Tx, authority: Authority) -> None:
    """Delete an authority."""
    tx.execute("delete from authority_domains where authority_id = :id", id=authority.id)
    tx.execute("delete from certified_users where authority_id = :id", id=authority.id)
    tx.execute("delete from revoked_certificates where authority_id = :id", id=authority.id)
    tx.execute("delete from authorities where id = :id", id=authority.id)


def _check_domains(tx: Tx, authority: Authority) -> None:
    """Check the authorities of the domains of a stored authority. Raises Conflict."""
    sql = f"select authority_id, domain_id from authority_domains where domain_id in {LISTED} and authority_id <> :own"
    others = tx.all(_DomainOf, sql, ids=listed(authority.domain_ids), own=authority.id)
    numbers = Counter(each.domain_id for each in others)
    if full := [number for number, count in numbers.items() if count >= MAX_OF_DOMAIN]:
        raise Conflict(f"a domain has at most {MAX_OF_DOMAIN} authorities: remove one from the domain {full[0]}")
    sql = f"select name, anchors from authorities where id in {LISTED}"
    for other in tx.all(_Anchored, sql, ids=listed({each.authority_id for each in others})):
        anchors = _anchors(other.anchors)
        if not authority.keys.isdisjoint(each.key for each in anchors):
            raise Conflict(
                f"the authority {other.name} of the same domain has the same key: it says who signed a certificate"
            )
        if any(own.is_confusable(each) for own in authority.anchors for each in anchors):
            raise Conflict(
                f"certificates: the authority {other.name} of the same domain has a certificate with the same subject, "
                "and their SubjectKeyIdentifiers are the same or missing: TLS would confuse their keys"
            )


def _anchors(text: str) -> tuple[Anchor, ...]:
    return tuple(Anchor(**each) for each in json.loads(text))


def _authority(row: _Row, domain_ids: Sequence[int]) -> Authority:
    kept: Mapping[str, object] = json.loads(row.settings)
    return Authority(
        row.id,
        row.tenant_id,
        row.name,
        row.certificates,
        _anchors(row.anchors),
        tuple(domain_ids),
        version=row.version,
        **{name: read(kept[name]) for name, read in _READ.items() if name in kept},
    )


def _kinds(values: list[str]) -> tuple[HolderKind, ...]:
    return tuple(map(HolderKind, values))


def _names(values: list[str]) -> tuple[NamedBy, ...]:
    return tuple(map(NamedBy, values))


_READ: Final[Mapping[str, Callable[..., Any]]] = {
    "kinds": _kinds,
    "realms": tuple,
    "groups": tuple,
    "sid_prefixes": tuple,
    "names": _names,
    "strong_only": bool,
    "revocation": Revocation,
    "crl_addresses": tuple,
    "ocsp_address": str,
    "ocsp_nonce": bool,
    "use_certificate_addresses": bool,
}
"""How each setting is read from JSON."""
