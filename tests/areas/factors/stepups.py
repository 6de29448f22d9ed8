"""Step-ups in tests: logins of ann that wait for a proof, and browsers."""

from dataclasses import dataclass
from ipaddress import ip_network

from prometheus_client import CollectorRegistry

from sallyport.areas.factors.denials import Denials
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.stepup.addresses import GlobalNetworks
from sallyport.areas.factors.stepup.service import StepUps
from sallyport.areas.factors.stepup.stepup import Shown
from sallyport.areas.mfa.fields import OwnFields
from sallyport.areas.mfa.host import Opened
from sallyport.areas.mfa.provider import Question
from sallyport.base.clock import SECOND
from sallyport.metrics import StepUpMetrics
from sallyport.nodes.notices import NoNotices, Notices
from tests.areas import Areas

SITE = "https://vpn.example.org"
STATION = "198.51.100.7"
"""The address of ann's laptop, a global address in these tests."""
ELSEWHERE = "203.0.113.9"
NETWORKS = GlobalNetworks((ip_network("198.51.100.0/24"), ip_network("203.0.113.0/24"), ip_network("2001:db8::/32")))
LAPTOP = "the cookie of ann's browser"
STRANGER = "the cookie of another browser"


@dataclass
class LinkedNotices(NoNotices):
    """Notices that arrive at another node at once."""

    is_shared = True

    def __post_init__(self) -> None:
        self.other: LinkedNotices | None = None
        self.apply: dict[str, list] = {}  # type: ignore[type-arg]

    def send(self, kind, *values):  # type: ignore[no-untyped-def]
        """Pass a notice on to the other node."""
        for apply in self.other.apply.get(kind, []) if self.other is not None else []:
            apply(values, 0)

    def receive(self, kind, apply):  # type: ignore[no-untyped-def]
        """Register what a notice does."""
        self.apply.setdefault(kind, []).append(apply)


async def yes(_person: Person) -> bool:
    """Return that the person has the factor."""
    return True


def node(
    areas: Areas,
    notices: Notices | None = None,
    *,
    denials: Denials | None = None,
    factors: tuple[str, ...] = ("passkey", "totp"),
) -> StepUps:
    """Return the step-ups of a node. Everybody has these factors."""
    notices = notices or NoNotices()
    denials = denials or Denials(areas.store, notices, areas.app.factors.pauses, areas.clock)
    metrics = StepUpMetrics(CollectorRegistry())
    stepups = StepUps(areas.store, areas.vault, notices, denials, metrics, SITE, areas.clock, NETWORKS)
    for factor in factors:
        stepups.offer(factor, yes)
    return stepups


def with_pages(areas: Areas, *factors: str) -> StepUps:
    """Let the service have pages at SITE, on which everybody can prove these factors. Return its step-ups."""
    stepups = areas.app.factors.stepups
    stepups._site, stepups._networks = SITE, NETWORKS
    for factor in factors or ("passkey",):
        stepups.offer(factor, yes)
    return stepups


def question(areas: Areas, number: int = 1, *, user: str = "ann", address: str = STATION) -> Question:
    """Return the question about a login of a user at a VPN gateway."""
    return Question(
        f"{number:032x}",
        areas.domain,
        "corp",
        user,
        "vpn-1",
        "192.0.2.7",
        address,
        areas.clock() + 90 * SECOND,
        signed=True,
        address=address,
        place="Berlin",
    )


async def opened(stepups: StepUps, asked: Question, fields: OwnFields | None = None) -> Opened:
    """Open a step-up for a login."""
    page = await stepups.open(asked, fields or OwnFields())
    assert page is not None
    return page


async def bound(stepups: StepUps, asked: Question, fields: OwnFields | None = None, source: str = STATION) -> Shown:
    """Open a step-up and its page in ann's browser."""
    page = await opened(stepups, asked, fields)
    shown = await stepups.opened(page.code, LAPTOP, source)
    assert shown is not None
    return shown
