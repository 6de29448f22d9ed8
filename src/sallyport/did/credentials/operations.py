"""The HTTP operations of credentials: /api/v1/credential/*."""

from sallyport.base.clock import Clock, iso_seconds
from sallyport.did.credentials.model import (
    CreateCredential,
    CredentialDocument,
    CredentialEntry,
    CredentialIssued,
    CredentialList,
    CredentialRevoked,
    GetCredential,
    Held,
    ListCredentials,
    Listed,
    NewCredential,
    OfWallet,
    RevokeCredential,
    Status,
    WalletCredential,
    WalletCredentials,
)
from sallyport.did.credentials.service import Credentials, claims_of
from sallyport.store.search import Stretch
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, WALLETS, Caller, Gate

HOLDERS = READERS | WALLETS


def operations(service: Credentials, clock: Clock, gate: Gate) -> Operations:
    """The operations of this slice."""
    credentials = Operations("Credentials", gate)
    _declare_changing(credentials, service)
    _declare_reading(credentials, service, clock)
    _declare_wallets(credentials, service, clock)
    return credentials


def _declare_changing(credentials: Operations, service: Credentials) -> None:
    @credentials.post("/api/v1/credential/createCredential", "/api/v1/issueVerifiableCredential", roles=OPERATORS)
    async def create_credential(body: CreateCredential, caller: Caller) -> CredentialIssued:
        """Issue a credential to a holder: the metadata become its claims, if they are what the schema asks for.
        epmPassword is kept for the holder alone, who gets it with the credential."""
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
        """Revoke a credential: its status list says so, open requests for it are closed, and where the domain says so
        its holder's sessions end."""
        await service.revoke(body.domainId, body.vcid, body.issuerDid, body.holderDid)
        return CredentialRevoked(Message="credential revoked")


def _declare_reading(credentials: Operations, service: Credentials, clock: Clock) -> None:
    @credentials.post("/api/v1/credential/credentialList", roles=READERS)
    async def list_credentials(body: ListCredentials, caller: Caller) -> CredentialList:
        """List the credentials of a domain, ordered by id; 1000 on a page unless pageSize is given.

        `status` is the stored status. `expired` tells whether the credential's time is over.
        """
        page = body.page()
        found, count = await service.entries(Stretch(body.domainId, page.offset, page.size))
        now = clock()
        listed = [_entry(each, now) for each in found]
        return CredentialList(message=f"{count} credential(s)", domainId=body.domainId, count=count, credentials=listed)

    @credentials.post("/api/v1/credential/GetCredential", roles=HOLDERS)
    async def get_credential(body: GetCredential, caller: Caller) -> CredentialDocument:
        """A credential as a document, with its issuer's proof; `proof.jws` is the same credential as a token. A wallet
        gets those that it has."""
        number, document = await service.document(caller, body.credentialId)
        return CredentialDocument(id=number, credential=document)


def _declare_wallets(credentials: Operations, service: Credentials, clock: Clock) -> None:
    async def answer(body: OfWallet, caller: Caller, status: Status) -> WalletCredentials:
        page = body.page()
        found, count = await service.of_wallet(caller, body.walletId, status, page.offset, page.size, body.filter)
        now = clock()
        return WalletCredentials(
            message=f"{count} credential(s)",
            walletId=body.walletId,
            count=count,
            credentials=[_held(each, now) for each in found],
        )

    @credentials.post("/api/v1/credential/GetAssignedCredential", roles=HOLDERS)
    async def assigned(body: OfWallet, caller: Caller) -> WalletCredentials:
        """The credentials that a wallet was given and has not answered for yet, ordered by id."""
        return await answer(body, caller, Status.ASSIGNED)

    @credentials.post("/api/v1/credential/GetAcceptedCredential", roles=HOLDERS)
    async def accepted(body: OfWallet, caller: Caller) -> WalletCredentials:
        """The credentials that a wallet has accepted, ordered by id."""
        return await answer(body, caller, Status.ACCEPTED)

    @credentials.post("/api/v1/credential/GetIgnoredCredential", roles=HOLDERS)
    async def ignored(body: OfWallet, caller: Caller) -> WalletCredentials:
        """The credentials that a wallet does not want, ordered by id."""
        return await answer(body, caller, Status.IGNORED)


def _entry(listed: Listed, now: int) -> CredentialEntry:
    return CredentialEntry(
        id=listed.id,
        issuerId=listed.issuer_id,
        schemaId=listed.schema_id,
        credentialId=listed.uuid,
        name=listed.name,
        status=listed.status,
        expired=listed.is_expired(now),
    )


def _held(held: Held, now: int) -> WalletCredential:
    credential = held.credential
    return WalletCredential(
        id=credential.id,
        issuerId=credential.issuer_id,
        issuerName=held.issuer_name,
        schemaId=credential.schema_id,
        schemaName=held.schema_name,
        issuedAt=iso_seconds(credential.issued_at),
        credentialId=credential.uuid,
        expireDate="" if credential.expires_at is None else iso_seconds(credential.expires_at),
        name=credential.name,
        status=credential.status,
        expired=credential.is_expired(now),
    )
