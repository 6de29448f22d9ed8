"""The HTTP operations of the impact preview: /ad/PreviewEnforcement."""

from typing import Annotated

from pydantic import Field

from sallyport.base.validation import Between
from sallyport.domains.impact import DEFAULT_DAYS, LONGEST_DAYS, Foresight, Impact
from sallyport.web.operation import Operations
from sallyport.web.scope import READERS, Caller, Gate, InDomain, Whole

Days = Annotated[Whole, Between(1, LONGEST_DAYS)]


class PreviewEnforcement(InDomain):
    """Body of PreviewEnforcement."""

    days: Days = Field(default=DEFAULT_DAYS, description="Days before now whose logins are decided again.")


def operations(service: Foresight, gate: Gate) -> Operations:
    """The operations of this slice."""
    previews = Operations("Domains", gate)

    @previews.post("/ad/PreviewEnforcement", roles=READERS)
    async def preview_enforcement(body: PreviewEnforcement, caller: Caller) -> Impact:
        """What enforcing would do to a domain: the users and devices of its last logins, with what becomes of them.

        It rests on the logins of the last `days` that passed their first factor, decided once more by the rules, the
        provider and the fallback action of now. `unknown`: the enrolment decides, and is not known. At most 1,000
        users and devices are named, the worst outcomes first; `counts` is of all.
        """
        return await service.impact(body.domainId, days=body.days)

    return previews
