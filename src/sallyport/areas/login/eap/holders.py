"""Whose certificate it is: the authority that has signed it, the name of its holder, and the scope of the authority."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sallyport.areas.authorities.authority import HolderKind
from sallyport.areas.login.identity import split_realm
from sallyport.areas.login.login import PASSED, Reason
from sallyport.areas.policy.rules.facts import AccountKind, kind_of
from sallyport.base.text import fold, folded
from sallyport.radius.eap.certificate import UNREADABLE, UserNames
from sallyport.radius.eap.certificate_names import STRONG, NamedBy

if TYPE_CHECKING:
    from cryptography import x509

    from sallyport.areas.authorities.authority import Authority
    from sallyport.areas.login.first.checker import DirectoryAccount
    from sallyport.radius.eap.model import Certificate

WITH_REALM: Final = frozenset({NamedBy.UPN, NamedBy.MAIL, NamedBy.DNS, NamedBy.COMMON_NAME})
"""The fields whose value may contain a realm. All others identify a user by themselves."""
AUTHORITY_CHANGED: Final = "the authority of the certificate was removed from the domain, or changed, during the login"
_MAX_DETAIL: Final = 500
"""Maximum length of a detail."""
_SID: Final = UserNames((NamedBy.SID,))


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a certificate of one of the domain's own authorities.

    authority: the authority to which the anchor of the verified chain belongs; None if the domain does not trust it any
    more. name, by: the value of the certificate that names the holder, and its field; the name is empty if the
    certificate has none of the authority's fields. sid: the security identifier in the certificate, or empty. refusal:
    why the certificate is refused, whatever the user is; PASSED if it may be accepted. detail: the refusal in words.
    """

    authority: Authority | None
    name: str = ""
    by: NamedBy = NamedBy.COMMON_NAME
    sid: str = ""
    refusal: Reason = PASSED
    detail: str = ""


def holder_of(question: Certificate, authorities: Sequence[Authority], *, demands_strong: bool = False) -> Holder:
    """Return the holder of a certificate. authorities: those of the domain now. demands_strong: whether the domain
    accepts only strong names."""
    found = next((each for each in authorities if question.anchor in each.keys), None)
    certificate = question.certificate
    if found is None or certificate is None:
        return _refused(found, AUTHORITY_CHANGED)
    if question.is_revoked:
        return _refused(found, "a revocation list of the installation has a certificate of the chain")
    try:
        name, by, sid = _named(certificate, found, demands_strong=demands_strong)
    except UNREADABLE as error:
        return _refused(found, f"the certificate cannot be read: {error}")
    if not name:
        fields = ", ".join(found.names)
        is_weak = demands_strong or found.strong_only
        reason = Reason.NO_STRONG_NAME if is_weak else Reason.CERTIFICATE_REFUSED
        return _refused(found, f"the certificate has none of the authority's names: {fields}", reason)
    return Holder(found, name, by, sid)


def _refused(authority: Authority | None, detail: str, reason: Reason = Reason.CERTIFICATE_REFUSED) -> Holder:
    return Holder(authority, refusal=reason, detail=detail[:_MAX_DETAIL])


def _named(certificate: x509.Certificate, authority: Authority, *, demands_strong: bool) -> tuple[str, NamedBy, str]:
    order = authority.names
    if demands_strong or authority.strong_only:
        order = tuple(each for each in order if each in STRONG)
    named = UserNames(order).of(certificate)
    return named.name, named.by, _SID.of(certificate).name


def is_outside(holder: Holder, user: str, groups: frozenset[str] | None, account: DirectoryAccount | None) -> bool:
    """Return whether the authority may not speak for the user that a certificate names.

    The account of the directory counts before the certificate: an authority can write any name. user: the name without
    its realm. groups: the case-folded groups, or None if they are unknown. account: None if no directory was asked.
    """
    authority = holder.authority
    if authority is None or not _kinds(holder, user, account) <= set(authority.kinds):
        return True
    if authority.realms and not _realms(holder, account) <= folded(authority.realms):
        return True
    if authority.groups and (groups is None or folded(authority.groups).isdisjoint(groups)):
        return True
    sid = account.sid if account is not None else ""
    return bool(authority.sid_prefixes) and not any(_begins(sid, each) for each in authority.sid_prefixes)


def contradiction(holder: Holder, account: DirectoryAccount | None) -> str:
    """Return how a certificate names another account than the one that was found. Return an empty text if it does not.

    If the certificate has a security identifier, it must be that of the account: the name may have been given to
    another person meanwhile (KB5014754). If the principal name names the holder, it must be the whole one of the
    account: the part before the realm may be the login name of another person.
    """
    if account is None:
        return ""
    if holder.sid and account.sid and holder.sid != account.sid:
        return f"the certificate has the SID {holder.sid}, and the account has the SID {account.sid}"[:_MAX_DETAIL]
    if holder.by is NamedBy.UPN and account.upn and fold(holder.name) != fold(account.upn):
        return f"the certificate has the UPN {holder.name}, and the account has the UPN {account.upn}"[:_MAX_DETAIL]
    return ""


def _kinds(holder: Holder, user: str, account: DirectoryAccount | None) -> Set[HolderKind]:
    """Return the kinds of holders for which an authority must speak to name this one.

    Without an account, the form of the user's name decides. A host name that has not the form of a machine's name may
    be the name of a person, such as `ann.lee`. So the authority must speak for both kinds.
    """
    is_machine = kind_of(user if account is None else account.name) is AccountKind.MACHINE
    if is_machine or (account is not None and account.is_machine):
        return {HolderKind.MACHINES}
    if account is None and holder.by is NamedBy.DNS:
        return {HolderKind.PEOPLE, HolderKind.MACHINES}
    return {HolderKind.PEOPLE}


def _realms(holder: Holder, account: DirectoryAccount | None) -> frozenset[str]:
    """Return the case-folded realms of a holder: that of the name in the certificate, and that of the account. A holder
    without a realm has the empty realm, which is in no scope."""
    found = {split_realm(account.upn)[1]} if account is not None and account.upn else set[str]()
    if holder.by is NamedBy.DNS:
        found.add(holder.name.partition(".")[2])
    elif holder.by in WITH_REALM and ("@" in holder.name or "\\" in holder.name):
        found.add(split_realm(holder.name)[1])
    return folded(found or {""})


def _begins(sid: str, prefix: str) -> bool:
    return sid == prefix or sid.startswith(f"{prefix}-")
