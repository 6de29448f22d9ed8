"""The HTTP operations of presentations: /api/v1/verifierService/*, /api/v1/walletService/*Presentation*."""

import json

from sallyport.areas.did.presentations.bodies import (
    CreatePresentation,
    IssuedPR,
    IssuePR,
    ListPresentations,
    PolledPR,
    PollPR,
    PresentationCreated,
    PresentationList,
    PresentationStanding,
    PresentationStatus,
    PRsIssued,
    SubmitPresentation,
)
from sallyport.areas.did.presentations.service import Presentations
from sallyport.areas.did.presentations.verifier import AccessRequest, Verifier
from sallyport.base.answer import answer
from sallyport.base.clock import iso
from sallyport.base.errors import in_field
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, WALLETS, Caller, Gate


def operations(verifier: Verifier, service: Presentations, gate: Gate) -> Operations:
    """Declare the operations of presentations."""
    presentations = Operations("Presentations", gate)
    _declare_asking(presentations, verifier, service)
    _declare_answering(presentations, service)
    return presentations


def _declare_asking(presentations: Operations, verifier: Verifier, service: Presentations) -> None:
    @presentations.post("/api/v1/verifierService/issuePR", roles=OPERATORS)
    async def issue_pr(body: IssuePR, caller: Caller) -> PRsIssued:
        """Ask a holder for a credential that was issued by the issuer and contains epmUsername. If groupop is set, ask
        all holders of a group.

        `endpoint` is an instance or a group. If the endpoint restricts the authentication methods, it must accept DIDs.
        If the endpoint is a group, the group must be active. The endpoint's credential policy may limit the time for
        which the request is open.
        """
        wanted = AccessRequest(body.issuerDid, body.holderDid, body.username, body.endpoint, body.of_group)
        issued = await verifier.issue(caller.tenant_id, wanted)
        return PRsIssued(
            prs=[
                IssuedPR(prId=each.id, walletId=each.holder.wallet_id, holderDid=each.holder.holder_did)
                for each in issued
            ],
            message=f"{counted(len(issued), 'presentation request')} issued",
        )

    @presentations.post("/api/v1/verifierService/presentationStatus", roles=READERS)
    async def status(body: PresentationStatus, caller: Caller) -> PresentationStanding:
        """Return the state of a presentation request (pending, accepted, declined, expired or withdrawn), the time when
        the state began, and the holder of the request. A request is kept for 30 days after its expiry."""
        standing = await service.status(caller.tenant_id, body.presentationRequestId)
        return PresentationStanding(
            message=f"presentation request {standing.state.lower()}",
            status=standing.state,
            at=iso(standing.since),
            presentationRequestId=standing.request.id,
            holderDid=standing.request.holder_did,
        )

    @presentations.post("/api/v1/verifierService/listPresentations", roles=READERS)
    async def list_requests(body: ListPresentations, caller: Caller) -> Plain[PresentationList]:
        """List the presentation requests of a domain, newest first. To get the next part of the list, send the field
        `before` of the answer. A request is kept for 30 days after its expiry."""
        found = await service.listed(body.domainId, body.before, body.pageSize)
        return Plain(
            {
                "code": 200,
                "status": "Success",
                "message": counted(len(found), "presentation request"),
                "requests": [answer(each, present=state, since=since) for each, state, since in found],
                "before": found[-1][0].id if len(found) == body.pageSize else 0,
            }
        )


def _declare_answering(presentations: Operations, service: Presentations) -> None:
    @presentations.post("/api/v1/walletService/pollPresentationRequest", roles=WALLETS | OPERATORS)
    async def poll(body: PollPR, caller: Caller) -> PolledPR:
        """Return the holder's oldest open request. If presentationRequestId is given, return this request instead. The
        answer contains the definition of the wanted credential, and the values to sign. The status is 404 if no request
        is open."""
        request, pending = await service.poll(
            caller, body.walletId, body.walletKey.get_secret_value(), body.holderDid, body.presentationRequestId
        )
        return PolledPR(
            **json.loads(request.definition),
            presentationRequestId=request.id,
            nonce=request.nonce,
            verifierDid=request.issuer_did,
            purpose=request.purpose,
            endpoint=request.endpoint,
            expiresAt=iso(request.expires_at),
            pending=pending,
        )

    @presentations.post("/api/v1/walletService/submitPresentation", roles=WALLETS | OPERATORS)
    async def submit(body: SubmitPresentation, caller: Caller) -> Done:
        """Answer a request with a presentation. A request can be answered once. `decline` declines the request.

        A presentation has one of these forms: a VP-JWT with the request's nonce, and the verifierDid as `aud`; a
        document with such a VP-JWT as `proof.jws` or `proof.jwt`; a document with a data integrity proof of the holder
        (eddsa-jcs-2022 or ecdsa-jcs-2019), with the nonce as challenge and the verifierDid as domain. The proof's
        purpose is authentication. Proofs over RDF are refused, because they do not cover claims that no context
        defines.

        The service must have issued the credential to the holder. The issuer of the credential must be the issuer of
        the request. The credential must not be expired, revoked or ignored, and must match the definition. A token may
        send ten wrong presentations or walletKeys for a wallet. After that, the service refuses the token's requests
        for this wallet for a minute.
        """
        if body.decline or body.presentation is None:
            wallet_key = None if body.walletKey is None else body.walletKey.get_secret_value()
            await service.decline(caller, body.walletId, body.holderDid, body.presentationRequestId, wallet_key)
            return Done(message="presentation declined")
        with in_field("presentation"):
            await service.submit(caller, body.walletId, body.holderDid, body.presentationRequestId, body.presentation)
        return Done(message="presentation accepted")

    @presentations.post("/api/v1/walletService/createPresentation", roles=WALLETS | OPERATORS)
    async def create(body: CreatePresentation, caller: Caller) -> PresentationCreated:
        """Sign a presentation for a holder whose key the service keeps. The walletKey decrypts the key. Send the
        presentation with submitPresentation."""
        presentation = await service.create(
            caller, body.walletId, body.walletKey.get_secret_value(), body.holderDid, body.presentationRequestId
        )
        return PresentationCreated(message="presentation created", presentation=presentation)
