"""Sign-ins with the identity provider of a domain, in tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from sallyport.areas.factors.openid.service import CompanySignIns, OfDomains
from sallyport.areas.factors.stepup.service import StepUps
from sallyport.areas.factors.stepup.stepup import Shown
from sallyport.areas.mfa.fields import OwnFields
from sallyport.areas.mfa.provider import Strength
from sallyport.base.clock import SECOND
from sallyport.outgoing.http import HttpFactory
from sallyport.settings.values import ANYWHERE
from tests.areas import Areas
from tests.areas.factors.stepups import LAPTOP, SITE, STATION, bound, question
from tests.console.provider import CLIENT, SECRET, Provider

OID = "3f2a7c1e-0b1d-4c55-9d0e-6f1a2b3c4d5e"


@dataclass
class Bench:
    """The sign-ins of two domains: `corp`, and one of another tenant. accounts: user names by object id."""

    areas: Areas
    provider: Provider
    stepups: StepUps
    fields: dict[int, OwnFields] = field(default_factory=dict)
    accounts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.http = HttpFactory(egress=ANYWHERE)
        self.sign_ins = CompanySignIns(
            OfDomains(self.fields.get, lambda _domain: self.http, self.account),
            self.areas.vault,
            SITE,
            self.areas.clock,
        )
        self.configure()
        self.signed_in()

    def configure(self, domain: int | None = None, **changed: object) -> None:
        """Configure the identity provider of a domain."""
        own = {"issuer": self.provider.issuer, "clientId": CLIENT, "clientSecret": SECRET, "factors": "oidc"}
        self.fields[domain or self.areas.domain] = OwnFields.model_validate(own | changed)

    def signed_in(self, user: object = "ann", **claims: object) -> None:
        """Let the provider's user be this one, and the sign-in be now."""
        self.provider.claims = {"preferred_username": user, "auth_time": self.now, **claims}

    @property
    def now(self) -> int:
        """The time in seconds."""
        return self.areas.clock() // SECOND

    async def account(self, domain_id: int, object_id: str) -> frozenset[str]:
        """Return the user with an object id in a cloud directory."""
        return frozenset(filter(None, [self.accounts.get(object_id)]))

    async def stepup(self, number: int = 1, user: str = "ann") -> Shown:
        """Open a step-up in the browser of the person."""
        return await bound(self.stepups, question(self.areas, number, user=user))

    async def returned(self, stepup: Shown, browser: str = LAPTOP) -> dict[str, str]:
        """Sign in at the provider. Return the parameters with which the browser comes back."""
        back = await self.provider.visit(await self.sign_ins.address(stepup, browser))
        return dict(parse_qsl(urlsplit(back).query))

    async def prove(self, stepup: Shown, answer: Mapping[str, str], browser: str = LAPTOP) -> Strength:
        """Return with the parameters of the provider."""
        return await self.sign_ins.prove(stepup, str(self.areas.domain), browser, answer, STATION)
