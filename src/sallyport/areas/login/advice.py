"""The reasons of logins in words: the step at which the login ended, the meaning, and what an admin can do.

The console shows them beside a login. A test checks that each reason has an entry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sallyport.areas.login.login import Reason


class Step(StrEnum):
    """The steps of a login, in their order."""

    DOMAIN = "domain"
    FIRST = "first factor"
    RULE = "login rules"
    SECOND = "second factor"


@dataclass(frozen=True, slots=True)
class Advice:
    """A reason in words. step: the step at which the login ended. meaning: a sentence about the cause. remedy: a
    sentence about the next step of an admin; empty if there is none."""

    step: Step
    meaning: str
    remedy: str = ""


def _of(step: Step, entries: Mapping[Reason, tuple[str, str]]) -> dict[Reason, Advice]:
    return {reason: Advice(step, *texts) for reason, texts in entries.items()}


_EAP: Final = "Let the supplicant trust the authority of this service, and use the name in its certificate."
ADVICE: Final[Mapping[Reason, Advice]] = {
    **_of(
        Step.DOMAIN,
        {
            Reason.UNKNOWN_REALM: (
                "The user name has a realm that belongs to none of the RADIUS client's domains.",
                "Add the realm to the domain, or add the domain to the RADIUS client.",
            ),
            Reason.NO_USER_NAME: (
                "The user is unknown: the request has no user name, or the RADIUS server of the first factor does not "
                "name the user inside EAP.",
                "Check what the device sends as User-Name. For a hidden outer identity, let the supplicant use PEAP, "
                "TTLS or TLS. Let the server put the inner user into its Access-Accept, and set namesInnerUser.",
            ),
            Reason.NO_DOMAIN: (
                "The RADIUS client has no domain, so no domain can check the login.",
                "Set a domain for the RADIUS client.",
            ),
            Reason.DOMAIN_REMOVED: ("The domain was removed while the login was checked.", ""),
        },
    ),
    **_of(
        Step.FIRST,
        {
            Reason.WRONG_PASSWORD: (
                "The password does not match.",
                "If the user is sure of the password, look for an old one that the device has stored.",
            ),
            Reason.WRONG_PASSWORD_OR_SECRET: (
                "The password cannot be read or does not match. The request is not signed, so the shared secret may be "
                "wrong.",
                "If all users of this device fail, enter the shared secret at the device again.",
            ),
            Reason.UNKNOWN_USER: (
                "The domain's first factor does not know this user.",
                "Check the spelling, the domain of the RADIUS client, and the directory or the endpoint users of the "
                "domain.",
            ),
            Reason.UNKNOWN_STATION: (
                "The MAC address is not on the list of the domain, and no login rule admits unknown stations here.",
                "Add the station to MAC bypass, or add an allow rule with the kind unknown and a VLAN or role.",
            ),
            Reason.NO_CREDENTIALS: (
                "The request has no password and no other credentials that can be checked.",
                "Choose PAP, MS-CHAPv2 or an EAP method at the device; for devices without users, add a MAC bypass.",
            ),
            Reason.FIRST_FACTOR_UNAVAILABLE: (
                "The domain's first factor is not configured.",
                "Set the first factor of the domain.",
            ),
            Reason.FIRST_FACTOR_UNREADABLE: (
                "The stored configuration of the first factor cannot be opened.",
                "Check the master key with sallyport doctor, or set the first factor again.",
            ),
            Reason.FIRST_FACTOR_CHANGED: (
                "An admin changed the first factor while the login was checked.",
                "The next attempt uses the new one.",
            ),
            Reason.FIRST_FACTOR_UNREACHABLE: (
                "The directory or the upstream server did not answer.",
                "Test the first factor of the domain; check its address, its certificate and the setting egress.",
            ),
            Reason.DIRECTORY_ENTRY_TOO_LARGE: (
                "The user's entry or its groups in the directory exceed the limit.",
                "Reduce the memberships of the user.",
            ),
            Reason.ACCOUNT_UNCLEAR: (
                "Several accounts of the domain's directories have the name in the certificate.",
                "Remove one of the accounts, or let certificates have a name that only one account has.",
            ),
            Reason.DIRECTORY_STALE: (
                "The directory of the user was not read for longer than the domain allows.",
                "See why the directory is not read: sallyport directory jobs. The domain sets the longest age.",
            ),
            Reason.CHANGES_PASSWORD: (
                "The device asks to change the password, which this service does not do.",
                "Let the user change the password elsewhere.",
            ),
            Reason.METHOD_UNFIT: (
                "The domain's first factor cannot check this kind of login.",
                "Use PAP, EAP-TTLS-PAP or PEAP-GTC for LDAP, or winbind or an upstream server for MS-CHAPv2. With the "
                "first factor web, use PAP.",
            ),
            Reason.UNCHECKED_UNSIGNED: (
                "With the first factor web, no password proves the request, so that it must be signed.",
                "Turn on Message-Authenticator at the device.",
            ),
            Reason.MAY_NOT_VOUCH: (
                "The RADIUS client says that it has checked the password, but it may not.",
                "If the client is a server that checks passwords, set passwordVerified for it.",
            ),
            Reason.VOUCHES_UNSIGNED: (
                "A client that checks passwords itself must sign its requests.",
                "Turn on Message-Authenticator at the client.",
            ),
            Reason.ACCOUNT_LOCKED: ("The directory has locked the account.", "Unlock it in the directory."),
            Reason.ACCOUNT_DISABLED: ("The account is disabled.", "Enable it in the directory or the endpoint users."),
            Reason.ACCOUNT_EXPIRED: ("The account has expired.", "Extend it in the directory."),
            Reason.PASSWORD_EXPIRED: ("The password has expired.", "Let the user change it."),
            Reason.PASSWORD_MUST_CHANGE: ("The user must change the password first.", "Let the user change it."),
            Reason.LOGON_RESTRICTED: (
                "The directory allows the account only at certain times or on certain stations.",
                "Change the restriction in the directory.",
            ),
            Reason.LOCKED_OUT: (
                "The user has failed too often, so even the right password is refused for a while.",
                "Find the device with the old password, then unlock the user.",
            ),
            Reason.STATION_LOCKED_OUT: (
                "Logins from the station have failed too often, so it is refused for a while, whatever the user.",
                "Find the old password on the station, then unlock the station.",
            ),
            Reason.REFUSED_UPSTREAM: (
                "The upstream server has refused the login.",
                "Look for the login in the log of the upstream server.",
            ),
            Reason.NO_SERVER_CERTIFICATE: (
                "The client wants EAP in TLS, and this service has no certificate.",
                "Make one with sallyport cert init.",
            ),
            Reason.METHOD_NOT_OFFERED: (
                "The client wants an EAP method that this service does not offer.",
                "Choose PEAP, TTLS or TLS in the supplicant.",
            ),
            Reason.SERVER_UNTRUSTED: ("The client does not trust the certificate of this service.", _EAP),
            Reason.CERTIFICATE_REFUSED: (
                "The client's certificate was not accepted: unknown issuer, expired, revoked, or not that of the "
                "account. The detail of the login says which.",
                "Issue a new certificate with sallyport cert issue, or check the authorities in eap_ca. If the domain "
                "has authorities of its own, only these are trusted: sallyport authority list.",
            ),
            Reason.MAY_NOT_SPEAK: (
                "The certificate is valid, but the scope of its authority does not contain this user.",
                "Compare the user with the authority's scope: kinds, realms, groups and SID prefixes, see sallyport "
                "authority show. If the authority must not name this user, ask its owner who got the certificate.",
            ),
            Reason.CERTIFICATE_REVOKED: (
                "The authority of the client certificate has revoked it.",
                "Give the user or the device a new certificate, if it may log in again.",
            ),
            Reason.REVOCATION_UNKNOWN: (
                "Neither a valid revocation list nor a responder says whether the client certificate is revoked, and "
                "its authority has the mode hard.",
                "Look at the lists: sallyport authority lists. The login shows what was asked, and the errors.",
            ),
            Reason.NO_STRONG_NAME: (
                "Only strong names are accepted, and the certificate has none: neither a SID nor an object id.",
                "Let the authority write the SID into certificates, or accept weak names: sallyport authority set.",
            ),
            Reason.TLS_FAILED: ("TLS with the client failed.", _EAP),
            Reason.EAP_BROKEN: ("The client does not keep to EAP.", "Update the supplicant or the access point."),
            Reason.PROXY_LOOP: (
                "The upstream server sends the login back to this service.",
                "Remove this service from the upstream server's proxies for the realm.",
            ),
        },
    ),
    **_of(
        Step.RULE,
        {
            Reason.BLOCKED: ("A login rule blocks this login.", "See which rule decides, and change it or its order."),
            Reason.TOO_MANY_SESSIONS: (
                "The user has as many parallel sessions as the login rule allows.",
                "See the user's live sessions. End one, or raise the limit of the rule.",
            ),
        },
    ),
    **_of(
        Step.SECOND,
        {
            Reason.ASKED: ("The user was asked for the second factor.", ""),
            Reason.ENROLMENT_UNKNOWN: (
                "It is not known yet whether the user has a second factor.",
                "Nothing to do: the service looks it up. The preview of enforcement shows the result.",
            ),
            Reason.DENIED: (
                "The user denied the prompt.",
                "If the user did not log in, somebody else has the password: change it.",
            ),
            Reason.UNBOUND_LOGIN: (
                "The proof of the second factor is not bound to this login: the browser has another address than the "
                "station, or the device sends no address that can be compared in a signed request.",
                "If the user did not log in, somebody else has the password: change it. Otherwise use the binding "
                "`code`, or let the device sign its requests and send the address of the station.",
            ),
            Reason.NOT_CONFIRMED: (
                "The first factor is web, and the MFA provider cannot confirm a user whose password nobody has "
                "checked. The detail of the login says why.",
                "Set the MFA provider own with the factor oidc alone, the binding code or address, and userIs "
                "directory_id.",
            ),
            Reason.CODE_NOT_RETURNED: (
                "The binding `code` needs a prompt at which the user types the digits of the page. This kind of login "
                "has no such prompt.",
                "Use PAP at the device, or set the binding `address` or `unbound` for this domain.",
            ),
            Reason.NOT_ME: (
                "The user says that somebody else has started this login, or another login at the same time.",
                "Somebody else has the password: change it, and then unlock the user.",
            ),
            Reason.ASKED_AGAIN: (
                "The code does not match, and the user was asked for another one.",
                "Nothing to do if the next code is right. Otherwise check the clock of the user's phone.",
            ),
            Reason.WRONG_CODE: (
                "The code does not match.",
                "Check the clock of the user's phone; enrol the user again if all codes fail.",
            ),
            Reason.NOT_ENROLLED: (
                "The user has no second factor.",
                "Enrol the user: in enforce mode, the login of a user without a second factor is refused.",
            ),
            Reason.NOT_STRONG_ENOUGH: (
                "The login rule demands a stronger second factor than the user has, or than the user has proved.",
                "Enrol the user with a stronger factor, such as a passkey, or change the rule.",
            ),
            Reason.TAKES_NO_CODE: (
                "This kind of login has no place for a code.",
                "Use a provider with push, or PAP at the device.",
            ),
            Reason.NOT_ANSWERED: ("The user did not answer the prompt in time.", "Let the user try again."),
            Reason.GIVES_UP: (
                "The device waits for a shorter time than the user needs to answer.",
                "Raise the RADIUS timeout of the device to 60 seconds.",
            ),
            Reason.TOO_MANY_PROMPTS: (
                "The user has too many open or recent prompts, or gets none now: after “not me”, or without answers.",
                "If the user did not log in so often, somebody else has the password: change it. The page of the user "
                "shows until when no prompt is sent.",
            ),
            Reason.TOO_MANY_CODES: ("The provider takes no more codes for now.", "Let the user wait for a minute."),
            Reason.CHALLENGE_OVER: (
                "The code answers a challenge that has ended, or that belongs to another login.",
                "Let the user log in again.",
            ),
            Reason.NO_PROVIDER: ("The domain has no MFA provider.", "Set an MFA provider for the domain."),
            Reason.UNREACHABLE: (
                "The MFA provider did not answer, so the domain's fallback decided.",
                "Check the provider on the page of the domain.",
            ),
            Reason.RATE_LIMITED: (
                "The MFA provider limits the rate of requests, so the domain's fallback decided.",
                "Ask the provider for a higher limit.",
            ),
            Reason.CIRCUIT_OPEN: (
                "The MFA provider failed several times and was not asked, so the domain's fallback decided.",
                "Check the provider on the page of the domain.",
            ),
            Reason.UNREADABLE: (
                "The stored configuration of the provider cannot be opened.",
                "Check the master key with sallyport doctor, or set the provider again.",
            ),
            Reason.STOPPED: (
                "The service stopped while the user was asked.",
                "Let the user try again. A higher drain_s gives users more time.",
            ),
        },
    ),
}
"""The advice for each reason of a login that did not simply pass."""
