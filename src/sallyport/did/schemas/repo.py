"""The SQL of credential schemas."""

from sallyport.did.schemas.model import Schema
from sallyport.store.model import Tx
from sallyport.store.search import Stretch
from sallyport.store.search import page as page_of

_SELECT = f"select {', '.join(Schema.__dataclass_fields__)} from credential_schemas"


def add(tx: Tx, tenant_id: int, domain_id: int, author_id: int, uuid: str, name: str, content: str, at: int) -> int:
    """The new schema's id."""
    schema_id = tx.value(
        int,
        "insert into credential_schemas (tenant_id, domain_id, author_id, uuid, name, content, created_at) "
        "values (:t, :d, :author, :uuid, :name, :content, :at) returning id",
        t=tenant_id,
        d=domain_id,
        author=author_id,
        uuid=uuid,
        name=name,
        content=content,
        at=at,
    )
    assert schema_id is not None  # noqa: S101  it was inserted
    return schema_id


def get(tx: Tx, domain_id: int, schema_id: int) -> Schema | None:
    """A schema of the domain, or None."""
    return tx.one(Schema, f"{_SELECT} where id = :id and domain_id = :d", id=schema_id, d=domain_id)


def public(tx: Tx, uuid: str) -> Schema | None:
    """A schema by the name that it is published under, or None."""
    return tx.one(Schema, f"{_SELECT} where uuid = :uuid", uuid=uuid)


def page(tx: Tx, stretch: Stretch, author: str) -> tuple[list[Schema], int]:
    """Return one page of a domain's schemas, ordered by id, and how many there are. author: a DID; empty for any."""
    by = " and author_id in (select id from dids where domain_id = :d and did = :author)" if author else ""
    given = {"author": author} if author else {}
    ids = f"select id from credential_schemas where domain_id = :d{by}"
    return page_of(tx, Schema, _SELECT, ids, stretch, counter=None, searched=False, d=stretch.domain_id, **given)
