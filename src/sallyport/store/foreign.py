"""Descriptions of changes that another process or node has made in the database."""

from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import SECOND

DEAD_US: Final = 5 * SECOND
"""Time without a heartbeat after which a node counts as dead, in microseconds."""
CLOCKS_US: Final = 60 * SECOND
"""Maximum difference between the clock of a node and the clock of the database, in microseconds."""
CONFIGURATION: Final = "configuration"
REPLACED: Final = "replaced"
"""The kind of a restore, which replaces all rows by the rows of a backup."""
USERS: Final = "users"
PRINCIPALS: Final = "principals"
TOKENS: Final = "tokens"
KEYS: Final = "keys"
CERTIFICATES: Final = "certificates"
NOTICES: Final = "notices"
"""The kind of a change that adds notices of another node (`nodes.notices`)."""
PROMPTS: Final = "prompts"
"""The kind of a change of a prompt: the user has answered, or another node now waits for the user's answer."""


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """A change that another process or node has committed.

    kind: a constant of this module; empty if rows of any kind may have changed. domain_id: the domain of the changed
    rows; 0 if rows of any domain may have changed. row: the id of the changed prompt if `kind` is PROMPTS; otherwise
    empty.
    """

    kind: str
    domain_id: int
    row: str = ""
