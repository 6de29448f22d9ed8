"""HTTP operations of bypass codes: /ad/...BypassCodes."""

from collections.abc import Callable
from typing import Final

from sallyport.areas.factors.bypass_codes.bodies import (
    BypassCodeList,
    BypassCodesMade,
    ListBypassCodes,
    MakeBypassCodes,
    RemoveBypassCodes,
)
from sallyport.areas.factors.bypass_codes.code import Wanted
from sallyport.areas.factors.bypass_codes.service import BypassCodes
from sallyport.areas.users.administrators import Administrators
from sallyport.base.answer import answers
from sallyport.base.clock import Clock, iso
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate

NOT_TAKEN: Final = (
    "no MFA provider of the domain takes bypass codes: set or add the provider own with the factor bypass"
)


def operations(
    service: BypassCodes, administrators: Administrators, takes_codes: Callable[[int], bool], clock: Clock, gate: Gate
) -> Operations:
    """Return the operations of bypass codes. takes_codes: returns whether a domain has an MFA provider that takes
    bypass codes."""
    codes = Operations("Factors", gate)

    @codes.post("/ad/MakeBypassCodes", roles=OPERATORS)
    async def make_bypass_codes(body: MakeBypassCodes, caller: Caller) -> BypassCodesMade:
        """Make bypass codes for a user, such as after the loss of a phone. They replace all former codes of the user.
        The answer warns if no MFA provider of the domain takes bypass codes.

        A code is the second factor of a login, and never the first. The code and the password are enough to log in, so
        give the code only to the user. Only the role admin makes codes for administrators.
        """
        person = await service.person(body.domainId, body.userName)
        await administrators.check(body.domainId, person.name, caller)
        made = await service.make(body.domainId, body.userName, Wanted(body.codes, body.uses, body.hours))
        former = f"; {counted(made.former, 'former code')} replaced" if made.former else ""
        return BypassCodesMade(
            message=f"{counted(len(made.codes), 'bypass code')} of {made.person.name} made{former}",
            userName=made.person.name,
            codes=list(made.codes),
            uses=body.uses,
            expiresAt=iso(made.expires_at),
            warnings=[] if takes_codes(body.domainId) else [NOT_TAKEN],
        )

    @codes.post("/ad/ListBypassCodes", roles=READERS)
    async def list_bypass_codes(body: ListBypassCodes, caller: Caller) -> Plain[BypassCodeList]:
        """List the bypass codes of a domain's users, without their digits, ordered by user."""
        page = body.page()
        found, total = await service.page(body.domainId, body.userName, page.offset, page.size)
        return Plain({"bypassCodes": answers(found, now=clock()), "totalCount": total})

    @codes.post("/ad/RemoveBypassCodes", roles=OPERATORS)
    async def remove_bypass_codes(body: RemoveBypassCodes, caller: Caller) -> Done:
        """Remove all bypass codes of a user. The next login with one of them is refused."""
        await administrators.check(body.domainId, body.userName, caller)
        removed = await service.remove(body.domainId, body.userName)
        return Done(message=f"{counted(removed, 'bypass code')} of {body.userName} removed")

    return codes
