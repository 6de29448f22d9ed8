"""The step of the second factor: ask the user, then decide again."""

from dataclasses import dataclass

from sallyport.areas.clients.client import is_check
from sallyport.areas.domains.domain import LOCAL, WEB, Domain, FirstFactor
from sallyport.areas.login.decision import decide_in, refuse
from sallyport.areas.login.first import web
from sallyport.areas.login.first.password import check_vouched, typed_code
from sallyport.areas.login.login import PASSED, Decision, Login, Reason, Verdict
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.remembered import FACTOR
from sallyport.areas.login.second.conversation import SecondFactorResult
from sallyport.areas.login.second.session import Asked
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.provider import ENROL, Strength
from sallyport.areas.policy.rules.rule import MFA_REQUIRED, UNMATCHED
from sallyport.radius.attributes import EAP_MESSAGE


@dataclass(frozen=True, slots=True)
class SecondStep:
    """The second factor of logins that have passed the earlier steps."""

    _steps: Pipeline

    async def ask(self, login: Login) -> Decision | None:
        """Wait for the second factor, then decide by the current user, rules and mode. Return None if a newer request
        of the same login has replaced this request. Raises StoreError, SecretError, PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        await self._steps.recall(login, domain)
        challenge = self._steps.names_challenge(login)
        if self._steps.lockouts.has_failures and self._steps.lockouts.repeats(login.attempt(domain)):
            return self._steps.settle(login, domain, refuse(Reason.WRONG_CODE, domain))
        if challenge is None:
            result = await self.ask_user(login, domain)
        else:
            login.outside = False  # only the user that got the challenge can answer it
            self._steps.refresh(login, domain)
            result = await self._steps.second.resume(login, *challenge, typed_code(login.arrival, login.method))
        if result is None:
            return None
        decision = await self.decide_afresh(login, domain, result, answers_challenge=challenge is not None)
        settled = self._steps.settle(login, domain, decision)
        if settled is not None and settled.admits:
            await self._steps.remembered.keep(login, domain, result)
        return settled

    async def ask_user(self, login: Login, domain: Domain) -> SecondFactorResult | None:
        """Ask the user for the second factor that the login rule demands. At a remembered station, the user is not
        asked. If no factor of the user is as strong, send no prompt, and return a refusal. Return None if a newer
        request of the same login has replaced this request. Raises StoreError, SecretError."""
        asked = await self.user_to_ask(login, domain)
        fresh, rule = self._steps.refresh(login, domain), login.rule
        demanded, provider = Strength.ANY if rule is None else rule.definition.strength, login.provider
        remembered = await self._steps.remembered.find(login, fresh, asked, demanded)
        if remembered is not None:
            return remembered
        if rule is not None and demanded is not Strength.ANY and isinstance(provider, Attached):
            is_too_weak = await self._steps.second.enrolments.is_too_weak(provider, login.principal, demanded)
            if is_too_weak:
                detail = f"no factor of the user is {demanded}, as rule {rule.id} demands"
                return SecondFactorResult(Reason.NOT_STRONG_ENOUGH, asked=asked, detail=detail)
        return await self._steps.second.ask(login, self._steps.refresh(login, domain), asked)

    async def user_to_ask(self, login: Login, domain: Domain) -> Asked:
        """Return the user to ask for a second factor, with the stamps that must be unchanged when the user has
        answered. Raises StoreError, SecretError."""
        if domain.first_factor is WEB:
            return Asked(0, web.stamp_of(login.imported), domain.factor)
        if domain.first_factor is not LOCAL:
            return Asked(0, self._steps.first.stamp(domain), domain.factor)
        user = await self._steps.user(domain, login.user)
        return Asked(0, "", domain.factor) if user is None else Asked(user.id, user.stamp, domain.factor)

    async def decide_afresh(
        self, login: Login, domain: Domain, result: SecondFactorResult, *, answers_challenge: bool
    ) -> Decision:
        """Decide a login after its second factor, by the current user, rules and mode. The checked password must still
        be valid."""
        login.rule = login.role = None  # the rules are read again
        if result.reason is Reason.CHALLENGE_OVER:
            return refuse(result.reason, domain)
        remembered = result.proof.remembered
        login.approved = result.reason is PASSED and not remembered
        login.detail = result.detail or remembered or result.proof.detail
        if remembered:
            login.factor = f"{domain.factor}+{FACTOR}"
        before, domain = domain, self._steps.refresh(login, domain)
        if domain.first_factor is not before.first_factor:
            return refuse(Reason.FIRST_FACTOR_CHANGED, domain)
        if answers_challenge:
            login.found = result.found
            if not is_check(login.arrival.request):
                login.device.posture.count_answer(login.arrival.at)
            first = await self._is_same_user(login, domain, result)
            # A correct code proves that the sender is the user; an empty answer proves nothing.
            login.proven = result.reason is PASSED and login.code is not None
        elif login.cloud or domain.first_factor is WEB:
            await self._steps.recall(login, domain)
            first = self._steps.same_account(login, domain, login.cloud or result.asked.stamp)
        elif domain.first_factor is LOCAL:
            had_code = login.code is not None
            user = await self._steps.user(domain, login.user)
            if EAP_MESSAGE in login.arrival.request.first:
                first = self._steps.same_user(login, user, result.asked.stamp)
            else:
                first = self._steps.check_password(login, domain, user, lambda: had_code)
        else:  # the directory or other server is asked only once for each login
            first = self._steps.same_factor(domain, result.asked.stamp)
        await self._steps.recall(login, domain)
        action = self._steps.apply_rules(login, domain) if first is PASSED else UNMATCHED
        second = _proved(login, domain, result) if action is MFA_REQUIRED else result.reason
        decision = decide_in(domain, first, action, second)
        if decision.applied is Verdict.CHALLENGE:
            # with the first factor `web`, others than the user start logins, and never answer
            is_uncounted = domain.first_factor is WEB or is_check(login.arrival.request)
            is_link = result.session is not None and result.session.handle == ENROL
            if not (is_link or is_uncounted):
                login.device.posture.count_challenge(login.arrival.at)
            login.attributes = self._steps.second.challenges.attributes(result)
        login.keep = self._steps.second.keep(result)
        return decision

    async def _is_same_user(self, login: Login, domain: Domain, result: SecondFactorResult) -> Reason:
        """Return PASSED if the user who answers a challenge is the user who got it, and the password is unchanged.
        Otherwise return the reason for a refusal."""
        if result.asked.factor != domain.factor:
            return Reason.FIRST_FACTOR_CHANGED
        if domain.first_factor is FirstFactor.NONE:
            return check_vouched(login.arrival)
        if domain.first_factor is WEB:
            await self._steps.recall(login, domain)  # the login may have waited
            return self._steps.same_account(login, domain, result.asked.stamp)
        if domain.first_factor is not LOCAL:
            return self._steps.same_factor(domain, result.asked.stamp)
        user = await self._steps.user(domain, login.user)
        if user is None or user.id != result.asked.user_id:
            return Reason.UNKNOWN_USER
        return self._steps.same_user(login, user, result.asked.stamp)


def _unconfirmed(login: Login, result: SecondFactorResult) -> str:
    """Return why no identity provider has confirmed a user whose password nobody has checked, or an empty text. The
    providers and the rules may have changed since the user was asked."""
    provider, proof = login.provider, result.proof
    if not isinstance(provider, Attached) or provider.name != proof.provider or proof.remembered:
        return "no identity provider was asked"
    return provider.provider.web_problem


def _proved(login: Login, domain: Domain, result: SecondFactorResult) -> Reason:
    """Return the result of the second factor by the login rule that decides now. An approval is refused if it is weaker
    than the rule demands, or if another provider has given it: the rules may have changed since the user was asked."""
    rule, proof = login.rule, result.proof
    if result.reason is PASSED and domain.first_factor is WEB and (problem := _unconfirmed(login, result)):
        login.detail = problem
        return Reason.NOT_CONFIRMED
    if result.reason is not PASSED or rule is None:
        return result.reason
    demanded = rule.definition
    if demanded.provider and proof.provider != demanded.provider:
        login.detail = f"rule {rule.id} demands {demanded.provider}; the user has answered {proof.provider}"
        return Reason.CHALLENGE_OVER
    if proof.strength < demanded.strength:
        login.detail = f"the answer is {proof.strength}, rule {rule.id} demands {demanded.strength}"
        return Reason.NOT_STRONG_ENOUGH
    return PASSED
