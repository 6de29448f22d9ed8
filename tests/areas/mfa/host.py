"""The host that providers have in tests: seeds in memory, HTTP to loopback and a fixed clock."""

from dataclasses import dataclass, field, replace

from sallyport.areas.mfa.fields import OwnFields
from sallyport.areas.mfa.host import Host, Opened, StepUpState, WalletAnswer
from sallyport.areas.mfa.provider import Code, Enrolment, Outcome, Provider, Question, Strength
from sallyport.base.clock import Clock, now_us
from sallyport.outgoing.http import HttpFactory
from sallyport.settings.values import ANYWHERE
from tests.areas import trust

USER = "ann.o'neill+x@corp.example"
"""A user name that must be quoted in URLs and other syntax."""


@dataclass
class MemorySeeds:
    """The seeds by user, and the last time step that each user has used."""

    seeds: dict[str, str] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)

    async def seed(self, domain_id: int, user: str) -> str | None:
        """Return the user's seed."""
        return self.seeds.get(user)

    async def spend(self, domain_id: int, user: str, step: int) -> bool:
        """Store the time step. Return False if this step or a later one was used before."""
        if step <= self.spent.get(user, -1):
            return False
        self.spent[user] = step
        return True


class NoWallets:
    """The wallets of a service in which no user has a wallet."""

    async def enrolled(self, domain_id: int, user: str, issuer_did: str, schema_id: int) -> bool:
        """Return False, because the user has no credential."""
        return False

    async def open(
        self,
        domain_id: int,
        user: str,
        issuer_did: str,
        schema_id: int,
        *,
        challenge_id: str,
        purpose: str,
        expires_at: int,
    ) -> int | None:
        """Return None, because there is no wallet."""
        return None

    async def answer(self, request_id: int, *, within_s: float) -> WalletAnswer | None:
        """Return that the request was withdrawn, because it does not exist."""
        return "withdrawn"

    async def withdraw(self, request_id: int) -> None:
        """Do nothing."""


class NoStepUps:
    """The step-ups of a service without pages, in which no user has a factor."""

    has_pages = False
    has_mail = False
    address_length = 13
    offered = frozenset({"totp"})

    async def check(self, factor: str, domain_id: int) -> str:
        """Return no result, because there is no server."""
        return ""

    def can_compare(self, address: str) -> bool:
        """Return False, because no address can be compared."""
        return False

    async def factors_of(self, domain_id: int, user: str) -> frozenset[str]:
        """Return no factors."""
        return frozenset()

    async def open(self, question: Question, fields: OwnFields) -> Opened | None:
        """Return None, because there are no pages."""
        return None

    async def paused(self, domain_id: int, user: str) -> str:
        """Return that there is no pause."""
        return ""

    async def mail(self, question: Question, page: Opened) -> bool:
        """Return False, because there is no mail."""
        return False

    async def state_of(self, stepup_id: str, *, within_s: float) -> tuple[StepUpState, Strength]:
        """Return that the login is over."""
        return StepUpState.OVER, Strength.ANY

    async def use(self, stepup_id: str) -> StepUpState:
        """Return that the login is over."""
        return StepUpState.OVER

    async def check_digits(self, stepup_id: str, code: Code) -> bool:
        """Return False, because no digits are right."""
        return False

    async def take_answer(self, stepup_id: str) -> bool:
        """Return that no answer is left."""
        return False

    async def answer_was_wrong(self, stepup_id: str) -> int:
        """Return that no answer is left."""
        return 0

    async def spend_code(self, factor: str, domain_id: int, user: str, code: Code) -> bool:
        """Return False, because no code is right."""
        return False

    async def end(self, stepup_id: str) -> None:
        """Do nothing."""


def make_host(*, seeds: MemorySeeds | None = None, clock: Clock = now_us, http: HttpFactory | None = None) -> Host:
    """Return a host for the domain corp, whose ID is 1."""
    return Host(
        1,
        "corp",
        http or HttpFactory(egress=ANYWHERE, verify=trust()),
        seeds or MemorySeeds(),
        NoWallets(),
        NoStepUps(),
        clock,
    )


def question(challenge_id: str = "a" * 32, *, user: str = USER) -> Question:
    """Return the question about a login at a switch."""
    return Question(challenge_id, 1, "corp", user, "switch-7", "192.0.2.7", "00-11-22-33-44-55", now_us() + 60_000_000)


async def assert_unknown(provider: Provider, *users: str) -> None:
    """Assert that the provider knows none of these users. This must not count as a failure of the provider."""
    for user in users:
        assert await provider.enrolled(user) is Enrolment.NOT_ENROLLED
        answer = await provider.start(replace(question(), user=user, challenge_id=user))
        assert answer.outcome is Outcome.NOT_ENROLLED
