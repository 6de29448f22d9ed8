"""The impact preview in the interface."""

from typing import Annotated

from pydantic import Field

from sallyport.domains.impact import DEFAULT_DAYS, LONGEST_DAYS
from sallyport.web.scope import InDomain, Whole

Days = Annotated[Whole, Field(ge=1, le=LONGEST_DAYS)]


class PreviewEnforcement(InDomain):
    """Body of PreviewEnforcement."""

    days: Days = DEFAULT_DAYS
