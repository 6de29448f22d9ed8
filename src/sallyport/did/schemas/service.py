"""The rules of credential schemas: made, signed, listed, published."""

import json
from collections.abc import Callable
from uuid import uuid4

import trio

from sallyport.base.clock import Clock, iso_seconds, now_us
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.did.crypto import proofs
from sallyport.did.dids import repo as dids
from sallyport.did.dids.model import Kind
from sallyport.did.dids.service import NO_ISSUER
from sallyport.did.schemas import repo
from sallyport.did.schemas.model import KIND, VERSION, NewSchema, Schema
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.search import Stretch
from sallyport.store.vault import Vault

PATH = "/credentials/schemas/"
"""Under which schemas are published, at the service's address."""


class Schemas:
    """The schemas of all tenants. base: the service's address, without a slash at the end."""

    def __init__(self, store: Store, vault: Vault, base: Callable[[], str], clock: Clock = now_us) -> None:
        self._store = store
        self._vault = vault
        self._base = base
        self._clock = clock
        self._checking = trio.CapacityLimiter(1)  # Python code in many threads slows the event loop down

    def address(self, uuid: str) -> str:
        """Where a schema is published: the `id` that credentials name."""
        return f"{self._base()}{PATH}{uuid}"

    async def create(self, tenant_id: int, new: NewSchema) -> Schema:
        """A new schema of an issuer's domain. Invalid: it is none, or not one that is run here. NotFound: the author is
        no issuer of the tenant."""
        checked = await trio.to_thread.run_sync(_checked, new.content, limiter=self._checking)

        def work(tx: Tx) -> Schema:
            author = dids.of_tenant(tx, tenant_id, new.author, Kind.ISSUER)
            key = None if author is None else dids.active_key(tx, author.id)
            if author is None or key is None:
                raise NotFound(NO_ISSUER)
            uuid, at = str(uuid4()), self._clock()
            content: dict[str, JSON] = {
                "type": KIND,
                "version": VERSION,
                "id": uuid,
                "name": new.name,
                "author": author.did,
                "authored": iso_seconds(at),
                "Schema": {"$id": self.address(uuid), **checked},
            }
            if new.sign:
                content = proofs.secure(content, dids.signer(self._vault, key), at)
            text = json.dumps(content, ensure_ascii=False)
            schema_id = repo.add(tx, tenant_id, author.domain_id, author.id, uuid, new.name, text, at)
            target = f"schema {schema_id} {new.name}"
            told = audit.changed({}, {"author": author.did, "signed": new.sign})
            audit.record(
                tx,
                "schema.create",
                at=at,
                tenant_id=tenant_id,
                domain_id=author.domain_id,
                target=target,
                changes=told,
            )
            return Schema(schema_id, tenant_id, author.domain_id, uuid, new.name, text)

        return await self._store.write(work)

    async def page(self, stretch: Stretch, author: str = "") -> tuple[list[Schema], int]:
        """Return one page of a domain's schemas, ordered by id, and how many there are. author: a DID; empty for
        any."""
        return await self._store.search(lambda tx: repo.page(tx, stretch, author))

    async def published(self, uuid: str) -> str:
        """A schema for everybody, as JSON. NotFound."""
        schema = await self._store.search(lambda tx: repo.public(tx, uuid))  # strangers take no place of a login
        if schema is None:
            raise NotFound("schema not found")
        return schema.content


def _checked(content: JSON) -> dict[str, JSON]:
    from sallyport.did.schemas.check import check_schema  # with a library that takes its time: in a worker thread

    return check_schema(content)
