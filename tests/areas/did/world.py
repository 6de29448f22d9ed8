"""An issuer, a holder and a schema in `areas`."""

from sallyport.areas.did.credentials.credential import Credential, NewCredential, NewSchema, Schema
from sallyport.areas.did.dids.did import NewDid, Record
from sallyport.base.wire import JSON
from tests.areas import Areas
from tests.areas.did.crypto.signers import HOLDER

SCHEMA: dict[str, JSON] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"epmUsername": {"type": "string", "minLength": 1}},
    "required": ["epmUsername"],
}


def new_did(domain_id: int, method: str = "key", curve: str = "Ed25519", name: str = "a name") -> NewDid:
    """Return the values for a new DID."""
    return NewDid(domain_id, method, name, "a description", curve)


class Identity:
    """An issuer, a holder and a schema. The holder has the key HOLDER."""

    def __init__(self, areas: Areas, issuer: Record, holder: Record, schema: Schema) -> None:
        self.areas = areas
        self.issuer = issuer
        self.holder = holder
        self.schema = schema

    async def issue(self, **changes: object) -> Credential:
        """Issue a credential to the holder. changes: the fields of NewCredential that differ from the defaults."""
        fields: dict[str, object] = {
            "domain_id": self.areas.domain,
            "issuer_did": self.issuer.did,
            "holder_did": self.holder.did,
            "schema_id": self.schema.id,
            "name": "Badge",
            "claims": {"epmUsername": "alice", "holderId": "17"},
            "password": "",
            "expires_at": None,
        }
        new = NewCredential(**{**fields, **changes})  # type: ignore[arg-type]
        return await self.areas.did.credentials.issue(self.areas.tenant, new)


async def identity(areas: Areas, method: str = "key", curve: str = "Ed25519") -> Identity:
    """Add an issuer whose DID has this method, a holder, and a schema."""
    issuing = areas.did
    issuer = await issuing.dids.create_issuer(areas.tenant, new_did(areas.domain, method, curve, "The issuer"))
    holder = await issuing.dids.create_holder(
        areas.tenant, new_did(areas.domain, name="Alice"), 0, issuer.did, HOLDER.key.public.jwk
    )
    schema = await issuing.schemas.create(areas.tenant, NewSchema(issuer.did, "Badge", SCHEMA, sign=True))
    return Identity(areas, issuer, holder, schema)
