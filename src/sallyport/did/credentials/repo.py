"""The SQL of credentials and of their status lists."""

import json
from dataclasses import dataclass

from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.did.credentials.model import Credential, Held, Listed, Status
from sallyport.did.crypto import jws
from sallyport.did.crypto.encoding import read_object
from sallyport.store import counters
from sallyport.store.model import Tx, Value
from sallyport.store.search import Stretch
from sallyport.store.search import page as page_of
from sallyport.store.vault import Vault

COUNTER = "credentials"
_COLUMNS = tuple(Credential.__dataclass_fields__)
_SELECT = f"select {', '.join(_COLUMNS)} from credentials"
_PLACES = "where domain_id = :d and place > :offset and place <= :offset + :limit order by place"


@dataclass(frozen=True, slots=True)
class StatusList:
    """A status list. bits: packed eight to an octet. used: how many of them are given. version: of its content."""

    id: int
    uuid: str
    issuer_id: int
    used: int
    version: int


def add(tx: Tx, new: Credential, token: str, proof: JSON) -> int:
    """The new credential's id; `new.id` is not looked at."""
    columns = [name for name in _COLUMNS if name != "id"]
    credential_id = tx.value(
        int,
        f"insert into credentials ({', '.join(columns)}, updated_at, place) "
        f"values ({', '.join(f':{name}' for name in columns)}, :issued_at, :place) returning id",
        place=counters.total(tx, new.domain_id, COUNTER) + 1,
        **{name: getattr(new, name) for name in columns},
    )
    assert credential_id is not None  # noqa: S101  it was inserted
    tx.execute(
        "insert into credential_tokens (credential_id, jwt, proof) values (:id, :jwt, :proof)",
        id=credential_id,
        jwt=token,
        proof=None if proof is None else json.dumps(proof, ensure_ascii=False),
    )
    counters.add(tx, new.domain_id, COUNTER, 1)
    return credential_id


def get(tx: Tx, domain_id: int, credential_id: int) -> Credential | None:
    """A credential of the domain, or None."""
    return tx.one(Credential, f"{_SELECT} where id = :id and domain_id = :d", id=credential_id, d=domain_id)


def of_tenant(tx: Tx, tenant_id: int, name: str) -> Credential | None:
    """A credential of the tenant by its `urn:uuid:` or its number, or None."""
    if name.isascii() and name.isdecimal() and len(name) < 19:
        return tx.one(Credential, f"{_SELECT} where id = :id and tenant_id = :t", id=int(name), t=tenant_id)
    return tx.one(Credential, f"{_SELECT} where uuid = :uuid and tenant_id = :t", uuid=name, t=tenant_id)


def page(tx: Tx, stretch: Stretch) -> tuple[list[Credential], int]:
    """One page of a domain's credentials, ordered by id, and how many there are."""
    found = tx.all(Credential, f"{_SELECT} {_PLACES}", **_places(stretch))
    return found, counters.total(tx, stretch.domain_id, COUNTER)


def entries(tx: Tx, stretch: Stretch) -> tuple[list[Listed], int]:
    """Return `page` with only the columns of the list, since one page has up to 1000 credentials."""
    sql = f"select id, issuer_id, schema_id, uuid, name, status, expires_at from credentials {_PLACES}"
    found = tx.all(Listed, sql, **_places(stretch))
    return found, counters.total(tx, stretch.domain_id, COUNTER)


def of_wallet(tx: Tx, wallet_id: int, status: Status, stretch: Stretch, search: str = "") -> tuple[list[Held], int]:
    """One page of a wallet's credentials of a status, ordered by id, and how many there are. search: a part of the
    name."""
    given: dict[str, Value] = {"wallet": wallet_id, "status": status.value}
    ids = "select id from credentials where wallet_id = :wallet and status = :status"
    if search:
        ids, given = f"{ids} and instr(fold(name), :search) > 0", {**given, "search": fold(search)}
    found, total = page_of(tx, Credential, _SELECT, ids, stretch, counter=None, searched=False, **given)
    return [Held(each, *_names(tx, each)) for each in found], total


def document(tx: Tx, credential_id: int) -> dict[str, JSON]:
    """A credential's document, with its proof."""
    (row,) = tx.rows("select jwt, proof from credential_tokens where credential_id = :id", id=credential_id)
    found = jws.parse(str(row[0])).payload["vc"]
    assert isinstance(found, dict)  # noqa: S101  it was made here
    return found if row[1] is None else {**found, "proof": read_object(str(row[1]))}


def token(tx: Tx, credential_id: int) -> str:
    """A credential as a token (VC-JWT)."""
    return tx.value(str, "select jwt from credential_tokens where credential_id = :id", id=credential_id) or ""


def revoke(tx: Tx, revoked: Credential, at: int) -> None:
    """Keep that a credential is revoked, and forget its holder's password."""
    tx.execute(
        "update credentials set status = :status, password = null, revoked_at = :at, updated_at = :at where id = :id",
        status=Status.REVOKED.value,
        at=at,
        id=revoked.id,
    )


def users(tx: Tx, revoked: Credential) -> list[str]:
    """Return the names of the users that a credential admits, by the rules of `held.repo.holder_of_user`."""
    sql = (
        "select u.name from endpoint_users u join endpoint_user_credentials l on l.user_id = u.id "
        "where l.credential_id = :id and u.domain_id = :d union "
        "select u.name from endpoint_users u join endpoint_user_wallets l on l.user_id = u.id "
        "where l.wallet_id = :wallet and u.domain_id = :d and :username = '' union "
        "select name from endpoint_users where domain_id = :d and did = :holder and did <> '' and :username = ''"
    )
    given: dict[str, Value] = {
        "wallet": revoked.wallet_id or 0,
        "username": revoked.epm_username,
        "holder": revoked.holder_did,
    }
    linked = [str(name) for (name,) in tx.rows(sql, id=revoked.id, d=revoked.domain_id, **given)]
    return list(dict.fromkeys([*filter(None, [revoked.epm_username]), *linked]))


# --- what is for the holder alone -----------------------------------------------------------------------------------


def password_identity(credential_id: int) -> str:
    """What a password is sealed for."""
    return f"credentials/{credential_id}/password"


def keep_password(tx: Tx, vault: Vault, credential_id: int, clear: str) -> None:
    """Seal a password for the credential's holder."""
    sealed = vault.seal(clear.encode(), password_identity(credential_id))
    tx.execute("update credentials set password = :sealed where id = :id", sealed=sealed, id=credential_id)


def password(tx: Tx, vault: Vault, credential_id: int) -> str:
    """The password of a credential; empty where there is none. SecretError."""
    sealed = tx.value(bytes, "select password from credentials where id = :id", id=credential_id)
    return "" if sealed is None else vault.open(sealed, password_identity(credential_id)).decode()


# --- status lists ---------------------------------------------------------------------------------------------------


def list_with_room(tx: Tx, issuer_id: int, most: int) -> StatusList | None:
    """An issuer's newest list, if fewer than `most` of its bits are given; or None."""
    sql = "select id, uuid, issuer_id, used, version from status_lists where issuer_id = :i order by id desc limit 1"
    found = tx.one(StatusList, sql, i=issuer_id)
    return found if found is not None and found.used < most else None


def add_list(tx: Tx, issuer_id: int, uuid: str, bits: bytes) -> StatusList:
    """A new list."""
    sql = "insert into status_lists (issuer_id, uuid, bits) values (:issuer, :uuid, :bits) returning id"
    list_id = tx.value(int, sql, issuer=issuer_id, uuid=uuid, bits=bits)
    assert list_id is not None  # noqa: S101  it was inserted
    return StatusList(list_id, uuid, issuer_id, 0, 0)


def is_given(tx: Tx, list_id: int, index: int) -> bool:
    """Whether a bit of a list belongs to a credential."""
    sql = "select 1 from credentials where list_id = :list and list_index = :index"
    return tx.value(int, sql, list=list_id, index=index) is not None


def take(tx: Tx, list_id: int) -> None:
    """One more bit of a list is given."""
    tx.execute("update status_lists set used = used + 1 where id = :id", id=list_id)


def bits(tx: Tx, list_id: int) -> bytes:
    """A list's bits, eight to an octet."""
    return tx.value(bytes, "select bits from status_lists where id = :id", id=list_id) or b""


def put_bits(tx: Tx, list_id: int, octets: bytes) -> None:
    """Replace a list's bits."""
    tx.execute("update status_lists set bits = :bits, version = version + 1 where id = :id", bits=octets, id=list_id)


def published(tx: Tx, uuid: str) -> StatusList | None:
    """A list by the name that it is published under, or None."""
    sql = "select id, uuid, issuer_id, used, version from status_lists where uuid = :uuid"
    return tx.one(StatusList, sql, uuid=uuid)


def _places(stretch: Stretch) -> dict[str, Value]:
    return {"d": stretch.domain_id, "offset": stretch.offset, "limit": stretch.limit}


def _names(tx: Tx, credential: Credential) -> tuple[str, str]:
    issuer = tx.value(str, "select name from dids where id = :id", id=credential.issuer_id)
    schema = tx.value(str, "select name from credential_schemas where id = :id", id=credential.schema_id)
    return issuer or "", schema or ""
