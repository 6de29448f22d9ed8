"""The checks of client certificates: their tenant, their names, their revocation, and the scope of their authority."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sallyport.areas.authorities.authority import Authority
from sallyport.areas.directory.principals import NOBODY
from sallyport.areas.domains.domain import CertificateNames, Domain
from sallyport.areas.login.eap.holders import Holder, contradiction, holder_of, is_outside
from sallyport.areas.login.eap.login import EapLogin
from sallyport.areas.login.eap.revocation import NOT_CHECKED, ChecksRevocation, refusal_of
from sallyport.areas.login.eap.verifiers import Finding
from sallyport.areas.login.identity import all_groups
from sallyport.areas.login.login import Login, Reason
from sallyport.radius.eap.model import Certificate, Question


class ClientCertificates:
    """The client certificates of all domains. tenant_of: `EapServer.certificate_tenant`. authorities, revocation: as in
    `EapServer`."""

    def __init__(
        self,
        tenant_of: Callable[[str], int | None],
        authorities: Callable[[int], Sequence[Authority]],
        revocation: ChecksRevocation,
    ) -> None:
        self._tenant_of = tenant_of
        self._authorities = authorities
        self._revocation = revocation

    def trusts(self, domain: Domain, stamp: str) -> bool:
        """Return whether the authority with which a certificate was checked is still one of the domain, unchanged.
        stamp: `EapResult.authority`; empty if no authority of the domain was needed."""
        return not stamp or any(each.stamp == stamp for each in self._authorities(domain.id))

    def holder(self, domain: Domain, question: Certificate) -> Holder:
        """Return the holder whom a certificate of the domain's own authorities names."""
        strong = domain.certificate_names is CertificateNames.STRONG
        return holder_of(question, self._authorities(domain.id), demands_strong=strong)

    def note(self, login: Login, eap: EapLogin) -> str:
        """Note that a certificate of an authority of the domain was accepted, and return the stamp of the authority.
        Return an empty text if no such authority was needed."""
        holder = eap.holder
        if holder is None or holder.authority is None or login.domain is None:
            return ""
        self._revocation.noted(eap.chain, holder.authority, login.domain.id, login.user, eap.revocation)
        return holder.authority.stamp

    def refusal(self, domain: Domain, eap: EapLogin, question: Certificate) -> Finding | None:
        """Return why a certificate is refused, whatever its user is. Return None if it may be accepted."""
        if self._tenant_of(question.fingerprint) not in {None, domain.tenant_id}:
            return Finding(Reason.CERTIFICATE_REFUSED, detail="the certificate was issued for another tenant")
        holder = eap.holder
        if holder is None:
            accepts_weak = domain.certificate_names is not CertificateNames.STRONG
            return None if accepts_weak else Finding(Reason.NO_STRONG_NAME)
        if holder.authority is None or holder.refusal is not Reason.NONE:
            return Finding(holder.refusal, detail=holder.detail)
        reason = refusal_of(eap.revocation, holder.authority)
        return None if reason is Reason.NONE else Finding(reason)

    def knows_revocation(self, eap: EapLogin, question: Question) -> bool:
        """Store the state of a client certificate if it is known without asking. Return False if it must be asked for.
        Nothing is asked about a certificate that is refused anyway."""
        holder = eap.holder
        if holder is None or holder.authority is None or holder.refusal is not Reason.NONE:
            return True
        if not isinstance(question, Certificate) or eap.revocation is not NOT_CHECKED:
            return True
        state = self._revocation.known(question.chain, holder.authority)
        eap.revocation, eap.chain = state or NOT_CHECKED, question.chain
        return state is not None

    async def ask_for_revocation(self, eap: EapLogin, question: Question) -> None:
        """Store the state of a client certificate after lists or a responder were asked."""
        if isinstance(question, Certificate) and eap.holder is not None and eap.holder.authority is not None:
            eap.revocation = await self._revocation.state(question.chain, eap.holder.authority)

    def in_scope(self, login: Login, eap: EapLogin, finding: Finding) -> Finding:
        """Return a finding about the user of a certificate, or the refusal if the authority of the certificate may not
        speak for this user."""
        holder = eap.holder
        if holder is None or finding.reason is not Reason.NONE:
            return finding
        imported = login.imported or NOBODY
        if detail := contradiction(holder, finding.account):
            return Finding(Reason.CERTIFICATE_REFUSED, detail=detail)
        if is_outside(holder, login.user, all_groups(finding.found.groups, imported.groups), finding.account):
            return Finding(Reason.MAY_NOT_SPEAK)
        return finding
