"""The HTTP operations of the impact preview: /ad/PreviewEnforcement."""

from sallyport.domains.impact import Foresight, Impact
from sallyport.preview.model import PreviewEnforcement
from sallyport.web.operation import Operations
from sallyport.web.scope import READERS, Caller, Gate


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
