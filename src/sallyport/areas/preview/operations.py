"""The HTTP operations of previews: /ad/PreviewEnforcement, /ad/CheckEnrolments and /ad/TestLoginRules."""

from sallyport.areas.domains.bodies import Impact, Survey
from sallyport.areas.domains.domain import MONITOR
from sallyport.areas.login.limit import explained
from sallyport.areas.mfa.provider import Strength
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.policy.rules.translation import Translation
from sallyport.areas.preview.bodies import (
    CheckEnrolments,
    LoginRulesTested,
    OpenPrompt,
    PreviewEnforcement,
    ReadRule,
    TestLoginRules,
)
from sallyport.areas.preview.rule_test import Question, RuleTest, RuleTestResult
from sallyport.areas.preview.service import Preview
from sallyport.base.clock import Clock, iso
from sallyport.base.validation import moment
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(
    service: Preview, tests: RuleTest, translation: Translation, gate: Gate, clock: Clock
) -> list[Operations]:
    previews, rules = Operations("Domains", gate), Operations("Login rules", gate)

    @previews.post("/ad/PreviewEnforcement", roles=READERS)
    async def preview_enforcement(body: PreviewEnforcement, caller: Caller) -> Impact:
        """Preview the impact of enforce mode on a domain: the users and devices of its recent logins, and the outcomes.

        The logins of the last `days` are decided again by the current rules, provider and fallback action, or by the
        given `fallbackAction`. With `rule`, they are decided as if that rule were stored. Only logins that have passed
        their first factor are used. The outcome `unknown` depends on an enrolment that is not known. At most 1,000
        users and 1,000 devices are listed, the worst outcomes first. `counts` includes all of them. `rules` shows which
        rules decide the logins.
        """
        return await service.impact(
            body.domainId, days=body.days, fallback=body.fallbackAction, proposed=body.rule, pairs=body.pairs
        )

    @previews.post("/ad/CheckEnrolments", roles=OPERATORS)
    async def check_enrolments(body: CheckEnrolments, caller: Caller) -> Survey:
        """Ask the MFA providers which users of recent logins are enrolled. No prompt is sent.

        A user is looked up at each provider that the login rules choose for the user's logins. A request takes at most
        10 seconds, and keeps the providers' rate limits. Repeat it until `left` is 0.
        PreviewEnforcement and requireClean use the results for an hour.
        """
        return await service.survey(body.domainId, days=body.days, again=body.again)

    @rules.post("/ad/TestLoginRules", roles=READERS)
    async def test_login_rules(body: TestLoginRules, caller: Caller) -> LoginRulesTested:
        """Return the login rule that decides a hypothetical login, and why each rule before it does not decide.

        The steps of a real login are run as for a correct password, with the user's known groups and the device's known
        product. Nothing is stored, and no prompt is sent. The MFA provider is asked about the enrolments of at most 10
        users a minute.
        """
        types = translation.service_types([body.serviceType]) if body.serviceType else []
        media = translation.media([body.medium]) if body.medium else []
        given = {
            each.fact: translation.fact(each, values)
            for each in CONDITIONS
            if each.asked and (values := body.values(each))
        }
        asked = Question(
            user=body.user,
            at=moment("at", body.at, clock()),
            client=body.client,
            nas=body.nas,
            nas_identifier=body.nasIdentifier,
            station=body.station,
            medium=media[0] if media else "",
            service_type=types[0] if types else None,
            groups=body.groups,
            ous=body.ous,
            given=given,
            unsigned=body.unsigned,
        )
        answer = await tests.run(body.domainId, asked)
        return _tested(answer, translation.shown(answer.attributes).splitlines())

    return [previews, rules]


def _tested(answer: RuleTestResult, attributes: list[str]) -> LoginRulesTested:
    role = answer.role
    domain, decision, rule = answer.domain, answer.decision, answer.rule
    parallel = answer.parallel
    name = "no rule matches" if rule is None else f"rule {rule.id} decides"
    return LoginRulesTested(
        message=f"{name}: {answer.action.value}",
        domainName=domain.name,
        user=answer.user,
        rules=[
            ReadRule(
                position=position,
                ruleId=each.rule.id,
                name=each.rule.name,
                action=each.rule.action,
                result=each.result,
                scope=each.scope,
                has=each.has,
            )
            for position, each in enumerate(answer.rules, 1)
        ],
        ruleId=None if rule is None else rule.id,
        action=answer.action,
        bypass=answer.bypass,
        lockedOut=answer.locked_out,
        firstFactor=domain.factor,
        firstFactorReason=answer.first.value,
        secondFactor=answer.provider,
        strength=Strength.ANY if rule is None else rule.definition.strength,
        secondFactorReason=answer.second.value,
        enforcementMode=domain.mode.value,
        fallbackAction=domain.fallback.value,
        decision=decision.decision.value,
        appliedDecision=decision.applied.value,
        reason=decision.reason.value,
        openPrompts=[
            OpenPrompt(
                kind=each.kind.value,
                device=each.question.device,
                source=each.question.source,
                station=each.question.station,
                expiresAt=iso(each.expires_at),
            )
            for each in answer.prompts
        ],
        warnings=list(answer.warnings),
        role="" if role is None else role.name,
        roleSource="" if role is None else role.source,
        attributes=attributes,
        maxSessions=0 if rule is None else rule.definition.max_sessions,
        parallelSessions=parallel.count if parallel is not None and parallel.is_applied else None,
        sessionLimit="" if parallel is None else explained(parallel, is_monitored=domain.applied_mode is MONITOR),
    )
