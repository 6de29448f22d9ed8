"""The HTTP operations of credentials and their schemas: /api/v1/credential/*, /api/v1/schema/createSchema."""

import json

from sallyport.areas.did.credentials.bodies import (
    CreateCredential,
    CreateSchema,
    CredentialDocument,
    CredentialIssued,
    CredentialList,
    CredentialRevoked,
    GetCredential,
    ListCredentials,
    ListSchemas,
    OfWallet,
    RevokeCredential,
    SchemaCreated,
    SchemaEntry,
    WalletCredentials,
)
from sallyport.areas.did.credentials.credential import Credential, NewCredential, NewSchema, Status
from sallyport.areas.did.credentials.schemas import Schemas
from sallyport.areas.did.credentials.service import Credentials, claims_of
from sallyport.base.answer import answers
from sallyport.base.clock import Clock
from sallyport.base.text import counted
from sallyport.store.model import ListQuery
from sallyport.web.bodies import Counted, Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, WALLETS, Caller, Gate


def schema_operations(service: Schemas, gate: Gate) -> Operations:
    """Declare the operations of schemas."""
    schemas = Operations("Credential schemas", gate)

    @schemas.post("/api/v1/schema/createSchema", roles=OPERATORS)
    async def create_schema(body: CreateSchema, caller: Caller) -> SchemaCreated:
        """Create a schema for new credentials: JSON Schema draft-07 or 2020-12. With `sign`, the author signs the
        schema.

        A reference is `#` or a JSON pointer (`#/...`) into the same schema. A schema with `unevaluatedItems` or
        `unevaluatedProperties` must not have references, dependentSchemas or patternProperties. A schema has at most 64
        patterns. A pattern has the syntax of RE2: no back-references, no look-around, and at most 1000 repetitions in
        braces.
        """
        made = await service.create(caller.tenant_id, NewSchema(body.author, body.name, body.content, body.sign))
        return SchemaCreated(message="schema created", id=made.id, Schema=json.loads(made.content))

    @schemas.post("/api/v1/credential/credentialSchemaList", roles=READERS)
    async def list_schemas(body: ListSchemas, caller: Caller) -> Plain[Counted[SchemaEntry]]:
        """List the schemas of a domain, ordered by id. The list contains all schemas, or only the schemas of one
        author, or only those whose name contains a text. The header `X-Total-Count` contains the number of matching
        schemas."""
        page = body.page()
        stretch = ListQuery(body.domainId, page.offset, page.size)
        found, total = await service.page(stretch, body.issuerDid, body.filter)
        return Plain(Counted(answers(found), total))

    return schemas


def operations(service: Credentials, clock: Clock, gate: Gate) -> Operations:
    """Declare the operations of credentials."""
    credentials = Operations("Credentials", gate)
    _declare_changing(credentials, service)
    _declare_reading(credentials, service, clock)
    _declare_wallets(credentials, service, clock)
    return credentials


def _declare_changing(credentials: Operations, service: Credentials) -> None:
    @credentials.post("/api/v1/credential/createCredential", "/api/v1/issueVerifiableCredential", roles=OPERATORS)
    async def create_credential(body: CreateCredential, caller: Caller) -> CredentialIssued:
        """Issue a credential to a holder. The metadata of the request become the claims of the credential, if the
        schema allows them. epmPassword does not become a claim. Only the holder gets this password, together with the
        credential."""
        claims, password = claims_of(body.metadata, body.holderDid)
        new = NewCredential(
            domain_id=body.domainId,
            issuer_did=body.issuerDid,
            holder_did=body.holderDid,
            schema_id=body.schemaId,
            name=body.credentialName,
            claims=claims,
            password=password,
            expires_at=body.expiry,
        )
        issued = await service.issue(caller.tenant_id, new)
        return CredentialIssued(message="credential issued", id=issued.id, credentialId=issued.uuid)

    @credentials.post("/api/v1/credential/revokecredential", roles=OPERATORS)
    async def revoke(body: RevokeCredential, caller: Caller) -> CredentialRevoked:
        """Revoke a credential: set its bit in the status list, and close the open presentation requests for it. If the
        domain is set to disconnect on revocation, the holder's sessions end."""
        await service.revoke(body.domainId, body.vcid, body.issuerDid, body.holderDid)
        return CredentialRevoked(Message="credential revoked")


def _declare_reading(credentials: Operations, service: Credentials, clock: Clock) -> None:
    @credentials.post("/api/v1/credential/credentialList", roles=READERS)
    async def list_credentials(body: ListCredentials, caller: Caller) -> Plain[CredentialList]:
        """List the credentials of a domain, ordered by id. The default pageSize is 1000.

        `status` is the stored status. `expired` is true if the credential has expired.
        """
        page = body.page()
        found, count = await service.page(ListQuery(body.domainId, page.offset, page.size))
        return Plain({**_listed(found, count, clock()), "domainId": body.domainId})

    @credentials.post("/api/v1/credential/GetCredential", roles=READERS | WALLETS)
    async def get_credential(body: GetCredential, caller: Caller) -> CredentialDocument:
        """Return a credential as a document, with its issuer's proof. `proof.jws` contains the same credential in the
        form of a VC-JWT. A wallet gets only its own credentials."""
        number, document = await service.document(caller, body.credentialId, body.domainId)
        return CredentialDocument(id=number, credential=document)


def _declare_wallets(credentials: Operations, service: Credentials, clock: Clock) -> None:
    async def answer(body: OfWallet, caller: Caller, status: Status) -> Plain[WalletCredentials]:
        page = body.page()
        found, count = await service.of_wallet(caller, body.walletId, status, page.offset, page.size, body.filter)
        return Plain({**_listed(found, count, clock()), "walletId": body.walletId})

    @credentials.post("/api/v1/credential/GetAssignedCredential", roles=READERS | WALLETS)
    async def assigned(body: OfWallet, caller: Caller) -> Plain[WalletCredentials]:
        """List the credentials that are assigned to a wallet, but that the wallet has not accepted or ignored yet. The
        list is ordered by id."""
        return await answer(body, caller, Status.ASSIGNED)

    @credentials.post("/api/v1/credential/GetAcceptedCredential", roles=READERS | WALLETS)
    async def accepted(body: OfWallet, caller: Caller) -> Plain[WalletCredentials]:
        """List the credentials that a wallet has accepted, ordered by id."""
        return await answer(body, caller, Status.ACCEPTED)

    @credentials.post("/api/v1/credential/GetIgnoredCredential", roles=READERS | WALLETS)
    async def ignored(body: OfWallet, caller: Caller) -> Plain[WalletCredentials]:
        """List the credentials that a wallet has ignored, ordered by id."""
        return await answer(body, caller, Status.IGNORED)


def _listed(found: list[Credential], count: int, now: int) -> dict[str, object]:
    credentials = answers(found, now=now)
    return {
        "code": 200,
        "status": "Success",
        "message": counted(count, "credential"),
        "count": count,
        "credentials": credentials,
    }
