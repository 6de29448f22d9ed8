"""Mail that brings the address of a page to a person whose login waits at its device."""

from typing import Final

import structlog

from sallyport.areas.factors.enrolment import people_repo
from sallyport.areas.factors.stepup import repo
from sallyport.areas.factors.stepup.stepup import StepUp
from sallyport.areas.mfa.host import StepUpState
from sallyport.base.errors import Refused
from sallyport.outgoing.mail import Mail
from sallyport.store import audit
from sallyport.store.model import Store, Tx

SUBJECT: Final = "Your login waits for you"
TEXT: Final = """A login with your name and your password waits for your second factor.
Open this page within two minutes:

{}

If you are not logging in, your password is known to others: change it. Open the page, and choose "This is not me". If
the two minutes are over, tell your administrator.
"""

log = structlog.get_logger()


class PageMail:
    """Sends the addresses of pages. mail: the mail of the service, or None if there is none.

    The mail has no text of the request, because an attacker could choose it.
    """

    def __init__(self, store: Store, mail: Mail | None) -> None:
        self._store = store
        self.mail = mail

    @property
    def is_on(self) -> bool:
        """Whether the settings allow mail."""
        return self.mail is not None and self.mail.is_on

    async def send(self, stepup: StepUp, address: str) -> bool:
        """Send the address of a page to its person, unless it was sent before. Return False if the directories know no
        mail address of the person, or if the mail is refused. Raises StoreError.

        The mail is noted after it is sent. So after a crash between both, the login that asks again sends it again.
        """
        if stepup.page_mails or stepup.state is not StepUpState.OPEN:
            return True
        person = stepup.person

        def query(tx: Tx) -> tuple[str, int]:
            to = people_repo.email_of(tx, person.domain_id, person.key) if repo.may_mail(tx, stepup) else ""
            return to, audit.share_of(tx, person.domain_id)

        to, tenant_id = await self._store.read(query)
        if not to or self.mail is None:
            return False
        try:
            self.mail.send(tenant_id, to, SUBJECT, TEXT.format(address))
        except Refused as error:
            log.warning("stepup_not_mailed", domain_id=person.domain_id, user=person.name, error=str(error))
            return False
        await self._store.write(lambda tx: repo.note_page_mail(tx, stepup.id))
        return True
