"""Decide whether a person that exists only in a cloud directory may log in with a client certificate.

Such a person has no password here. The certificate names an account of Entra ID or Okta that was imported, and the
account must be active. A directory that was not read for a long time may have disabled the account meanwhile. So the
domain sets how old the data may be, and whether older data refuse the login.
"""

from typing import Final

from sallyport.areas.directory.entry.entry import MAX_NAME_LENGTH
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.principals import CloudAccount, CloudState
from sallyport.areas.domains.domain import Domain, Fallback
from sallyport.areas.login.first.checker import DirectoryAccount
from sallyport.areas.login.login import PASSED, Reason
from sallyport.areas.policy.rules.facts import AccountKind, kind_of
from sallyport.base.clock import SECOND
from sallyport.base.text import fold
from sallyport.radius.eap.certificate import UNREADABLE, UserNames
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.eap.model import Certificate
from sallyport.radius.packet import as_name

_STAMP: Final = "cloud/"
_SID: Final = UserNames((NamedBy.SID,))
HOUR_US: Final = 3600 * SECOND
_MAX_AHEAD_US: Final = 600 * SECOND
"""How far the time of a reading may be in the future, because the clocks of two nodes differ a little."""
_REASONS: Final = {
    Status.ACTIVE: PASSED,
    Status.DISABLED: Reason.ACCOUNT_DISABLED,
    Status.EXPIRED: Reason.ACCOUNT_EXPIRED,
    Status.LOCKED: Reason.ACCOUNT_LOCKED,
}
_KINDS: Final = {
    NamedBy.SID: "sid",
    NamedBy.OBJECT_ID: "id",
    NamedBy.UPN: "upn",
    NamedBy.MAIL: "mail",
    NamedBy.COMMON_NAME: "upn",
    NamedBy.SERIAL: "serial",
    NamedBy.DNS: "dns",
}


def identifier_of(question: Certificate, domain: Domain) -> str:
    """Return the identifier of a cloud account that a client certificate names, as `imports.lines.identifiers_of`
    writes it. Entra ID knows a device by its host name without a realm. Return an empty text for a host name with a
    realm of another domain, and for a name that is too long."""
    name = as_name(question.user)
    if len(name) > MAX_NAME_LENGTH:
        return ""
    name = fold(name)
    if question.by is NamedBy.DNS:
        name, _, realm = name.partition(".")
        if realm and realm not in domain.realm_keys:
            return ""
    return f"{_KINDS[question.by]}:{name}"


def directory_account(account: CloudAccount, question: Certificate) -> DirectoryAccount:
    """Return an account for the check of an authority's scope. An account may have a security identifier of Entra ID
    and one of Active Directory. The one in the certificate counts, and otherwise that of Active Directory."""
    try:
        named = "" if question.certificate is None else _SID.of(question.certificate).name
    except UNREADABLE:
        named = ""
    sid = named if named in account.sids else next(reversed(account.sids), "")
    upn = account.name if "@" in account.name else ""
    return DirectoryAccount(account.user, sid, upn, kind_of(account.user) is AccountKind.MACHINE)


def stamp_of(state: CloudState) -> str:
    """Return the stamp of a login of a cloud account. The same user name may later belong to another account."""
    return f"{_STAMP}{state.person_id}"


def is_cloud(stamp: str) -> bool:
    """Return whether a stamp is one of a cloud account."""
    return stamp.startswith(_STAMP)


def oldest(domain: Domain, at: int) -> int:
    """Return the time in microseconds at which a directory must have been read, so that its data are not too old for a
    domain. at: the present time."""
    return at - domain.directory_max_age_h * HOUR_US


def reason_of(state: CloudState, domain: Domain, at: int) -> Reason:
    """Return PASSED if an account may log in now, or the reason for a refusal. at: the time in microseconds."""
    reason = reason_of_status(state)
    if reason is PASSED and _is_old(state, domain, at) and domain.stale_directory is not Fallback.ALLOW:
        return Reason.DIRECTORY_STALE
    return reason


def reason_of_status(state: CloudState) -> Reason:
    """Return PASSED if an account is active, or the reason for a refusal. The age of the data does not matter."""
    return _REASONS[Status(state.status)]


def _is_old(state: CloudState, domain: Domain, at: int) -> bool:
    """Return whether the data of a directory are too old. A time in the future comes from a wrong clock. It says
    nothing about the age of the data, so they count as old."""
    return not oldest(domain, at) <= state.read_at <= at + _MAX_AHEAD_US


def note_of(state: CloudState, domain: Domain, at: int) -> str:
    """Return a note for the event of a login that was checked by old data, or an empty text. at: the time in
    microseconds."""
    if not _is_old(state, domain, at):
        return ""
    if not state.read_at:
        return "the directory was never read"
    if state.read_at > at:
        return "the directory was read at a time in the future, so the age of its data is unknown"
    return f"the data of the directory are {(at - state.read_at) // HOUR_US} hours old"
