"""Dynamic authorization in the interface."""

from typing import Annotated

from pydantic import Field, model_validator

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.policy.rules.bodies import Replies
from sallyport.web.scope import Id, InDomain, Text


class DisconnectSession(InDomain):
    """Body of DisconnectSession: one session, or the live ones of a user or of a station."""

    sessionId: Id | None = None
    userName: Text = ""
    station: Text = ""

    @model_validator(mode="after")
    def _names_one(self) -> "DisconnectSession":
        if (self.sessionId is not None, bool(self.userName), bool(self.station)).count(True) != 1:
            raise unfit("sessionId, userName or station is needed, one of them", "sessionId", "userName", "station")
        return self


class ChangeSession(InDomain):
    """Body of ChangeSession. replyAttributes: as login rules have them."""

    sessionId: Id
    replyAttributes: Annotated[Replies, Field(min_length=1)]


class SessionResult(Model):
    """What came of asking about one session.

    outcome: `ack`, `nak`, `timeout`, `unreachable` or `unknown client`. errorCause: of RFC 5176 section 3.5, null
    where the NAS gave none. errorText: its name, or why there is no answer. latencyMs: until the answer.
    """

    sessionId: int
    userName: str
    outcome: str
    errorCause: int | None
    errorText: str
    latencyMs: float


class SessionResults(Model):
    """Answer of DisconnectSession and ChangeSession. more: further sessions are live: ask again."""

    code: int = 200
    status: str = "Success"
    message: str
    results: list[SessionResult]
    more: bool
