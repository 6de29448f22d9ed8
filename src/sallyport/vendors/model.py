"""What is found out about a request's sender, and what a vendor's file is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from sallyport.vendors.sight import Sight


class Certainty(StrEnum):
    """How much a finding is worth."""

    CERTAIN = "certain"
    PROBABLE = "probable"
    """Only a name or a format, which an admin of the device could have set, or evidence that contradicts itself."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A product and why it is the one.

    product: the name as people write it. evidence: printable, such as "Vendor-Specific 12356/3" or
    "Connect-Info vpn-ssl"; never a user's data.
    """

    product: str
    certainty: Certainty
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sent a request. forwarded with forwarder None is a proxy that nobody can name."""

    forwarder: Finding | None
    nas: Finding | None
    forwarded: bool

    @property
    def product(self) -> Finding | None:
        """The product at the packet's source address."""
        return self.forwarder if self.forwarded else self.nas


class Rank(IntEnum):
    """The kinds of evidence, strongest first."""

    VENDOR_ATTRIBUTE = 1
    SHARED_ATTRIBUTE = 2
    MICROSOFT_VALUE = 3
    CONNECT_INFO = 4
    NAS_IDENTIFIER = 5
    FORMAT = 6


@dataclass(frozen=True, slots=True)
class Clue:
    """One way to tell a product.

    look: the evidence for the product in what is seen; empty where there is none. certainty: given only where it
    differs from the rank's own.
    """

    product: str
    rank: Rank
    look: Callable[[Sight], tuple[str, ...]]
    certainty: Certainty | None = None

    def finding(self, evidence: tuple[str, ...]) -> Finding:
        """The finding that this clue leads to."""
        usual = Certainty.PROBABLE if self.rank >= Rank.NAS_IDENTIFIER else Certainty.CERTAIN
        return Finding(self.product, self.certainty or usual, evidence)


@dataclass(frozen=True, slots=True)
class OwnProxyState:
    """A NAS product that sends a Proxy-State although it is no proxy. sends: whether what is seen may be its own."""

    product: str
    sends: Callable[[Sight], bool]


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor's file: its NAS products, its proxies, and those that look like both. Earlier clues are stronger."""

    nas: tuple[Clue, ...] = ()
    forwarder: tuple[Clue, ...] = ()
    own_proxy_state: tuple[OwnProxyState, ...] = ()
