"""The operations about shadow logins: record what another server has decided, compare, delete."""

from collections import Counter

import trio

from sallyport.areas.domains.domain import MONITOR, Domain, FirstFactor
from sallyport.areas.domains.service import Domains
from sallyport.areas.preview.tally import TimeSlice
from sallyport.areas.shadow.attributes import ShadowAttributes
from sallyport.areas.shadow.bodies import (
    CompareShadowLogins,
    DeleteShadowLogins,
    OldServerLogin,
    RecordShadowLogins,
    ShadowComparison,
    ShadowLoginsDeleted,
    ShadowLoginsRecorded,
)
from sallyport.areas.shadow.repo import Filter, NewShadow
from sallyport.areas.shadow.report import ShadowReport, Wanted, most_differing
from sallyport.areas.shadow.service import ShadowLogins
from sallyport.areas.shadow.shadow_login import Comparison, Kind, OldAnswer
from sallyport.base.answer import answers
from sallyport.base.clock import iso
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: ShadowLogins, attributes: ShadowAttributes, domains: Domains, gate: Gate) -> Operations:
    shadow = Operations("Shadow mode", gate)

    @shadow.post("/ad/RecordShadowLogins", roles=OPERATORS)
    async def record_shadow_logins(body: RecordShadowLogins, caller: Caller) -> ShadowLoginsRecorded:
        """Record logins that another server has decided, to compare its decisions with those of this service.

        They are no logins of this service. A login that is recorded again adds nothing. `sallyport shadow report` reads
        the logs of NPS, FreeRADIUS and Cisco ISE. A tenant has at most 200,000 shadow logins, the newest; they are
        deleted after 30 days.
        """
        found, time_slice = list[NewShadow](), TimeSlice()
        for each in body.logins:
            found.append(shadow_of(each, attributes))
            await time_slice()
        recorded = await service.record(body.domainId, found)
        return ShadowLoginsRecorded(message=f"{counted(recorded, 'login')} recorded", recorded=recorded)

    @shadow.post("/ad/CompareShadowLogins", roles=READERS)
    async def compare_shadow_logins(body: CompareShadowLogins, caller: Caller) -> Plain[ShadowComparison]:
        """Decide the shadow logins of a domain by its current rules, and compare with the answers of the other server.

        Enforce mode is assumed. The result of the first factor is that of the other server: nothing is asked, and
        nothing is counted. With `device`, the answer shows what changes for one NAS.
        """
        wanted = Wanted(body.result, body.reason, body.rule, body.oldReason, body.oldPolicy, body.cases)
        covered = Filter(body.device, body.user)
        generation = await service.generation(body.domainId)
        answer = service.last.find(body.domainId, (covered, wanted), generation) if body.kept else None
        if answer is None:
            at = service.now()
            found = await service.report(body.domainId, covered, wanted)
            domain = domains.table.present(body.domainId)
            report = await trio.to_thread.run_sync(_report, found, domain)  # sorts up to 50,000 users
            answer = {**report, "decidedAt": iso(at)}
            asked, is_new = (covered, wanted), not body.kept
            service.last.keep(domain.id, asked, answer, domain.tenant_id, generation, is_new=is_new)
        return Plain(answer)

    @shadow.post("/ad/DeleteShadowLogins", roles=OPERATORS)
    async def delete_shadow_logins(body: DeleteShadowLogins, caller: Caller) -> ShadowLoginsDeleted:
        """Delete all shadow logins of a domain."""
        deleted = await service.clear(body.domainId)
        return ShadowLoginsDeleted(message=f"{counted(deleted, 'shadow login')} deleted", deleted=deleted)

    return shadow


def shadow_of(login: OldServerLogin, attributes: ShadowAttributes) -> NewShadow:
    """Return a login of another server as it is recorded."""
    facts = attributes.of_texts(login.attributes)
    return NewShadow(
        at=login.at,
        kind=Kind.LOG,
        client=login.client or facts.nas,
        user_name=login.user,
        station=facts.station,
        nas=facts.nas or login.client,
        method=login.method,
        attributes=facts.octets,
        answer=OldAnswer(login.answer),
        cause=login.cause,
        reason=login.reason,
        policy=login.policy,
        place=login.place,
        replies=None if login.replyAttributes is None else attributes.replies(login.replyAttributes),
    )


def _report(report: ShadowReport, domain: Domain) -> Row:
    groups: list[JSON] = [
        {
            "result": result.value,
            "reason": reason,
            "rule": rule,
            "oldReason": old_reason,
            "oldPolicy": old_policy,
            "logins": group.logins,
            "users": len(group.users),
            "devices": len(group.devices),
            "lastSeen": iso(group.last_at),
            "examples": [*answers(group.examples)],
        }
        for (result, reason, rule, old_reason, old_policy), group in report.ordered_groups()
    ]
    return {
        "logins": report.logins,
        "differing": report.differing,
        "counts": _counts(report.counts),
        "groups": groups,
        "users": [{"name": name, **_counts(counts)} for name, counts in most_differing(report.users)],
        "devices": [{"name": name, **_counts(counts)} for name, counts in most_differing(report.devices)],
        "cases": [*answers(report.cases)],
        "since": iso(report.first_at) if report.logins else "",
        "until": iso(report.last_at) if report.logins else "",
        "warnings": _warnings(report, domain),
    }


def _counts(counts: Counter[Comparison]) -> dict[str, JSON]:
    return {each.value: counts[each] for each in Comparison}


def _warnings(report: ShadowReport, domain: Domain) -> list[JSON]:
    found = list[JSON]()
    if domain.mode is MONITOR:
        found.append(
            "the domain is in monitor mode, in which rules block no login: the report shows the decisions of "
            "enforce mode"
        )
    if domain.first_factor is FirstFactor.LDAP and report.hashed:
        found.append(
            f"{counted(report.hashed, 'login')} by MS-CHAP or CHAP: the first factor ldap checks MS-CHAP only through "
            "winbind, and CHAP not at all"
        )
    if not report.is_whole:
        found.append("there are too many users, NAS or causes to count all of them apart")
    return found
