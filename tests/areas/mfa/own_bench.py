"""The provider of the service's own factors, with real step-ups in a store, and a person with a passkey and an app."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.stepup.mailing import SUBJECT
from sallyport.areas.factors.stepup.service import StepUps
from sallyport.areas.factors.stepup.stepup import Proof, Shown
from sallyport.areas.mfa.contract import Behaviour
from sallyport.areas.mfa.host import ConfiguredProvider, Host
from sallyport.areas.mfa.own import Own
from sallyport.areas.mfa.provider import Question, Strength
from sallyport.base.errors import TooMany
from sallyport.base.totp import hotp, seed_octets, step_at
from tests.areas import Areas
from tests.areas.factors import stepups
from tests.areas.factors.stepups import LAPTOP, STATION
from tests.areas.mfa.benches import SEED
from tests.areas.mfa.host import MemorySeeds, make_host


class ImpatientOwn(Own):
    """A provider that does not wait after an empty answer."""

    empty_s = 0.0


@dataclass
class Mailbox:
    """The mail of the service: what was sent, to whom."""

    sent: list[tuple[str, str]] = field(default_factory=list)
    is_on: bool = True
    is_full: bool = False

    def send(self, tenant_id: int, to: str, subject: str, text: str) -> None:
        """Keep a mail."""
        assert (tenant_id, subject) == (1, SUBJECT)
        if self.is_full:
            raise TooMany("the queue is full")
        self.sent.append((to, text))


@dataclass
class OwnBench:
    """The person ann with these factors, and with the browser and the app that a test uses."""

    areas: Areas
    factors: tuple[str, ...] = ("passkey", "totp")
    fields: Mapping[str, object] = field(default_factory=dict)
    provider: type[ConfiguredProvider] = ImpatientOwn
    secrets: Sequence[str] = ()
    failures: frozenset[Behaviour] = frozenset()
    user: str = "ann"
    behaviour: Behaviour = Behaviour.APPROVE
    mailbox: Mailbox | None = None
    prompts: int = 0
    requests: int = 0

    def __post_init__(self) -> None:
        self.seeds = MemorySeeds({self.user: SEED} if "totp" in self.factors else {})
        self.stepups = self.node()
        host = make_host(seeds=self.seeds, clock=self.areas.clock)
        self.host: Host = replace(host, domain_id=self.areas.domain, own=self.stepups)

    def node(self) -> StepUps:
        """Return the step-ups of a node."""
        found = stepups.node(self.areas, factors=())
        found._mail.mail = self.mailbox  # type: ignore[assignment]
        for factor in ("passkey", "totp", "bypass"):
            found.offer(factor, self._has if factor in self.factors else self._lacks)
        return found

    async def _lacks(self, _person: Person) -> bool:
        return False

    async def _has(self, person: Person) -> bool:
        return person.name == self.user and self.behaviour is not Behaviour.UNKNOWN_USER

    @property
    def right_code(self) -> str:
        """The code of the app, or another one if the user denies."""
        late = 100 if self.behaviour is Behaviour.DENY else 0
        return hotp(seed_octets(SEED), step_at(self.areas.clock()) + late)

    @property
    def mails(self) -> list[tuple[str, str]]:
        """The mails that were sent: their recipient and their text."""
        assert self.mailbox is not None
        return self.mailbox.sent

    def behave(self, behaviour: Behaviour) -> None:
        """Behave this way from now on."""
        self.behaviour = behaviour

    def make(self, **fields: object) -> Own:
        """Return a new instance of the provider. fields: its configuration."""
        return ImpatientOwn(Own.fields.model_validate({**self.fields, **fields}), self.host)

    async def set(self, *products: str, **fields: object) -> None:
        """Check a configuration as `provider set` does, in a domain with devices of these products."""

        async def of_domain() -> tuple[str, ...]:
            return products

        self.host = replace(self.host, products=of_domain)
        await Own.refuse(Own.fields.model_validate({**self.fields, **fields}), self.host)

    def question(self, number: int = 1, **changes: object) -> Question:
        """Return the question about a login of ann."""
        return replace(stepups.question(self.areas, number, user=self.user), **changes)  # type: ignore[arg-type]

    async def open_page(self, question: Question, browser: str = LAPTOP, source: str = STATION) -> Shown:
        """Open the page of a login in a browser."""
        page = await self.stepups.open(question, Own.fields.model_validate(self.fields))  # type: ignore[arg-type]
        assert page is not None
        shown = await self.stepups.opened(page.code, browser, source)
        assert shown is not None
        return shown

    async def prove(self, question: Question, factor: str = "passkey", source: str = STATION) -> Proof:
        """Open the page of a login in ann's browser, and prove a factor there."""
        shown = await self.open_page(question)
        strength = Strength.PHISHING_RESISTANT if factor == "passkey" else Strength.TWO_CHANNELS
        return await self.stepups.prove(shown.id, LAPTOP, factor, strength, source)
