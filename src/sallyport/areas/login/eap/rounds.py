"""Continue EAP conversations. At the end of a conversation, decide its login with the steps of the pipeline.

`EapRounds` uses the pipeline, which knows nothing of it. The listener calls `converse` for a login by EAP that
`Pipeline.begin` did not decide.
"""

from __future__ import annotations

from functools import partial

from sallyport.areas.domains.domain import LOCAL, MONITOR, RULES, Domain
from sallyport.areas.login.decision import ROUND, decide_in
from sallyport.areas.login.eap.holders import AUTHORITY_CHANGED
from sallyport.areas.login.eap.login import EapResult, InnerSecondFactor, OpenQuestion
from sallyport.areas.login.eap.service import SERVED, Eap, EapServer
from sallyport.areas.login.eap.verifiers import Station
from sallyport.areas.login.first.cloud import is_cloud
from sallyport.areas.login.login import PASSED, Decision, Login, Reason, Verdict
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.second.conversation import SecondFactorResult
from sallyport.areas.login.second.session import Asked, Session
from sallyport.areas.login.second_step import SecondStep
from sallyport.areas.mfa.provider import Code
from sallyport.areas.policy.rules.rule import Action
from sallyport.areas.users.service import MISSING, Missing
from sallyport.areas.users.user import User
from sallyport.radius.attributes import STATE
from sallyport.radius.password import Method


class EapRounds:
    """The logins by EAP that this service handles itself. steps: the pipeline, with rules, lock-outs and second
    factors. server: what the service needs as the server of EAP."""

    def __init__(self, steps: Pipeline, server: EapServer) -> None:
        self._steps, self._second_step = steps, SecondStep(steps)
        self._eap = Eap(steps, server, self._ask_inside, now=steps.now)
        self.forget_certificates = self._eap.methods.forget

    def converse(self, login: Login) -> Decision | None:
        """Continue the EAP conversation of a login, and return the decision. Raises PacketError if the request does not
        answer the last challenge.

        Return None if this service does not handle the login's EAP itself, or if the caller must await
        `login.continuation`.
        """
        domain = login.domain
        if domain is None or self._steps.names_challenge(login) is not None or not self.serves(login, domain):
            return None
        if domain.unknown_stations is RULES:
            self._note_unknown(login, domain)
        if STATE not in login.arrival.request.first and not self._eap.methods.is_prepared(login, domain):
            login.continuation = partial(self._prepare, login, domain)
            return None
        # the first round of a conversation decides whether a station is admitted by its address
        station = None if STATE in login.arrival.request.first else self.station(login, domain)
        result = self._eap.receive(login, domain, station)
        if isinstance(result, OpenQuestion):
            login.continuation = partial(self._answer, login, domain, result)
            return None
        if result is None:
            return ROUND
        user: User | Missing | None = None
        login.cloud = result.stamp if is_cloud(result.stamp) else ""
        if result.first is PASSED and domain.first_factor is LOCAL and not (result.by_address or login.cloud):
            user = self._steps.users.cached(domain.id, login.user)
        if result.second is not None or user is MISSING or not self._steps.recalled(login, domain):
            login.continuation = partial(self._conclude, login, domain, result)
            return None
        return self._come_to(login, domain, result, user)

    async def _prepare(self, login: Login, domain: Domain) -> Decision | None:
        """Begin a conversation after the TLS contexts for the domain's authorities were made."""
        await self._eap.methods.prepare(login, domain)
        decision = self.converse(login)
        continuation, login.continuation = login.continuation, None
        return decision if continuation is None else await continuation()

    def station(self, login: Login, domain: Domain) -> Station | None:
        """Return a verifier of the station's MAC address, or None if the domain does not admit it by address."""
        key = self._steps.bypass.requested_by_eap(login.arrival, login.method, domain)
        if not key:
            return None
        word = login.arrival.client.mac_password
        return Station(key, None if word is None else word.reveal())

    def _note_unknown(self, login: Login, domain: Domain) -> None:
        """Keep a station that may be invented out of the inventory, from the first round on."""
        bypass = self._steps.bypass
        key = bypass.requested_by_eap(login.arrival, login.method, domain)
        if key and bypass.entry(domain.id, key, login.arrival.at) is None:
            self._steps.note(login, is_unknown=True)

    def serves(self, login: Login, domain: Domain) -> bool:
        """Return whether this service itself handles the EAP conversation of a login."""
        is_by_eap = login.method == Method.EAP
        return is_by_eap and (
            domain.first_factor in SERVED or self._steps.stations.may_be_admitted_by_eap(login, domain)
        )

    async def _answer(self, login: Login, domain: Domain, question: OpenQuestion) -> Decision | None:
        result = await self._eap.answer(login, domain, question)
        return ROUND if result is None else await self._conclude(login, domain, result)

    async def _conclude(self, login: Login, domain: Domain, result: EapResult) -> Decision | None:
        try:
            return await self._conclude_once(login, domain, result)
        except BaseException:
            if result.ending is not None:
                result.ending.reopen()  # this request gets no answer
            raise

    async def _conclude_once(self, login: Login, domain: Domain, result: EapResult) -> Decision | None:
        await self._steps.recall(login, domain)
        if result.second is not None and result.refusal is None:
            fresh = self._steps.refresh(login, domain)
            login.proven = True
            self._steps.note(login)
            second = SecondFactorResult(result.second, asked=Asked(0, result.stamp), proof=result.proof)
            decision = await self._second_step.decide_afresh(login, domain, second, answers_challenge=False)
            return self._steps.settle(login, fresh, decision)
        login.cloud = result.stamp if is_cloud(result.stamp) else ""
        is_ours = result.first is PASSED and domain.first_factor is LOCAL and not login.cloud
        user = await self._steps.user(domain, login.user) if is_ours else None
        return self._come_to(login, domain, result, user)

    def _come_to(self, login: Login, domain: Domain, result: EapResult, user: User | None) -> Decision | None:
        """Decide a login at the end of its EAP conversation.

        user: the endpoint user as stored now, or None. An admin may have changed the user during the conversation.
        """
        fresh = self._steps.refresh(login, domain)
        if result.by_address:
            return self._steps.decide_station(login, fresh)
        if result.refusal is not None:
            login.rule = result.rule
            return self._steps.settle(login, fresh, result.refusal)
        first, login.detail = result.first, result.detail or login.detail
        if first is PASSED:
            steps, stamp = self._steps, result.stamp
            if login.cloud:
                first = steps.same_account(login, fresh, stamp)
            elif domain.first_factor is LOCAL:
                first = steps.same_user(login, user, stamp)
            else:
                first = steps.same_factor(fresh, stamp)
            if not self._eap.certificates.trusts(fresh, result.authority):
                first, login.detail = Reason.CERTIFICATE_REFUSED, AUTHORITY_CHANGED
        decision = self._steps.settle(login, fresh, self._steps.judge(login, fresh, first))
        if decision is None and result.ending is not None:
            result.ending.asks = True
        return decision

    async def _ask_inside(
        self, login: Login, domain: Domain, session: Session | None, code: Code
    ) -> InnerSecondFactor | None:
        """Ask for the second factor inside EAP, if the login needs one. The login has passed its first factor.

        session: the challenge that `code` answers, or None at the first call. Return None if this request was replaced
        by a newer request of the same login. Another node may have received the newer request.
        """
        await self._steps.recall(login, domain)
        fresh = self._steps.refresh(login, domain)
        if session is not None:
            self._steps.note(login)
            result = await self._steps.second.resume(login, session.id, session.step, code)
        elif fresh.applied_mode is MONITOR or self._steps.judge(login, fresh, PASSED) is not None:
            return InnerSecondFactor()
        else:
            result = await self._second_step.ask_user(login, domain)
        if result is None or not await self._steps.second.consume(result):
            return None
        login.detail = result.detail
        await self._steps.remembered.keep(login, fresh, result)
        if result.session is not None and result.reason is not Reason.ASKED_AGAIN:
            return InnerSecondFactor(session=result.session, prompt=result.text)
        # A wrong code ends the login. Each further try is then a new login, which counts towards the lock-out.
        reason = Reason.WRONG_CODE if result.reason is Reason.ASKED_AGAIN else result.reason
        decision = decide_in(fresh, PASSED, Action.MFA_REQUIRED, reason)
        refusal = None if decision.applied is Verdict.ACCEPT else decision
        return InnerSecondFactor(reason, refusal, proof=result.proof)
