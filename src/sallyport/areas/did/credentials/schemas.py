"""The rules of credential schemas: create, sign, list and publish them."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from uuid import uuid4

import trio

from sallyport.areas.did.credentials import repo
from sallyport.areas.did.credentials.credential import ListedSchema, NewSchema, Schema
from sallyport.areas.did.crypto import proofs
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.did import DidKind
from sallyport.base.clock import Clock, iso_seconds, now_us
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import ListQuery, Store, Tx
from sallyport.store.vault import Vault

KIND: Final = "https://w3c-ccg.github.io/vc-json-schemas/schema/2.0/schema.json"
VERSION: Final = "1.0"
PATH: Final = "/credentials/schemas/"
"""URL path of the published schemas."""


class Schemas:
    """The schemas of all tenants. base: a function that returns the service's URL, without a trailing slash."""

    def __init__(self, store: Store, vault: Vault, base: Callable[[], str], clock: Clock = now_us) -> None:
        self._store = store
        self._vault = vault
        self._base = base
        self._clock = clock
        self._checking = trio.CapacityLimiter(1)  # one thread: Python code in many threads slows the event loop down

    def address(self, uuid: str) -> str:
        """Return the URL of a published schema. Credentials contain this URL as the `id` of their schema."""
        return f"{self._base()}{PATH}{uuid}"

    async def create(self, tenant_id: int, new: NewSchema) -> Schema:
        """Create a schema in its author's domain. Raises Invalid if the content is not a schema, or if the cost of
        validating a subject cannot be limited. Raises NotFound if the author is not an issuer of the tenant."""
        checked = await trio.to_thread.run_sync(_checked, new.content, limiter=self._checking)

        def transaction(tx: Tx) -> Schema:
            author, key = dids.signing_key(tx, dids.of_tenant(tx, tenant_id, new.author, DidKind.ISSUER))
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
            schema = Schema(0, tenant_id, author.domain_id, uuid, new.name, json.dumps(content, ensure_ascii=False))
            schema = replace(schema, id=repo.add_schema(tx, schema, author.id, at))
            changes = audit.changed({}, {"author": author.did, "signed": new.sign})
            audit.record_in(tx, "schema.create", author.domain_id, f"schema {schema.id} {new.name}", changes, at=at)
            return schema

        return await self._store.write(transaction)

    async def page(self, stretch: ListQuery, author: str = "", search: str = "") -> tuple[list[ListedSchema], int]:
        """Return one page of a domain's schemas, ordered by id, and the number of all matching schemas. author: the DID
        of the author; empty for any author. search: a part of the name."""
        return await self._store.search(lambda tx: repo.schemas(tx, stretch, author, search))

    async def published(self, uuid: str) -> str:
        """Return a published schema as JSON. Raises NotFound."""
        content = await self._store.search(lambda tx: repo.published_schema(tx, uuid))  # keeps threads free for logins
        if content is None:
            raise NotFound("schema not found")
        return content


def _checked(content: JSON) -> dict[str, JSON]:
    from sallyport.areas.did.credentials.check import check_schema  # slow import: in a worker thread

    return check_schema(content)
