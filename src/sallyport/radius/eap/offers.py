"""What a conversation can offer its client."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sallyport.radius.eap.model import Method
from sallyport.radius.eap.packet import TYPE_NAMES

NO_SERVER: Final = "there is no server certificate"
NO_AUTHORITY: Final = "there is no authority for client certificates"
UNCHECKED: Final = "the domain's first factor cannot check it"
OTHER: Final = "not among the methods here"


@dataclass(frozen=True, slots=True)
class Offer:
    """A method that can be had. make: begins it for an identity, at a time."""

    kind: int
    make: Callable[[bytes, float], Method]


@dataclass(frozen=True, slots=True)
class Offers:
    """What can be had, in order; left_out: why each other method cannot."""

    methods: Sequence[Offer]
    left_out: Mapping[int, str] = field(default_factory=dict)

    def why(self, kinds: Iterable[int]) -> str:
        """Why these methods cannot be had; for people."""
        return ", ".join(f"{TYPE_NAMES.get(kind, f'type {kind}')} ({self.left_out.get(kind, OTHER)})" for kind in kinds)
