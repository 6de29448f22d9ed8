"""Check MS-CHAP logins by winbind."""

from __future__ import annotations

import re
from typing import Final

import structlog

from sallyport.areas.login.first.checker import Tell, silent
from sallyport.areas.login.first.winbind import texts
from sallyport.areas.login.first.winbind.helpers import Helpers, Unanswered
from sallyport.areas.login.first.winbind.protocol import Question
from sallyport.areas.login.login import Reason
from sallyport.radius.mschap import MsChap1, MsChap2, peer_names

_COMPUTER: Final = re.compile(r"host/([^./@\\]+)(\..*)?", re.IGNORECASE)

log = structlog.get_logger()


class Winbind:
    """The checker of MS-CHAP logins of one domain. domain: the name of the domain in this service. nt_domain: the name
    of the Active Directory domain; if it is empty, it is the domain that the host has joined."""

    def __init__(self, helpers: Helpers, domain: str, nt_domain: str) -> None:
        self._helpers = helpers
        self._domain = domain
        self._nt_domain = nt_domain
        self._trouble = ""

    async def ask(self, account: str, attempt: MsChap1 | MsChap2, name: bytes, tell: Tell) -> bytes | Reason:
        """Check an MS-CHAP response. Return the hash of the password's NT hash (16 octets), or the reason for a
        refusal.

        name: the user name with which the client has computed its response.
        """
        tell(f"winbind is asked about {account}")
        question = Question(account, self._nt_domain, attempt.nt_challenge(name), attempt.response)
        try:
            answer = await self._helpers.ask(question)
        except Unanswered as error:
            return await self._unreachable(str(error), tell)
        if answer.key is not None:
            self._trouble = ""
            tell("the domain controller confirms the response")
            return answer.key
        reason = texts.why_refused(answer.error)
        if reason is Reason.FIRST_FACTOR_UNREACHABLE:
            return await self._unreachable(answer.error, tell)
        self._trouble = ""
        tell(_joined(answer.error, texts.remedy_of(answer.error)))
        return reason

    async def _unreachable(self, trouble: str, tell: Tell) -> Reason:
        """Report an error with its remedy to `tell`, and to the log if it is a new error."""
        is_new, self._trouble = trouble != self._trouble, trouble
        if is_new or tell is not silent:
            told = _joined(trouble, await self._remedy(trouble))
            tell(told)
            if is_new:
                log.warning("winbind_unavailable", domain=self._domain, error=told)
        return Reason.FIRST_FACTOR_UNREACHABLE

    async def _remedy(self, trouble: str) -> str:
        if not texts.is_silence(trouble):
            return texts.remedy_of(trouble) or texts.CHECK_MEMBERSHIP
        is_running = await self._helpers.ping()
        if is_running is None:
            return f"either {texts.NOT_RUNNING}; or {texts.NO_PIPE}"
        return texts.NO_PIPE if is_running else texts.NOT_RUNNING


def hashed_name(user_name: bytes) -> bytes:
    r"""Return the user name with which a client computes its MS-CHAP response: without `DOMAIN\`, but with a `@realm`.

    RFC 2759 section 4 requires this spelling, and Windows, wpa_supplicant and macOS use it. Other spellings are not
    tried, because Active Directory would count each try as a wrong password.
    """
    return peer_names(user_name)[0]


def account_name(user: str) -> str:
    """Return the account name for a user's name. For a Windows computer, the user's name is host/NAME.DOMAIN, and the
    account name is NAME$."""
    computer = _COMPUTER.fullmatch(user)
    return f"{computer[1]}$" if computer else user


def _joined(text: str, remedy: str) -> str:
    return f"{text.rstrip('.')}; {remedy}" if remedy else text
