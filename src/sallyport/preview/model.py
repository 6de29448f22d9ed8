"""The impact preview in the interface."""

from typing import Annotated

from sallyport.base.validation import Between
from sallyport.domains.impact import DEFAULT_DAYS, LONGEST_DAYS
from sallyport.web.scope import InDomain, Whole

Days = Annotated[Whole, Between(1, LONGEST_DAYS)]


class PreviewEnforcement(InDomain):
    """Body of PreviewEnforcement."""

    days: Days = DEFAULT_DAYS
