"""What the command line asks: session.change and session.disconnect."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field, model_validator

from sallyport.base.command import Arguments, Command, command
from sallyport.base.validation import unfit
from sallyport.base.wire import JSON
from sallyport.dynamic.operations import entry
from sallyport.dynamic.service import Asked, DynamicAuthorization
from sallyport.policy.rules.bodies import Replies, replies
from sallyport.web.scope import Id, Name


class DisconnectSession(Arguments):
    """One session, or the live ones of a user at the devices of a domain (name or domainId)."""

    session: Id | None = None
    domain: str | None = None
    user: Name | None = None

    @model_validator(mode="after")
    def _names_one(self) -> "DisconnectSession":
        if (self.session is None) is (self.user is None) or (self.user is None) is not (self.domain is None):
            raise unfit("a session, or a user and a domain")
        return self


class ChangeSession(Arguments):
    """A session, and the attributes that it gets."""

    session: Id
    replyAttributes: Annotated[Replies, Field(min_length=1)]  # noqa: N815  the interface's spelling


def commands(service: DynamicAuthorization, find_domain: Callable[[str], int]) -> dict[str, Command]:
    """The commands of this slice by name. find_domain: the id of a domain by its name or id (NotFound)."""

    async def disconnect(wanted: DisconnectSession) -> JSON:
        if wanted.user is not None and wanted.domain is not None:
            return _told(await service.disconnect_user(find_domain(wanted.domain), wanted.user))
        return _told(await service.disconnect(wanted.session or 0))

    async def change(wanted: ChangeSession) -> JSON:
        return _told(await service.change(wanted.session, replies(wanted.replyAttributes)))

    return {
        "session.change": command(ChangeSession, change),
        "session.disconnect": command(DisconnectSession, disconnect),
    }


def _told(asked: Asked) -> JSON:
    return {"results": [entry(each) for each in asked.results], "more": asked.more}
