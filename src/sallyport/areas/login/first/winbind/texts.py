"""Map the error texts of winbind to reasons and remedies.

Samba uses the texts that MS-ERREF section 2.3.1 gives for NTSTATUS codes. Older versions of Samba use other texts, or
the name of the code.
"""

import re
from typing import Final

from sallyport.areas.login.login import Reason

_WORDS: Final = (
    # WRONG_PASSWORD, LOGON_FAILURE
    (r"current password is not correct|attempted logon is invalid|wrong.password|logon.failure", Reason.WRONG_PASSWORD),
    (r"account does not exist|no.such.user", Reason.UNKNOWN_USER),
    (r"automatically locked|account.locked.out", Reason.ACCOUNT_LOCKED),
    (r"currently disabled|account.disabled", Reason.ACCOUNT_DISABLED),
    (r"account has expired|account.expired", Reason.ACCOUNT_EXPIRED),
    (r"password has expired|password.expired", Reason.PASSWORD_EXPIRED),
    (r"password must be changed|must.change", Reason.PASSWORD_MUST_CHANGE),
    # INVALID_LOGON_HOURS, INVALID_WORKSTATION, ACCOUNT_RESTRICTION, LOGON_TYPE_NOT_GRANTED
    (r"time restrictions|logon.hours|source workstation|invalid.workstation|account.restriction|type of logon",
     Reason.LOGON_RESTRICTED),
)  # fmt: skip
_REASONS: Final = tuple((re.compile(words, re.IGNORECASE), reason) for words, reason in _WORDS)

NOT_RUNNING: Final = (
    "winbindd is not running: start it with `systemctl start winbind`; if it ends again, this host has not joined the"
    " domain: `net ads join -U Administrator`"
)
NO_PIPE: Final = (
    "winbindd is running, and the service may not use its pipe: add the service's user to the group winbindd_priv, and"
    " restart the service"
)
CHECK_MEMBERSHIP: Final = "check this host's membership as root with `wbinfo -t`"
_REMEDIES: Final = tuple(
    (re.compile(words, re.IGNORECASE), remedy)
    for words, remedy in (
        (r"client not authorized", NO_PIPE),
        (r"cannot be run", "install Samba's winbind, or set `ntlm_auth` to the path of the program"),
        # ACCESS_DENIED, CANT_ACCESS_DOMAIN_INFO, NO_TRUST_LSA_SECRET, NO_TRUST_SAM_ACCOUNT,
        # TRUSTED_RELATIONSHIP_FAILURE
        (
            r"access.denied|access has been denied|cant.access.domain|trust secret|this workstation|no.trust|"
            r"trusted.relationship",
            "the domain does not accept this host's computer account: check it as root with `wbinfo -t`, and join "
            "again with `net ads join -U Administrator`",
        ),
        # NO_LOGON_SERVERS, DOMAIN_CONTROLLER_NOT_FOUND, IO_TIMEOUT, and errors of the network
        (
            r"no.logon.servers|domain controller for this domain was not found|controller.not.found|time-?out|"
            r"not reachable|unreachable|network.path|refused by the remote|connection.refused",
            "no domain controller answers: check the network, firewalls, and the name servers of this host",
        ),
        (
            r"time at the primary domain controller|time.difference|clock skew",
            "the clocks of this host and the domain differ by more than 5 minutes: synchronize this host with the "
            "domain's time server",
        ),
        (r"domain did not exist|no.such.domain", "check winbindDomain, and the known domains with `wbinfo -m`"),
        (
            r"ntlm was blocked|ntlm.blocked",
            "the domain controllers refuse NTLM: on them, allow MS-CHAPv2 for this host",
        ),
        (
            r"attempted logon is invalid|logon.failure",
            "the user's password is not right, or the domain does not know this host: check as root with `wbinfo -t`",
        ),
        (r"current password is not correct|wrong.password", "winbind works: the user's password is not right"),
        (r"account does not exist|no.such.user", "winbind works: check the name, and winbindDomain if it is set"),
    )
)
_SILENCE: Final = re.compile("winbind reply failed", re.IGNORECASE)


def why_refused(text: str) -> Reason:
    """Return the reason for an error text. Return FIRST_FACTOR_UNREACHABLE if the user is not the cause."""
    found = (reason for words, reason in _REASONS if words.search(text))
    return next(found, Reason.FIRST_FACTOR_UNREACHABLE)


def remedy_of(text: str) -> str:
    """Return the remedy for an error text, or an empty text if none is known."""
    return next((remedy for words, remedy in _REMEDIES if words.search(text)), "")


def is_silence(text: str) -> bool:
    """Return whether an error text means that winbindd has not answered. Then winbindd is not running, or the service
    may not use its privileged pipe."""
    return _SILENCE.search(text) is not None
