"""The HTTP operations of re-authorizations: /ad/...Reauthorization(s) and /ad/ListReauthorizedSessions."""

from sallyport.areas.reauthorization.bodies import (
    ListReauthorizations,
    ListReauthorizedSessions,
    PreviewReauthorization,
    ReauthorizationList,
    ReauthorizationPreview,
    ReauthorizationStarted,
    ReauthorizedSessions,
    StartReauthorization,
    StopReauthorization,
)
from sallyport.areas.reauthorization.reauthorization import SessionEffect
from sallyport.areas.reauthorization.service import Reauthorizations
from sallyport.base.answer import answers
from sallyport.base.model import Done
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate


def operations(service: Reauthorizations, gate: Gate) -> Operations:
    """Declare the operations. Only an admin may start a run, because it ends sessions of many users."""
    runs = Operations("Login rules", gate)

    @runs.post("/ad/PreviewReauthorization", roles=READERS)
    async def preview_reauthorization(body: PreviewReauthorization, caller: Caller) -> Plain[ReauthorizationPreview]:
        """Preview which live sessions of a domain's users would end or change if their logins were decided again now.

        Nothing is sent. A session changes if its login would be rejected or challenged, or would get other attributes.
        """
        found = await service.preview(body.domainId, by_disconnect=body.disconnect)
        counts = found.counts
        return Plain(
            {
                "sessions": answers(found.changes),
                "examined": found.examined,
                "disconnects": counts[SessionEffect.DISCONNECT],
                "changes": counts[SessionEffect.CHANGE],
                "undecided": counts[SessionEffect.UNDECIDED],
            }
        )

    @runs.post("/ad/StartReauthorization", roles=ADMINS)
    async def start_reauthorization(body: StartReauthorization, caller: Caller) -> ReauthorizationStarted:
        """Decide the live sessions of a domain's users again, and ask the devices to end or change the sessions that
        differ.

        The requests are sent in the background at a limited rate. One re-authorization of a domain runs at a time.
        """
        run_id = await service.start(body.domainId, by_disconnect=body.disconnect)
        return ReauthorizationStarted(message="re-authorization started", reauthorizationId=run_id)

    @runs.post("/ad/StopReauthorization", roles=ADMINS)
    async def stop_reauthorization(body: StopReauthorization, caller: Caller) -> Done:
        """Stop a re-authorization. Requests that were not sent yet are not sent any more."""
        await service.stop(body.domainId, body.reauthorizationId)
        return Done(message="re-authorization stopped")

    @runs.post("/ad/ListReauthorizations", roles=READERS)
    async def list_reauthorizations(body: ListReauthorizations, caller: Caller) -> Plain[ReauthorizationList]:
        """List the last re-authorizations of a domain, newest first, with their progress."""
        return Plain({"reauthorizations": answers(await service.page(body.domainId))})

    @runs.post("/ad/ListReauthorizedSessions", roles=READERS)
    async def list_reauthorized_sessions(body: ListReauthorizedSessions, caller: Caller) -> Plain[ReauthorizedSessions]:
        """List the sessions that a re-authorization changes, with the answers of the devices."""
        page = body.page()
        rows, total = await service.changes(body.domainId, body.reauthorizationId, offset=page.offset, limit=page.size)
        return Plain({"sessions": answers(rows), "totalCount": total})

    return runs
