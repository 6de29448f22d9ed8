"""Changes of the database by other processes, as the areas learn of them."""

from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import SECOND

DEAD_US: Final = 5 * SECOND
"""Time without a heartbeat after which a node is dead."""
CONFIGURATION: Final = "configuration"
REPLACED: Final = "replaced"
"""All rows were replaced by those of a backup."""
USERS: Final = "users"
PRINCIPALS: Final = "principals"
TOKENS: Final = "tokens"
KEYS: Final = "keys"
CERTIFICATES: Final = "certificates"
NOTICES: Final = "notices"
"""Notices of another node (`nodes.notices`)."""


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """A committed change by another process.

    kind: one of the constants of this module; empty: any rows may have changed. domain_id: the domain of the rows; 0
    for all domains.
    """

    kind: str
    domain_id: int
