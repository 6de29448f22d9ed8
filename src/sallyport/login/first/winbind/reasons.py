"""What ntlm_auth says of a login that is refused: a sentence, without the number of its NTSTATUS.

The sentences are those of MS-ERREF section 2.3.1; Samba before 4.6 had shorter ones, and a status without a sentence
comes by its name. So each reason has the words that only its own have.
"""

import re
from typing import Final

from sallyport.login.login import Reason

NO_WINBIND: Final = re.compile("winbind", re.IGNORECASE)
"""What winbind itself did not answer: it does not run, or its privileged pipe may not be used."""

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


def why_refused(text: str) -> Reason:
    """The reason in a text; FIRST_FACTOR_UNREACHABLE where it is none of the user's."""
    found = (reason for words, reason in _REASONS if words.search(text))
    return next(found, Reason.FIRST_FACTOR_UNREACHABLE)
