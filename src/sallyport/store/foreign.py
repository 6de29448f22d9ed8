"""Descriptions of changes that other processes have made in the database."""

from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import SECOND

DEAD_US: Final = 5 * SECOND
"""Time without a heartbeat after which a node counts as dead."""
CONFIGURATION: Final = "configuration"
REPLACED: Final = "replaced"
"""The kind of a change that has replaced all rows by those of a backup."""
USERS: Final = "users"
PRINCIPALS: Final = "principals"
TOKENS: Final = "tokens"
KEYS: Final = "keys"
CERTIFICATES: Final = "certificates"
NOTICES: Final = "notices"
"""The kind of a change that adds notices of another node (`nodes.notices`)."""
PROMPTS: Final = "prompts"
"""The kind of a change of a prompt. The prompt has an answer, or its request now waits at another node."""


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """A committed change by another process.

    kind: one of the constants of this module; if empty, any rows may have changed. domain_id: the domain of the rows; 0
    for all domains. row: the id of a prompt; empty for other kinds.
    """

    kind: str
    domain_id: int
    row: str = ""
