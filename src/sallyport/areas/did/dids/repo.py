"""The SQL of DIDs and their keys."""

from sallyport.areas.did.crypto.documents import ASSERTION, PURPOSES, Document, Method, of_methods, resolve
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.crypto.keys import PrivateKey, PublicKey, from_multikey
from sallyport.areas.did.dids.did import DidKind, KeyRow, NewDid, Record, Search
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.secret import Secret
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.counters import whole_page
from sallyport.store.erasure import PRESENT
from sallyport.store.inserts import insert_new, insert_row
from sallyport.store.model import ListQuery, Tx, Value, columns_of
from sallyport.store.search import MAX_COUNTED, SearchIndex
from sallyport.store.search import page as page_of
from sallyport.store.vault import Vault

ACTIVE, RETIRED = "active", "retired"
COUNTER = "dids"
NO_ISSUER = "issuer not found"
_SEARCH = SearchIndex("dids_search")  # keyed by tenant, because a search covers all domains of a tenant
_SELECT = (
    "select id, tenant_id, domain_id, did, kind, method, name, description, wallet_id, issuer_id, "
    "case kind when 'Issuer' then name else coalesce((select i.name from dids i where i.id = dids.issuer_id), '') end "
    "as issuer_name, credentials_issued, updated_at, deleted_at from dids"
)
_LIVE = "deleted_at is null"
_CONTAINS = "instr(fold(name), :text) > 0"
_KEY = f"select {', '.join(columns_of(KeyRow))} from did_keys"


def add(
    tx: Tx,
    tenant_id: int,
    new: NewDid,
    kind: DidKind,
    did: str,
    at: int,
    *,
    wallet_id: int | None,
    issuer_id: int | None,
) -> int:
    """Add a DID, and return the id of its record. Raises Conflict if the domain already has the DID."""
    did_id = insert_new(
        tx,
        "dids",
        "domain_id, did",
        tenant_id=tenant_id,
        domain_id=new.domain_id,
        did=did,
        kind=kind.value,
        method=new.method,
        name=new.name,
        description=new.description,
        wallet_id=wallet_id,
        issuer_id=issuer_id,
        created_at=at,
        updated_at=at,
    )
    if did_id is None:
        raise Conflict("the domain already has a DID with this key: give another key")
    _SEARCH.add(tx, tenant_id, did_id, (fold(new.name),))
    _count(tx, new.domain_id, kind, did_id, 1)
    return did_id


def delete(tx: Tx, record: Record, at: int) -> None:
    """Delete a DID from the lists. The row and the key of a holder are deleted. The rows of an issuer and its keys
    are kept, so that its credentials can still be verified."""
    _SEARCH.remove(tx, record.tenant_id, [record.id])
    _count(tx, record.domain_id, DidKind(record.kind), record.id, -1)
    if record.kind == DidKind.USER:
        tx.execute("delete from did_keys where did_id = :id", id=record.id)
        tx.execute("delete from dids where id = :id", id=record.id)
    else:
        tx.execute("update dids set deleted_at = :at, updated_at = :at where id = :id", at=at, id=record.id)


def get(tx: Tx, domain_id: int, did: str, kind: DidKind) -> Record | None:
    """Return a DID of a domain, or None. kind: the owner of the DID."""
    sql = f"{_SELECT} where domain_id = :d and did = :did and kind = :kind and {_LIVE}"
    return tx.one(Record, sql, d=domain_id, did=did, kind=kind.value)


def of_tenant(tx: Tx, tenant_id: int, did: str, kind: DidKind) -> Record | None:
    """Return a DID of a tenant, or None. kind: the owner of the DID."""
    sql = f"{_SELECT} where did = :did and tenant_id = :t and kind = :kind and {_LIVE} order by id limit 1"
    return tx.one(Record, sql, t=tenant_id, did=did, kind=kind.value)


def by_id(tx: Tx, did_id: int) -> Record | None:
    """Return the DID with this record id, even if the DID is deleted. Return None if the record does not exist."""
    return tx.one(Record, f"{_SELECT} where id = :id", id=did_id)


def issuer(tx: Tx, domain_id: int, did_id: int) -> Record | None:
    """Return an issuer of the domain by the id of its record, or None."""
    sql = f"{_SELECT} where id = :id and domain_id = :d and kind = 'Issuer' and {_LIVE}"
    return tx.one(Record, sql, id=did_id, d=domain_id)


def page(tx: Tx, stretch: ListQuery, *, issuer_id: int = 0, wallet_id: int = 0) -> tuple[list[Record], int]:
    """Return one page of a domain's DIDs, ordered by id, and the number of matches.

    issuer_id: return only the DIDs of this issuer and its holders; 0 for any issuer. wallet_id: return only the DIDs
    of this wallet; 0 for any wallet.
    """
    if not issuer_id and not wallet_id:
        return whole_page(tx, Record, _SELECT, "dids", stretch, counter=COUNTER, only=_LIVE)
    parameters: dict[str, Value] = {"d": stretch.domain_id, "issuer": issuer_id, "wallet": wallet_id}
    of_domain = f"domain_id = :d and {_LIVE}"
    if wallet_id:
        narrower = " and (issuer_id = :issuer or id = :issuer)" if issuer_id else ""
        ids = f"select id from dids where {of_domain} and wallet_id = :wallet{narrower}"
    else:
        ids = (
            f"select id from dids where {of_domain} and id = :issuer union all "
            f"select id from dids where {of_domain} and issuer_id = :issuer and id <> :issuer"
        )
    used = {name: value for name, value in parameters.items() if f":{name}" in ids}
    return page_of(tx, Record, _SELECT, ids, stretch, counter=None, searched=False, **used)


def search(tx: Tx, asked: Search) -> tuple[list[Record], int]:
    """Return one page of the DIDs that a search finds, ordered by id, and the number of matches."""
    if asked.did_id or asked.text.startswith("did:"):
        return _exact(tx, asked)
    if asked.domain_id:
        return _of_domain(tx, asked)
    stretch = ListQuery(asked.tenant_id, asked.offset, asked.limit)
    if asked.text and asked.kind is None:
        return _SEARCH.page(tx, Record, _SELECT, stretch, asked.text)
    where, given = _where(asked)
    ids = f"select id from dids where {where}"
    if not asked.text:
        total = sum(_total(tx, asked.tenant_id, each) for each in ([asked.kind] if asked.kind else DidKind))
        return _stretch(tx, ids, asked, given), total
    found, match = _SEARCH.find(tx, asked.tenant_id, asked.text)
    ids, given = f"{ids} and +id in ({found})", given | match
    return page_of(tx, Record, _SELECT, ids, stretch, counter=None, searched=True, **given)


def _where(asked: Search, *, is_narrow: bool = False) -> tuple[str, dict[str, Value]]:
    """Return the condition for the tenant or the domain and for the kind of a search, and its parameters. is_narrow:
    whether another condition selects few DIDs. `+` makes the planner start from that condition, not from all DIDs."""
    scope, value = ("domain_id", asked.domain_id) if asked.domain_id else ("tenant_id", asked.tenant_id)
    where, given = f"{'+' * is_narrow}{scope} = :scope and {_LIVE}", dict[str, Value](scope=value)
    if asked.kind is not None:
        where, given["kind"] = f"{where} and kind = :kind", asked.kind
    return where, given


def _exact(tx: Tx, asked: Search) -> tuple[list[Record], int]:
    """Return the DIDs with this id, or with this DID in the domains of a tenant."""
    where, given = _where(asked, is_narrow=True)
    if asked.did_id:
        where, given["id"] = f"{where} and id = :id", asked.did_id
    if asked.text.startswith("did:"):
        where, given["did"] = f"{where} and did = :did", asked.text
    elif asked.text:
        where, given["text"] = f"{where} and {_CONTAINS}", fold(asked.text)
    ids, stretch = f"select id from dids where {where}", ListQuery(asked.tenant_id, asked.offset, asked.limit)
    return page_of(tx, Record, _SELECT, ids, stretch, counter=None, searched=False, **given)


def _of_domain(tx: Tx, asked: Search) -> tuple[list[Record], int]:
    """Return the DIDs of a domain that a search finds.

    The search index has the DIDs of all domains of the tenant. So it is used only if the domain has many DIDs of this
    kind. The names of few DIDs are read instead.
    """
    where, given = _where(asked)
    ids = f"select id from dids where {where}"
    stretch = ListQuery(asked.domain_id, asked.offset, asked.limit)
    if not asked.text and asked.kind is None:
        return whole_page(tx, Record, _SELECT, "dids", stretch, counter=COUNTER, only=_LIVE)
    counter = COUNTER if asked.kind is None else f"{COUNTER}/{asked.kind}"
    total = counters.total(tx, asked.domain_id, counter)
    if not asked.text:
        return _stretch(tx, ids, asked, given), total
    if total <= MAX_COUNTED:
        ids, given["text"] = f"{ids} and {_CONTAINS}", fold(asked.text)
        return page_of(tx, Record, _SELECT, ids, stretch, counter=None, searched=True, **given)
    only = f"exists (select 1 from dids where dids.id = {{id}} and {where})"
    whole = ListQuery(asked.tenant_id, asked.offset, asked.limit)
    return _SEARCH.page(tx, Record, _SELECT, whole, asked.text, only, **given)


def _stretch(tx: Tx, ids: str, asked: Search, given: dict[str, Value]) -> list[Record]:
    sql = f"{_SELECT} where id in ({ids} order by id limit :limit offset :offset) order by id"
    return tx.all(Record, sql, limit=asked.limit, offset=asked.offset, **given)


# --- keys -----------------------------------------------------------------------------------------------------------


def add_key(tx: Tx, did_id: int, method_id: str, key: PublicKey, at: int) -> int:
    """Add a new signing key, and return its id. The former signing key is kept as retired."""
    tx.execute("update did_keys set state = :retired where did_id = :id", retired=RETIRED, id=did_id)
    tx.execute("update dids set updated_at = :at where id = :id", at=at, id=did_id)
    return insert_row(
        tx, "did_keys", did_id=did_id, method_id=method_id, multikey=key.multikey, state=ACTIVE, created_at=at
    )


def count_keys(tx: Tx, did_id: int) -> int:
    """Return the number of keys that a DID has had."""
    return tx.value(int, "select count(*) from did_keys where did_id = :id", id=did_id) or 0


def keep(tx: Tx, key_id: int, sealed: bytes) -> None:
    """Store the encrypted private key of a key row. The caller encrypts the private key with `identity(key_id)` as
    associated data."""
    tx.execute("update did_keys set sealed = :sealed where id = :id", sealed=sealed, id=key_id)


def identity(key_id: int) -> str:
    """Return the associated data for the encryption of a private key."""
    return f"did_keys/{key_id}/sealed"


def active_key(tx: Tx, did_id: int) -> KeyRow | None:
    """Return the key that signs for a DID, or None."""
    return tx.one(KeyRow, f"{_KEY} where did_id = :id and state = :state", id=did_id, state=ACTIVE)


def signing_key(tx: Tx, issuer: Record | None) -> tuple[Record, KeyRow]:
    """Return an issuer with its current signing key. Raises NotFound if the issuer is None or has no key."""
    key = None if issuer is None else active_key(tx, issuer.id)
    if issuer is None or key is None:
        raise NotFound(NO_ISSUER)
    return issuer, key


def signer(vault: Vault, key: KeyRow) -> Signer:
    """Return a signer with an issuer's key, which the vault decrypts. Raises SecretError."""
    assert key.sealed is not None  # noqa: S101  an issuer's key is kept here
    clear = vault.open(key.sealed, identity(key.id))
    return Signer(key.method_id, PrivateKey(from_multikey(key.multikey).curve, Secret(clear)))


def document(tx: Tx, did: str) -> Document | None:
    """Return the document of a did:web of this service, or None. A retired key may only be used to verify
    assertions."""
    present = f"select id from dids where did = :did and {PRESENT}"
    keys = tx.all(KeyRow, f"{_KEY} where did_id in ({present}) order by id", did=did)
    methods = [
        Method(
            each.method_id, from_multikey(each.multikey), frozenset(PURPOSES if each.state == ACTIVE else (ASSERTION,))
        )
        for each in keys
    ]
    return of_methods(did, methods) if methods else None


def document_of(tx: Tx, did: str) -> Document:
    """Return the document of a DID that can be found without network access. Raises CredentialError `unresolved` if
    there is no such document, or if network access would be needed."""
    return (document(tx, did) if did.startswith("did:web:") else None) or resolve(did)


def count_issued(tx: Tx, issuer_id: int, at: int) -> None:
    """Add one to the number of credentials that an issuer has issued."""
    tx.execute(
        "update dids set credentials_issued = credentials_issued + 1, updated_at = :at where id = :id",
        at=at,
        id=issuer_id,
    )


def _count(tx: Tx, domain_id: int, kind: DidKind, did_id: int, change: int) -> None:
    counters.add(tx, domain_id, f"{COUNTER}/{kind}", change)
    counters.add_row(tx, domain_id, COUNTER, did_id, change)


def _total(tx: Tx, tenant_id: int, kind: DidKind) -> int:
    sql = (
        "select coalesce(sum(value), 0) from counters where name = :name "
        "and domain_id in (select id from domains where tenant_id = :t)"
    )
    return tx.value(int, sql, name=f"{COUNTER}/{kind}", t=tenant_id) or 0
