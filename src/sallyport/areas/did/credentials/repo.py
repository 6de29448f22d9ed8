"""The SQL of schemas, credentials and status lists, and the SQL that finds the holder of a user."""

import json
from dataclasses import dataclass

from sallyport.areas.did.credentials.credential import Credential, Holder, ListedSchema, Schema, Status
from sallyport.areas.did.crypto import jws
from sallyport.areas.did.crypto.encoding import read_object
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.store import counters
from sallyport.store.inserts import insert_row
from sallyport.store.model import ListQuery, Tx, Value, columns_of
from sallyport.store.search import page as page_of
from sallyport.store.vault import Vault

COUNTER = "credentials"
VALID_EVER = "c.status in ('Assigned', 'Accepted')"
VALID = f"{VALID_EVER} and (c.expires_at is null or c.expires_at > :at)"
"""The SQL condition that selects credentials `c` that are valid at the time `:at`."""
LIVE = (
    "exists (select 1 from dids h where h.domain_id = c.domain_id and h.did = c.holder_did and h.kind = 'User' "
    "and h.deleted_at is null)"
)
"""The SQL condition that selects credentials `c` whose holder's DID is not deleted."""
_SCHEMA = f"select {', '.join(columns_of(Schema))} from credential_schemas"
_LISTED_SCHEMA = (
    "select id, name, (select did from dids where id = credential_schemas.author_id) as author, coalesce((select "
    "case when name = '' then did else name end from dids where id = credential_schemas.author_id and deleted_at is "
    "null), '') as author_name, "
    "json_extract(content, '$.proof') is not null as signed from credential_schemas"
)
_COLUMNS = tuple(name for name in Credential._fields if name not in {"issuer_name", "schema_name"})
_SELECT = (
    f"select {', '.join(_COLUMNS)}, (select name from dids where id = credentials.issuer_id) as issuer_name, "
    "(select name from credential_schemas where id = credentials.schema_id) as schema_name from credentials"
)


# --- schemas --------------------------------------------------------------------------------------------------------


def add_schema(tx: Tx, new: Schema, author_id: int, at: int) -> int:
    """Add a schema, and return its id. `new.id` is ignored."""
    return insert_row(
        tx,
        "credential_schemas",
        tenant_id=new.tenant_id,
        domain_id=new.domain_id,
        author_id=author_id,
        uuid=new.uuid,
        name=new.name,
        content=new.content,
        created_at=at,
    )


def schema(tx: Tx, domain_id: int, schema_id: int) -> Schema | None:
    """Return a schema of the domain, or None."""
    return tx.one(Schema, f"{_SCHEMA} where id = :id and domain_id = :d", id=schema_id, d=domain_id)


def published_schema(tx: Tx, uuid: str) -> str | None:
    """Return a published schema as JSON, or None. uuid: the last part of the schema's URL."""
    return tx.value(str, "select content from credential_schemas where uuid = :uuid", uuid=uuid)


def schemas(tx: Tx, stretch: ListQuery, author: str, search: str) -> tuple[list[ListedSchema], int]:
    """Return one page of a domain's schemas, ordered by id, and the number of all matching schemas. author: the DID of
    the author; empty for any author. search: a part of the name; empty for any name."""
    ids, given = "select id from credential_schemas where domain_id = :d", dict[str, Value](d=stretch.domain_id)
    if author:
        by = "author_id in (select id from dids where domain_id = :d and did = :author)"
        ids, given["author"] = f"{ids} and {by}", author
    if search:
        ids, given["search"] = f"{ids} and instr(fold(name), :search) > 0", fold(search)
    return page_of(tx, ListedSchema, _LISTED_SCHEMA, ids, stretch, counter=None, searched=False, **given)


# --- credentials ----------------------------------------------------------------------------------------------------


def add(tx: Tx, new: Credential, token: str, proof: JSON) -> int:
    """Add a credential, and return its id. `new.id` is ignored."""
    columns = {name: getattr(new, name) for name in _COLUMNS if name != "id"}
    place = counters.total(tx, new.domain_id, COUNTER) + 1
    credential_id = insert_row(tx, "credentials", updated_at=new.issued_at, place=place, **columns)
    tx.execute(
        "insert into credential_tokens (credential_id, jwt, proof) values (:id, :jwt, :proof)",
        id=credential_id,
        jwt=token,
        proof=None if proof is None else json.dumps(proof, ensure_ascii=False),
    )
    counters.add(tx, new.domain_id, COUNTER, 1)
    return credential_id


def get(tx: Tx, domain_id: int, credential_id: int) -> Credential | None:
    """Return a credential of the domain, or None."""
    return tx.one(Credential, f"{_SELECT} where id = :id and domain_id = :d", id=credential_id, d=domain_id)


def by_uuid(tx: Tx, domain_id: int, uuid: str) -> Credential | None:
    """Return the credential with this `urn:uuid:` in a domain, or None."""
    return tx.one(Credential, f"{_SELECT} where uuid = :uuid and domain_id = :d", uuid=uuid, d=domain_id)


def of_tenant(tx: Tx, tenant_id: int, name: str) -> Credential | None:
    """Return a credential of the tenant, or None. name: the `urn:uuid:` or the number of the credential."""
    if name.isascii() and name.isdecimal() and len(name) < 19:
        return tx.one(Credential, f"{_SELECT} where id = :id and tenant_id = :t", id=int(name), t=tenant_id)
    return tx.one(Credential, f"{_SELECT} where uuid = :uuid and tenant_id = :t", uuid=name, t=tenant_id)


def page(tx: Tx, stretch: ListQuery) -> tuple[list[Credential], int]:
    """Return one page of a domain's credentials, ordered by id, and the total number of credentials."""
    places = "where domain_id = :d and place > :offset and place <= :offset + :limit order by place"
    found = tx.all(Credential, f"{_SELECT} {places}", d=stretch.domain_id, offset=stretch.offset, limit=stretch.limit)
    return found, counters.total(tx, stretch.domain_id, COUNTER)


def of_wallet(
    tx: Tx, wallet_id: int, status: Status, stretch: ListQuery, search: str = ""
) -> tuple[list[Credential], int]:
    """Return one page of a wallet's credentials with this status, ordered by id, and the number of all matching
    credentials. search: a part of the credential's name."""
    given: dict[str, Value] = {"wallet": wallet_id, "status": status.value}
    ids = "select id from credentials where wallet_id = :wallet and status = :status"
    if search:
        ids, given = f"{ids} and instr(fold(name), :search) > 0", {**given, "search": fold(search)}
    return page_of(tx, Credential, _SELECT, ids, stretch, counter=None, searched=False, **given)


def valid_of_wallet(tx: Tx, wallet_id: int, at: int) -> list[int]:
    """Return the ids of a wallet's credentials that are valid at the time `at`. The ids are in ascending order."""
    sql = f"select c.id from credentials c where c.wallet_id = :wallet and {VALID} and {LIVE} order by c.id"
    return [int(str(each)) for (each,) in tx.rows(sql, wallet=wallet_id, at=at)]


def document(tx: Tx, credential_id: int) -> dict[str, JSON]:
    """Return a credential's document, with its proof."""
    (row,) = tx.rows("select jwt, proof from credential_tokens where credential_id = :id", id=credential_id)
    found = jws.parse(str(row[0])).payload["vc"]
    assert isinstance(found, dict)  # noqa: S101  it was made here
    return found if row[1] is None else {**found, "proof": read_object(str(row[1]))}


def token(tx: Tx, credential_id: int) -> str:
    """Return the token (VC-JWT) of a credential."""
    return tx.value(str, "select jwt from credential_tokens where credential_id = :id", id=credential_id) or ""


def move(tx: Tx, credential: Credential, status: Status, wallet_id: int, at: int) -> None:
    """Store the status and the wallet of a credential. Store also the user name in the credential, so that a login can
    find the credential by this name."""
    tx.execute(
        "update credentials set status = :status, wallet_id = :wallet, updated_at = :at where id = :id",
        id=credential.id,
        status=status.value,
        wallet=wallet_id,
        at=at,
    )
    if credential.epm_username:
        tx.execute(
            "insert into credential_users (credential_id, domain_id, name_key) values (:id, :d, :key) "
            "on conflict do nothing",
            id=credential.id,
            d=credential.domain_id,
            key=fold(credential.epm_username),
        )


def revoke(tx: Tx, revoked: Credential, at: int) -> None:
    """Mark a credential as revoked, and delete the password that was stored for its holder."""
    tx.execute(
        "update credentials set status = :status, password = null, revoked_at = :at, updated_at = :at where id = :id",
        status=Status.REVOKED.value,
        at=at,
        id=revoked.id,
    )


def password_identity(credential_id: int) -> str:
    """Return the associated data for the encryption of a credential's password."""
    return f"credentials/{credential_id}/password"


def keep_password(tx: Tx, vault: Vault, credential_id: int, clear: str) -> None:
    """Store a password for the credential's holder, encrypted."""
    sealed = vault.seal(clear.encode(), password_identity(credential_id))
    tx.execute("update credentials set password = :sealed where id = :id", sealed=sealed, id=credential_id)


def password(tx: Tx, vault: Vault, credential_id: int) -> str:
    """Return the password of a credential, or an empty text if it has none. Raises SecretError."""
    sealed = tx.value(bytes, "select password from credentials where id = :id", id=credential_id)
    return "" if sealed is None else vault.open(sealed, password_identity(credential_id)).decode()


# --- status lists ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatusList:
    """A status list. used: the number of bits that are reserved for credentials. version: a number that grows by one
    with each change of the bits."""

    id: int
    uuid: str
    issuer_id: int
    used: int
    version: int


_STATUS_LIST = f"select {', '.join(columns_of(StatusList))} from status_lists"


def list_with_room(tx: Tx, issuer_id: int, most: int) -> StatusList | None:
    """Return an issuer's newest status list. Return None if the issuer has no list, or if at least `most` bits of the
    newest list are reserved."""
    found = tx.one(StatusList, f"{_STATUS_LIST} where issuer_id = :i order by id desc limit 1", i=issuer_id)
    return found if found is not None and found.used < most else None


def add_list(tx: Tx, issuer_id: int, uuid: str, bits: bytes) -> StatusList:
    """Add a list."""
    return StatusList(insert_row(tx, "status_lists", issuer_id=issuer_id, uuid=uuid, bits=bits), uuid, issuer_id, 0, 0)


def is_given(tx: Tx, list_id: int, index: int) -> bool:
    """Return whether a bit of a list is reserved for a credential."""
    sql = "select 1 from credentials where list_id = :list and list_index = :index"
    return tx.value(int, sql, list=list_id, index=index) is not None


def take(tx: Tx, list_id: int) -> None:
    """Add one to the number of reserved bits of a list."""
    tx.execute("update status_lists set used = used + 1 where id = :id", id=list_id)


def bits(tx: Tx, list_id: int) -> bytes:
    """Return the bits of a list, eight bits in each octet."""
    return tx.value(bytes, "select bits from status_lists where id = :id", id=list_id) or b""


def put_bits(tx: Tx, list_id: int, octets: bytes) -> None:
    """Replace a list's bits."""
    tx.execute("update status_lists set bits = :bits, version = version + 1 where id = :id", bits=octets, id=list_id)


def published(tx: Tx, uuid: str) -> StatusList | None:
    """Return a published list, or None. uuid: the last part of the list's URL."""
    return tx.one(StatusList, f"{_STATUS_LIST} where uuid = :uuid", uuid=uuid)


# --- holders --------------------------------------------------------------------------------------------------------
# A credential belongs to the user that its epmUsername or updateUserWallet names. A credential without an epmUsername
# also belongs to the users that have its wallet, and to the user whose `did` is the DID of its holder.


def holder_of_user(tx: Tx, domain_id: int, user: str, issuer_did: str, schema_id: int, at: int) -> Holder | None:
    """Return a holder who can present a credential of this issuer when the user logs in. Return None if there is no
    such holder.

    The newest accepted credential takes precedence, then the newest assigned credential. A holder whose DID is deleted
    is skipped. schema_id: the id of the schema; 0 for any schema. The unary `+` makes the query planner start from the
    few ids, and not from all credentials of the domain.
    """
    ids = (
        "select credential_id from credential_users where domain_id = :d and name_key = :key union "
        "select l.credential_id from endpoint_users u join endpoint_user_credentials l on l.user_id = u.id "
        "where u.domain_id = :d and u.name_key = :key union "
        "select c.id from endpoint_users u join endpoint_user_wallets l on l.user_id = u.id "
        "join credentials c on c.wallet_id = l.wallet_id where u.domain_id = :d and u.name_key = :key "
        "and c.epm_username = '' union "
        "select c.id from endpoint_users u join credentials c on c.domain_id = u.domain_id and c.holder_did = u.did "
        "where u.domain_id = :d and u.name_key = :key and u.did <> '' and c.epm_username = ''"
    )
    sql = (
        "select c.wallet_id, c.holder_did, c.epm_username as username, c.uuid as credential from credentials c "
        f"where c.id in ({ids}) and +c.domain_id = :d and c.issuer_did = :issuer and c.wallet_id is not null "
        f"and (:schema = 0 or c.schema_id = :schema) and {VALID} and {LIVE} order by c.status, c.id desc limit 1"
    )
    return tx.one(Holder, sql, d=domain_id, key=fold(user), issuer=issuer_did, schema=schema_id, at=at)


def users_of_holder(tx: Tx, domain_id: int, did: str) -> list[str]:
    """Return the names of the users who may log in with the credentials of a holder's DID."""
    of_holder = f"c.domain_id = :d and c.holder_did = :did and c.wallet_id is not null and {VALID_EVER}"
    return _users(tx, of_holder, d=domain_id, did=did)


def users_of(tx: Tx, credential: Credential) -> list[str]:
    """Return the names of the users who may log in with a credential. For a revoked credential, return the users who
    could log in before the revocation."""
    return _users(tx, "c.id = :id", d=credential.domain_id, id=credential.id)


def _users(tx: Tx, condition: str, **given: Value) -> list[str]:
    """Return the names of the users who may log in with one of the selected credentials. condition: an SQL condition on
    the credentials, which are named `c` in the query. The parameter `:d` is the id of the domain."""
    unnamed = f"{condition} and c.epm_username = ''"
    sql = (
        f"select c.epm_username as name from credentials c where {condition} and c.epm_username <> '' union "
        "select u.name from credentials c join endpoint_user_credentials l on l.credential_id = c.id "
        f"join endpoint_users u on u.id = l.user_id where {condition} and u.domain_id = :d union "
        "select u.name from credentials c join endpoint_user_wallets l on l.wallet_id = c.wallet_id "
        f"join endpoint_users u on u.id = l.user_id where {unnamed} and u.domain_id = :d union "
        "select u.name from credentials c join endpoint_users u on u.domain_id = c.domain_id and u.did = c.holder_did "
        f"where {unnamed} and u.did <> ''"
    )
    return [str(name) for (name,) in tx.rows(sql, **given)]


def wallet_of_holder(tx: Tx, domain_id: int, did: str) -> int | None:
    """Return the id of the wallet that belongs to a holder's DID. The wallet for which the DID was registered comes
    first. If there is none, a wallet with a credential of the holder is used. Return None if there is no wallet, or if
    the DID is deleted."""
    sql = (
        "select coalesce(h.wallet_id, (select c.wallet_id from credentials c where c.domain_id = :d "
        "and c.holder_did = :did and c.wallet_id is not null limit 1)) "
        "from dids h where h.domain_id = :d and h.did = :did and h.kind = 'User' and h.deleted_at is null"
    )
    return tx.value(int, sql, d=domain_id, did=did)
