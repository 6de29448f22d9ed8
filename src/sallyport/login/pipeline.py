"""The way of a login from one step to the next; what they come to is told to `decide`, the one decision function.

    who > lock-out > first factor > login rules > second factor > mode

`Pipeline.begin` decides what needs no I/O right away. Where a user is not in memory, a challenge is answered or a
second factor must be asked, it says so: `check` goes on in a task of its own, and `ask` waits for the second factor.
"""

from collections.abc import Callable
from typing import Final

from sallyport.directory.principals.service import Principals
from sallyport.domains.model import LOCAL, Domain, FirstFactor
from sallyport.domains.service import Domains
from sallyport.endpoints.service import MISSING, EndpointUsers
from sallyport.inventory.devices.sightings import Sightings
from sallyport.login.decision import ROUND, refuse
from sallyport.login.eap.rounds import Rounds
from sallyport.login.eap.service import Eap
from sallyport.login.first.password import ends_in_code, typed_code
from sallyport.login.first.service import FirstFactors
from sallyport.login.first.vouched import check_vouched
from sallyport.login.identity import who
from sallyport.login.model import PASSED, Decision, Login, Reason
from sallyport.login.second.service import SecondFactor
from sallyport.login.steps import Steps
from sallyport.policy.bypass.service import Bypass
from sallyport.policy.lockouts.service import Lockouts
from sallyport.policy.rules.service import LoginRules
from sallyport.radius.attributes import STATE
from sallyport.radius.method import Method, method_of

_OURS: Final = frozenset({FirstFactor.LOCAL, FirstFactor.NONE})


class Pipeline:
    """Decides logins."""

    def __init__(
        self,
        domains: Domains,
        users: EndpointUsers,
        sightings: Sightings,
        rules: LoginRules,
        first: FirstFactors,
        second: SecondFactor,
        lockouts: Lockouts,
        eap: Eap,
        bypass: Bypass,
        principals: Principals,
    ) -> None:
        self._domains = domains
        self._users = users
        self._first = first
        self._second = second
        self._lockouts = lockouts
        self._bypass = bypass
        self._principals = principals
        self._steps = steps = Steps(domains, users, sightings, rules, first, second, lockouts, principals)
        self._rounds = Rounds(steps, domains, users, second, eap, bypass)

    def begin(self, login: Login) -> Decision | None:
        """Decide without waiting; None: `check` has to go on. PacketError: a malformed password."""
        reason = who(login, self._domains.table)
        login.method = method_of(login.request)
        domain = login.domain
        if domain is None:
            return refuse(reason)
        login.factor = domain.factor
        login.outside = login.method == Method.EAP and domain.first_factor is not FirstFactor.NONE
        if reason is PASSED and self._bypass.admits(login, domain.id):
            return self._steps.let_by(login, domain)
        login.imported = self._principals.cached(domain.id, login.user)
        if reason is not PASSED:
            return refuse(reason, domain)
        watched = self._lockouts.some
        if watched and not self._is_by_station(login, domain) and self._lockouts.refuses(login, domain):
            return refuse(Reason.LOCKED_OUT, domain)
        first = self._check_at_once(login, domain)
        if first is None:
            return None
        decision = self._steps.judge(login, domain, first)
        if (watched or not login.proven) and decision is not None:
            self._lockouts.note(login, domain, decision)
        return decision

    def _check_at_once(self, login: Login, domain: Domain) -> Reason | None:
        """The first factor's word, where it is known without waiting; of EAP if another server has checked it."""
        vouched = domain.first_factor is FirstFactor.NONE
        if login.method == Method.EAP and (not vouched or self._is_by_station(login, domain)):
            return None
        answers = STATE in login.request.first and self._steps.names_challenge(login) is not None
        if answers or login.imported is None:
            return None
        if domain.first_factor is LOCAL:
            user = self._users.cached(domain.id, login.user)
            return None if user is MISSING else self._steps.check_password(login, domain, user)
        return check_vouched(login) if vouched else None

    def _is_by_station(self, login: Login, domain: Domain) -> bool:
        """Whether it is a conversation with a station that may be let in by its address."""
        return login.method == Method.EAP and self._rounds.station(login, domain) is not None

    async def check(self, login: Login) -> Decision | None:
        """Decide a login that `begin` could not. None: the second factor must be asked. ROUND: the first factor goes
        on. StoreError, SecretError, PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        if login.proven or self._steps.names_challenge(login) is not None:
            return None
        if login.go_on is None and self._rounds.serves(login, domain):
            decision = self._rounds.converse(login)
            if decision is not None or login.go_on is None:
                return decision
        if login.go_on is not None:
            return await login.go_on()
        if domain.first_factor is LOCAL:
            first = self._steps.check_password(login, domain, await self._steps.user(domain, login.user))
        elif domain.first_factor is FirstFactor.NONE:
            first = check_vouched(login)
        else:
            await self._steps.recall(login, domain)
            carries_code = ends_in_code(login) and await self._second.has_codes(domain, login.principal)
            first = await self._first.check(login, domain, lambda: carries_code)
        await self._steps.recall(login, domain)
        return self._say(login, domain, first)

    def converse(self, login: Login) -> Decision | None:
        """Go on with a round of EAP that `begin` has left, see `Rounds.converse`."""
        return self._rounds.converse(login)

    def hand_over(self, login: Login, told: Callable[[Login, Callable[[], Decision | None]], None]) -> bool:
        """Ask a first factor that needs no task for it; `told` gets what to call for what `check` would have returned.
        False: call `check`. PacketError."""
        domain = login.domain
        if domain is None or domain.first_factor in _OURS or login.imported is None or login.go_on is not None:
            return False
        if STATE in login.request.first and self._steps.names_challenge(login) is not None:
            return False
        if login.method == Method.EAP and (
            self._rounds.station(login, domain) is not None or self._principals.has_people(domain.id)
        ):
            return False  # who it is inside EAP is not known yet
        if self._second.asks_for_codes(domain) and ends_in_code(login):
            return False  # whether the user has codes may have to be asked for
        return self._first.begin(
            login, domain, _no_code, lambda first: told(login, lambda: self._say(login, domain, first))
        )

    def _say(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """What the first factor's word comes to."""
        if login.found.challenge is not None:
            return ROUND
        fresh = self._steps.fresh(domain)
        if fresh.first_factor is not domain.first_factor:
            first = Reason.FIRST_FACTOR_CHANGED
        return self._steps.settle(login, fresh, self._steps.judge(login, fresh, first))

    async def ask(self, login: Login) -> Decision | None:
        """Wait for the second factor; then look afresh at user, rules and mode. None: a newer request of the same
        login took its place. StoreError, SecretError, PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        await self._steps.recall(login, domain)
        challenge = self._steps.names_challenge(login)
        if challenge is None:
            told = await self._second.ask(login, self._steps.fresh(domain), await self._steps.asked(domain, login.user))
        else:
            login.outside = False  # a challenge is answered by whom it was sent to
            told = await self._second.resume(login, *challenge, typed_code(login))
        if told is None:
            return None
        decision = await self._steps.look_afresh(login, domain, told, answers_challenge=challenge is not None)
        return self._steps.settle(login, domain, decision, wrong_code=told.wrong_code)

    def note(self, login: Login) -> None:
        """Tell the inventory of a login whose sender is proven, once (decisions.md, Unsigned requests)."""
        self._steps.note(login)

    def abandoned(self, login: Login) -> None:
        """A decided login could not be recorded: it gets no answer, and is as if it had not been."""
        self._lockouts.take_back(login)


def _no_code() -> bool:
    """No code may stand behind the password."""
    return False
