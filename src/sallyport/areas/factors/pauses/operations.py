"""HTTP operations of pauses, with their bodies: /ad/ListPromptPauses and /ad/EndPromptPause."""

from pydantic import Field

from sallyport.areas.factors.pauses.repo import Pause
from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.users.accounts.fields import UserName
from sallyport.base.answer import answers
from sallyport.base.model import Done, Model, answer_of
from sallyport.web.bodies import InDomain, Paged, Plain, Search, TotalCount
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


class ListPromptPauses(InDomain, Paged):
    """Request body of the operation `ListPromptPauses`."""

    search: Search = Field(default="", description="Part of the name of a user. Leave it empty to list all pauses.")


class EndPromptPause(InDomain):
    """Request body of the operation `EndPromptPause`."""

    userName: UserName = Field(description="Name of the user, as ListPromptPauses shows it.")


@answer_of(Pause)
class PromptPauseEntry(Model):
    """A user who gets no prompt at present."""


class PromptPauseList(Model):
    """Response body of the operation `ListPromptPauses`."""

    pauses: list[PromptPauseEntry] = Field(description="Pauses of the page, ordered by user.")
    totalCount: TotalCount


def operations(service: Pauses, gate: Gate) -> Operations:
    """Return the operations of pauses."""
    pauses = Operations("Factors", gate)

    @pauses.post("/ad/ListPromptPauses", roles=READERS)
    async def list_prompt_pauses(body: ListPromptPauses, caller: Caller) -> Plain[PromptPauseList]:
        """List the users of a domain who get no prompt at present, because they have denied a login as not theirs or
        have not answered two prompts in a row."""
        page = body.page()
        rows, total = await service.page(body.domainId, body.search, offset=page.offset, limit=page.size)
        return Plain({"pauses": answers(rows), "totalCount": total})

    @pauses.post("/ad/EndPromptPause", roles=OPERATORS)
    async def end_prompt_pause(body: EndPromptPause, caller: Caller) -> Done:
        """Let a user get prompts again. First make sure that no other person knows the user's password."""
        found = await service.end(body.domainId, body.userName)
        return Done(message=f"prompts of {found.user_name} resumed" if found else "the user's prompts were not paused")

    return pauses
