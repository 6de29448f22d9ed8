"""The factor `mail` on the step-up page: a code that the service sends to the person's mail address.

A mailbox is often behind the same password as the login, and a code can be passed on. So a code by mail is the weakest
factor, and a domain must name it (`--factors`). The code is a keyed hash of the step-up, so nothing is stored, and a
second mail has the same code. The code proves one login, in the browser that has opened its page.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Final

from sallyport.areas.factors.enrolment.mailing import SendsMail
from sallyport.areas.factors.pages.factor import MAX_CODE, WrongCode
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.stepup.service import StepUps
from sallyport.areas.factors.stepup.stepup import MAX_CODE_MAILS, Shown
from sallyport.areas.mfa.provider import Code, Strength
from sallyport.base.clock import iso_seconds
from sallyport.base.errors import Conflict, TooMany
from sallyport.store.vault import Vault
from sallyport.web.people.visit import PeopleVisit

DIGITS: Final = 6
MAX_SHOWN: Final = 80
"""Maximum length of a text from a packet in a mail, in characters."""
SUBJECT: Final = "Code for your login"
NOT_SENT: Final = "no code was sent for this login: send one first"
_NOT_PLAIN: Final = re.compile(r"[^\w-]+")
"""What a mail reader could take for a part of an address, or for markup."""

Address = Callable[[Person], Awaitable[str]]
"""A function that returns the mail address of a person, or an empty text."""


class MailFactor:
    """A code by mail. address: see `Address`."""

    name: ClassVar[str] = "mail"
    template: ClassVar[str] = "mfa_mail.html"
    is_guessable: ClassVar[bool] = False  # the form that sends the mail is no try; `check` counts the others

    def __init__(self, mails: SendsMail, address: Address, stepups: StepUps, vault: Vault) -> None:
        self._mails = mails
        self._address = address
        self._stepups = stepups
        self._vault = vault

    async def has(self, person: Person) -> bool:
        """Return whether the service sends mail, and has the address of the person. Raises StoreError."""
        return self._mails.is_on and bool(await self._address(person))

    async def offer(self, stepup: Shown, visit: PeopleVisit) -> Mapping[str, object]:
        """Return whether a code was sent, and the address without most of its characters."""
        address = await self._address(stepup.person)
        sent = stepup.code_mails
        return {"address": masked(address), "is_sent": sent > 0, "may_send": sent < MAX_CODE_MAILS}

    async def check(self, stepup: Shown, visit: PeopleVisit) -> Strength | None:
        """Send the code, or check it. Return None if the code was sent."""
        if "send" in visit.fields:
            await self._send(stepup, visit)
            return None
        if not stepup.code_mails:
            raise Conflict(NOT_SENT)
        if not await self._stepups.take_try(stepup.id, visit.browser):
            return None
        if not Code(visit.fields.get("answer", "")[:MAX_CODE].strip()).matches(self._code(stepup)):
            raise WrongCode("This code is wrong.")
        return Strength.ANY

    async def _send(self, stepup: Shown, visit: PeopleVisit) -> None:
        address = await self._address(stepup.person)
        if not address:
            raise Conflict("the directory has no mail address of yours")
        if not await self._stepups.take_mail(stepup.id, visit.browser):
            raise TooMany("too many mails were sent: look into your mail, or choose another factor")
        at = _NOT_PLAIN.sub(" ", stepup.device).strip()[:MAX_SHOWN] or stepup.source
        text = (
            f"{self._code(stepup)} is the code for your login of {iso_seconds(stepup.opened_at)} at {at}.\n\n"
            "Type it only on the page that you have opened yourself. Tell it to nobody.\n\n"
            "You have not started this login? Then somebody knows your password: tell your administrator.\n"
        )
        self._mails.send(stepup.tenant_id, address, SUBJECT, text)

    def _code(self, stepup: Shown) -> str:
        number = int(self._vault.digest(stepup.id.encode(), "stepups/mail"), 16)
        return f"{number % 10**DIGITS:0{DIGITS}}"


def masked(address: str) -> str:
    """Return an address of which a stranger learns little: `a…@example.com`."""
    name, at, domain = address.rpartition("@")
    return f"{name[:1]}…{at}{domain}"
