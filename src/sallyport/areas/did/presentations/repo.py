"""The SQL of presentation requests."""

from dataclasses import asdict

from sallyport.areas.did.presentations.request import Listed, NewRequest, Request, Status
from sallyport.store.erasure import OF_TENANT
from sallyport.store.inserts import insert_new
from sallyport.store.model import Tx, columns_of
from sallyport.store.slices import SLICE

KEEP_US = 30 * 86_400 * 1_000_000
"""Time for which a request is kept after its expiry, so that its result can still be read."""
PURGED = 100
LAST = 2**63 - 1
"""An id that is larger than all others."""
_SELECT = f"select {', '.join(columns_of(Request))} from presentation_requests"
_OPEN = "wallet_id = :wallet and status = 'open' and expires_at > :at"


def add(tx: Tx, new: NewRequest, at: int) -> int:
    """Add a request, and return its id. If there already is a request for the same challenge, add nothing, and return
    the id of that request. Also delete some old requests that expired long ago."""
    request_id = insert_new(tx, "presentation_requests", "challenge_id", status="open", created_at=at, **asdict(new))
    if request_id is None:
        request_id = tx.value(
            int, "select id from presentation_requests where challenge_id = :challenge", challenge=new.challenge_id
        )
    assert request_id is not None  # noqa: S101  one of the two is there
    tx.execute(
        "delete from presentation_requests where id in "
        "(select id from presentation_requests where expires_at < :before order by expires_at limit :most)",
        before=at - KEEP_US,
        most=PURGED,
    )
    return request_id


def get(tx: Tx, request_id: int) -> Request | None:
    """Return a request, or None."""
    return tx.one(Request, f"{_SELECT} where id = :id", id=request_id)


def of_tenant(tx: Tx, tenant_id: int, request_id: int) -> Request | None:
    """Return a request of the tenant's domains, or None."""
    sql = f"{_SELECT} where id = :id and {OF_TENANT}"
    return tx.one(Request, sql, id=request_id, t=tenant_id)


def listed(tx: Tx, domain_id: int, before: int, limit: int) -> list[Listed]:
    """Return requests of a domain, the newest first. before: the id before which the list begins; 0 for the newest."""
    sql = (
        "select r.id, r.wallet_id, w.username, r.holder_did, r.issuer_did, coalesce(s.name, '') as schema_name, "
        "r.purpose, r.endpoint, r.status, r.created_at, r.expires_at, r.answered_at from presentation_requests r "
        "join wallets w on w.id = r.wallet_id left join credential_schemas s on s.id = r.schema_id "
        "where r.domain_id = :d and r.id < :before order by r.id desc limit :limit"
    )
    return tx.all(Listed, sql, d=domain_id, before=before or LAST, limit=limit)


def first_open(tx: Tx, wallet_id: int, holder_did: str, at: int) -> Request | None:
    """Return the holder's oldest open request, or None."""
    return tx.one(
        Request,
        f"{_SELECT} where {_OPEN} and holder_did = :holder order by id limit 1",
        wallet=wallet_id,
        holder=holder_did,
        at=at,
    )


def count_open(tx: Tx, wallet_id: int, at: int) -> int:
    """Return the number of a wallet's open requests."""
    return tx.value(int, f"select count(*) from presentation_requests where {_OPEN}", wallet=wallet_id, at=at) or 0


def close(tx: Tx, request_id: int, status: Status, at: int, *, credential_id: int | None = None) -> bool:
    """Close a request with its final status. Return False if the request was already closed or has expired."""
    return (
        tx.execute(
            "update presentation_requests set status = :status, credential_id = :credential, answered_at = :at "
            "where id = :id and status = 'open' and expires_at > :at",
            id=request_id,
            status=status.value,
            credential=credential_id,
            at=at,
        )
        > 0
    )


def close_all(tx: Tx, domain_id: int, holder_did: str, issuer_did: str, at: int) -> list[int]:
    """Withdraw at most SLICE open requests that ask this holder for a credential of this issuer. Return the ids of the
    withdrawn requests. One of the two DIDs may be empty. An empty DID means any holder or any issuer.

    The query does not read expired requests, because a tenant may have a million of them.
    """
    dids = {name: did for name, did in (("holder_did", holder_did), ("issuer_did", issuer_did)) if did}
    if holder_did and issuer_did:  # `||` makes the planner start from the holder, which has fewer requests
        columns = "holder_did = :holder_did and issuer_did || '' = :issuer_did"
    else:
        columns = "".join(f"{name} = :{name}" for name in dids)
    sql = "select id from presentation_requests where expires_at > :at and status = 'open' and domain_id = :d"
    ids = tx.all(_id, f"{sql} and {columns} limit {SLICE}", d=domain_id, at=at, **dids)
    for each in ids:
        sql = "update presentation_requests set status = 'withdrawn', answered_at = :at where id = :id"
        tx.execute(sql, at=at, id=each)
    return ids


def void(tx: Tx, at: int) -> None:
    """Withdraw every open request."""
    tx.execute("update presentation_requests set status = 'withdrawn', answered_at = :at where status = 'open'", at=at)


def _id(*, id: int) -> int:
    return id
