"""What the command line asks: did.create, did.list, did.rotate, did.delete, schema.add, schema.list, credential.issue,
credential.list, credential.show, credential.revoke."""

import json
from collections.abc import Callable
from typing import Annotated, Protocol

from pydantic import BeforeValidator, Field, JsonValue

from sallyport.base.clock import Clock, iso
from sallyport.base.command import Arguments, Command, command
from sallyport.base.errors import Invalid
from sallyport.base.validation import Moment
from sallyport.base.wire import JSON, Row
from sallyport.did.area import DidArea
from sallyport.did.credentials.credential import Credential, ListedSchema, NewCredential, NewSchema
from sallyport.did.credentials.service import claims_of
from sallyport.did.crypto.keys import ED25519
from sallyport.did.dids.bodies import CurveName, MethodName
from sallyport.did.dids.did import Kind, NewDid, Record
from sallyport.store.search import Stretch
from sallyport.web.scope import Id, Name, Text

PAGE = 1000


class Place(Protocol):
    """A domain."""

    @property
    def id(self) -> int:
        """Its domainId."""

    @property
    def tenant_id(self) -> int:
        """Whose it is."""


FindDomain = Callable[[str], Place]
"""A domain by its name or id. NotFound."""


class CreateDid(Arguments):
    """An issuer of a domain."""

    domain: str
    name: Name
    method: MethodName = "key"
    key_type: CurveName = ED25519.name
    description: Text = ""


class OfDomain(Arguments):
    """after: the number of entries to pass over, since a command reads page by page."""

    domain: str
    after: int = Field(default=0, ge=0)


class OneDid(Arguments):
    """A DID of a domain. kind: of a deletion."""

    domain: str
    did: str
    kind: Kind = Kind.ISSUER


class AddSchema(Arguments):
    """A schema of an issuer. schema: JSON as text."""

    domain: str
    issuer: str
    name: Name
    content: str
    sign: bool = True


class IssueCredential(Arguments):
    """A credential of a holder. claims: text by name."""

    domain: str
    name: Name
    issuer: str
    holder: str
    schema_id: int
    claims: dict[str, JsonValue]
    expires: Annotated[Moment | None, BeforeValidator(lambda value: value or None)] = None


class OneCredential(Arguments):
    """A credential of a domain by its number."""

    domain: str
    id: Id


def commands(issuing: DidArea, find_domain: FindDomain, clock: Clock) -> dict[str, Command]:
    """The commands of decentralized identity by name."""
    return {**_did_commands(issuing, find_domain), **_credential_commands(issuing, find_domain, clock)}


def _did_commands(issuing: DidArea, find_domain: FindDomain) -> dict[str, Command]:
    async def create(wanted: CreateDid) -> JSON:
        place = find_domain(wanted.domain)
        new = NewDid(place.id, wanted.method, wanted.name, wanted.description, wanted.key_type)
        return (await issuing.dids.create_issuer(place.tenant_id, new)).did

    async def listing(wanted: OfDomain) -> JSON:
        found, _ = await issuing.dids.page(Stretch(find_domain(wanted.domain).id, wanted.after, PAGE))
        return [_did(each) for each in found]

    async def rotate(wanted: OneDid) -> JSON:
        return await issuing.dids.rotate(find_domain(wanted.domain).id, wanted.did)

    async def delete(wanted: OneDid) -> JSON:
        return await issuing.dids.delete(find_domain(wanted.domain).id, [(wanted.kind, wanted.did)])

    async def add_schema(wanted: AddSchema) -> JSON:
        try:
            content = json.loads(wanted.content)
        except (ValueError, RecursionError):
            raise Invalid("the schema is no JSON") from None
        new = NewSchema(wanted.issuer, wanted.name, content, wanted.sign)
        return (await issuing.schemas.create(find_domain(wanted.domain).tenant_id, new)).id

    async def schemas(wanted: OfDomain) -> JSON:
        found, _ = await issuing.schemas.page(Stretch(find_domain(wanted.domain).id, wanted.after, PAGE))
        return [_schema(each) for each in found]

    return {
        "did.create": command(CreateDid, create),
        "did.list": command(OfDomain, listing),
        "did.rotate": command(OneDid, rotate),
        "did.delete": command(OneDid, delete),
        "schema.add": command(AddSchema, add_schema),
        "schema.list": command(OfDomain, schemas),
    }


def _credential_commands(issuing: DidArea, find_domain: FindDomain, clock: Clock) -> dict[str, Command]:
    async def issue(wanted: IssueCredential) -> JSON:
        place = find_domain(wanted.domain)
        claims, password = claims_of(dict[str, JSON](wanted.claims), wanted.holder)
        new = NewCredential(
            domain_id=place.id,
            issuer_did=wanted.issuer,
            holder_did=wanted.holder,
            schema_id=wanted.schema_id,
            name=wanted.name,
            claims=claims,
            password=password,
            expires_at=wanted.expires,
        )
        return (await issuing.credentials.issue(place.tenant_id, new)).id

    async def listing(wanted: OfDomain) -> JSON:
        found, _ = await issuing.credentials.page(Stretch(find_domain(wanted.domain).id, wanted.after, PAGE))
        now = clock()
        return [_credential(each, now) for each in found]

    async def show(wanted: OneCredential) -> JSON:
        document = await issuing.credentials.of_domain(find_domain(wanted.domain).id, wanted.id)
        return dict(document)

    async def revoke(wanted: OneCredential) -> JSON:
        await issuing.credentials.revoke(find_domain(wanted.domain).id, wanted.id)
        return None

    return {
        "credential.issue": command(IssueCredential, issue),
        "credential.list": command(OfDomain, listing),
        "credential.show": command(OneCredential, show),
        "credential.revoke": command(OneCredential, revoke),
    }


def _did(record: Record) -> Row:
    return {
        "id": record.id,
        "kind": record.kind,
        "name": record.name,
        "did": record.did,
        "method": record.method,
        "issued": record.credentials_issued,
        "wallet": record.wallet_id,
        "updated": iso(record.updated_at),
    }


def _schema(schema: ListedSchema) -> Row:
    return {"id": schema.id, "name": schema.name, "author": schema.author, "signed": bool(schema.signed)}


def _credential(credential: Credential, now: int) -> Row:
    return {
        "id": credential.id,
        "name": credential.name,
        "user": credential.epm_username,
        "status": credential.status,
        "expired": credential.is_expired(now),
        "issuer": credential.issuer_did,
        "holder": credential.holder_did,
        "issued": iso(credential.issued_at),
        "expires": None if credential.expires_at is None else iso(credential.expires_at),
        "urn": credential.uuid,
    }
