"""One MS-CHAP login: from its response to a Reason, and to the keys of its answer."""

from __future__ import annotations

import re
from typing import Final

import structlog

from sallyport.login.first.checker import Tell
from sallyport.login.first.password import attempt_of, let_in
from sallyport.login.first.winbind.helpers import Helpers, Unanswered
from sallyport.login.first.winbind.protocol import Question
from sallyport.login.login import Login, Reason
from sallyport.radius.attributes import USER_NAME
from sallyport.radius.mschap import MsChap1, MsChap2, peer_names

NO_WINBIND: Final = re.compile("winbind", re.IGNORECASE)
"""Errors of winbind itself: it does not run, or its privileged pipe may not be used."""

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
_COMPUTER: Final = re.compile(r"host/([^./@\\]+)(\..*)?", re.IGNORECASE)
_HINT: Final = "; is winbindd running, and is the service's user in the group winbindd_priv?"

log = structlog.get_logger()


class Winbind:
    """MS-CHAP logins of one domain. domain: the service's name for it. nt_domain: its name in Active Directory; empty
    for the one that the host has joined."""

    def __init__(self, helpers: Helpers, domain: str, nt_domain: str) -> None:
        self._helpers = helpers
        self._domain = domain
        self._nt_domain = nt_domain
        self._trouble = ""

    async def check(self, login: Login, tell: Tell) -> Reason:
        """Check the response; if it is right, `login.found` has the attributes of the answer. A failure of the other
        end is a reason, never an exception."""
        attempt = attempt_of(login)
        if isinstance(attempt, Reason):
            return attempt
        name = hashed_name(login.request.first[USER_NAME])
        key = await self.ask(account_name(login.user), attempt, name, tell)
        if isinstance(key, Reason):
            return key
        let_in(login, attempt, key, name)
        return Reason.NONE

    async def ask(self, account: str, attempt: MsChap1 | MsChap2, name: bytes, tell: Tell) -> bytes | Reason:
        """The hash of the NT hash of an account's password, 16 octets, where it made the response; else why not.

        name: the octets that the client hashed as its name.
        """
        tell(f"winbind is asked about {account}")
        question = Question(account, self._nt_domain, attempt.nt_challenge(name), attempt.response)
        try:
            answer = await self._helpers.ask(question)
        except Unanswered as error:
            return self._unreachable(str(error), tell)
        if answer.key is not None:
            self._trouble = ""
            tell("the domain controller finds the response right")
            return answer.key
        reason = why_refused(answer.error)
        if reason is Reason.FIRST_FACTOR_UNREACHABLE:
            return self._unreachable(answer.error + (_HINT if NO_WINBIND.search(answer.error) else ""), tell)
        self._trouble = ""
        tell(answer.error)
        return reason

    def _unreachable(self, trouble: str, tell: Tell) -> Reason:
        """Told to the log once, until it changes."""
        tell(trouble)
        if trouble != self._trouble:
            log.warning("winbind_unavailable", domain=self._domain, error=trouble)
        self._trouble = trouble
        return Reason.FIRST_FACTOR_UNREACHABLE


def hashed_name(user_name: bytes) -> bytes:
    r"""Return the octets that a client most likely hashed as its name: the name without `DOMAIN\`, with a `@realm` as
    it was typed (RFC 2759 section 4; Windows, wpa_supplicant and macOS do so). Each further guess would be one more
    wrong password to Active Directory."""
    return peer_names(user_name)[0]


def account_name(user: str) -> str:
    """The account of a user's name: a Windows computer logs in as host/NAME.DOMAIN, and its account is NAME$."""
    computer = _COMPUTER.fullmatch(user)
    return f"{computer[1]}$" if computer else user


def why_refused(text: str) -> Reason:
    """The reason in a text; FIRST_FACTOR_UNREACHABLE where it is none of the user's."""
    found = (reason for words, reason in _REASONS if words.search(text))
    return next(found, Reason.FIRST_FACTOR_UNREACHABLE)
