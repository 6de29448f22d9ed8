"""Request and response bodies of /network_device/DisconnectSession and ChangeSession."""

from typing import Annotated, Final

from pydantic import Field, model_validator

from sallyport.areas.dynamic.sender import RequestOutcome
from sallyport.areas.policy.rules.bodies import Replies
from sallyport.base.model import Done, Model
from sallyport.base.validation import unfit
from sallyport.web.bodies import Id, InDomain, Text

SESSION_ID: Final = "Id of the session, as ListSessions gives it"


class DisconnectSession(InDomain):
    """Request body of the operation `DisconnectSession`. It contains exactly one of sessionId, userName and station."""

    sessionId: Id | None = Field(default=None, description=f"{SESSION_ID}. Give either this, a user or a station.")
    userName: Text = Field(default="", description="Name of a user. All live sessions of the user end.")
    station: Text = Field(
        default="", description="A station. All live sessions of the station end. A MAC address may be in any notation."
    )

    @model_validator(mode="after")
    def _names_one(self) -> "DisconnectSession":
        if (self.sessionId is not None, bool(self.userName), bool(self.station)).count(True) != 1:
            sentence = "exactly one of sessionId, userName and station must be given"
            raise unfit(sentence, "sessionId", "userName", "station")
        return self


class ChangeSession(InDomain):
    """Request body of the operation `ChangeSession`."""

    sessionId: Id = Field(description=f"{SESSION_ID}.")
    replyAttributes: Annotated[Replies, Field(min_length=1)] = Field(
        description="Attributes to set in the session, in the same form as in login rules."
    )


class SessionResult(Model):
    """The result for one session."""

    sessionId: int = Field(description="Id of the session.")
    userName: str = Field(description="User of the session; empty if the NAS has sent no name.")
    outcome: RequestOutcome = Field(
        description="Answer of the NAS. timeout: no answer came, but the NAS may have acted. unreachable: the request"
        " was not sent. unknown client: no RADIUS client has the address of the NAS."
    )
    errorCause: int | None = Field(
        description="Error-Cause in the answer (RFC 5176 section 3.5); null if there is none."
    )
    errorText: str = Field(
        description="Name of the Error-Cause, or the reason why no answer came. It is empty after an ack."
    )
    latencyMs: float = Field(description="Time until the answer, in milliseconds.")


class SessionResults(Done):
    """Response body of the operations `DisconnectSession` and `ChangeSession`."""

    results: list[SessionResult] = Field(description="Results, one for each session.")
    more: bool = Field(
        description="Whether more than 100 sessions were live. If so, send the request again for the "
        "remaining sessions."
    )
