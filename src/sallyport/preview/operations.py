"""The HTTP operations of the impact preview: /ad/PreviewEnforcement."""

from typing import Annotated

from pydantic import Field

from sallyport.base.validation import Between
from sallyport.domains.bodies import Impact
from sallyport.domains.enforcement import DEFAULT_DAYS, LONGEST_DAYS, ImpactPreview
from sallyport.web.operation import Operations
from sallyport.web.scope import READERS, Caller, Gate, InDomain, Whole

Days = Annotated[Whole, Between(1, LONGEST_DAYS)]


class PreviewEnforcement(InDomain):
    """Body of PreviewEnforcement."""

    days: Days = Field(default=DEFAULT_DAYS, description="Days before now whose logins are decided again.")


def operations(service: ImpactPreview, gate: Gate) -> Operations:
    """The operations of this slice."""
    previews = Operations("Domains", gate)

    @previews.post("/ad/PreviewEnforcement", roles=READERS)
    async def preview_enforcement(body: PreviewEnforcement, caller: Caller) -> Impact:
        """Preview the impact of enforcing on a domain: the users and devices of its recent logins with their outcomes.

        It decides the logins of the last `days` that passed their first factor again, by the present rules, provider
        and fallback action. `unknown`: an enrolment that is not known decides. At most 1,000 users and devices are
        named, the worst outcomes first; `counts` covers all.
        """
        return await service.impact(body.domainId, days=body.days)

    return previews
