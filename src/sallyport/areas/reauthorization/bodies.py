"""Request and response bodies of /ad/...Reauthorization(s)."""

from typing import Final

from pydantic import Field

from sallyport.areas.reauthorization.reauthorization import Reauthorization, SessionChange
from sallyport.base.model import Done, Model, answer_of
from sallyport.web.bodies import Flag, Id, InDomain, Paged, TotalCount

BY_DISCONNECT: Final = "Whether sessions with other attributes end, instead of being changed by CoA."
RUN_ID: Final = "Id of the re-authorization, as StartReauthorization has returned it."


class PreviewReauthorization(InDomain):
    """Request body of the operation `PreviewReauthorization`."""

    disconnect: Flag = Field(default=False, description=BY_DISCONNECT)


class StartReauthorization(InDomain):
    """Request body of the operation `StartReauthorization`."""

    disconnect: Flag = Field(default=False, description=BY_DISCONNECT)


class StopReauthorization(InDomain):
    """Request body of the operation `StopReauthorization`."""

    reauthorizationId: Id = Field(description=RUN_ID)


class ListReauthorizations(InDomain):
    """Request body of the operation `ListReauthorizations`."""


class ListReauthorizedSessions(InDomain, Paged):
    """Request body of the operation `ListReauthorizedSessions`."""

    reauthorizationId: Id = Field(description=RUN_ID)


@answer_of(SessionChange)
class ReauthorizedSession(Model):
    """A live session that a re-authorization changes."""


@answer_of(Reauthorization)
class ReauthorizationEntry(Model):
    """A re-authorization of the live sessions of a domain's users."""


class ReauthorizationPreview(Model):
    """Response body of the operation `PreviewReauthorization`."""

    sessions: list[ReauthorizedSession] = Field(description="Sessions that would change, at most 1,000.")
    examined: int = Field(description="Number of live sessions of the tenant that were examined.")
    disconnects: int = Field(description="Number of sessions that would end.")
    changes: int = Field(description="Number of sessions whose attributes would change.")
    undecided: int = Field(description="Number of sessions that could not be decided.")


class ReauthorizationStarted(Done):
    """Response body of the operation `StartReauthorization`."""

    reauthorizationId: int = Field(description="Id of the re-authorization.")


class ReauthorizationList(Model):
    """Response body of the operation `ListReauthorizations`."""

    reauthorizations: list[ReauthorizationEntry] = Field(description="The last 10 re-authorizations, newest first.")


class ReauthorizedSessions(Model):
    """Response body of the operation `ListReauthorizedSessions`."""

    sessions: list[ReauthorizedSession] = Field(description="Sessions of the page, ordered by their id.")
    totalCount: TotalCount
