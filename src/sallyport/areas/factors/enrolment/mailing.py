"""Send the queued mails with enrolment links. Domains take turns, so that a large group of one delays no other."""

import secrets
from collections.abc import Callable
from typing import Final, Protocol

import structlog
import trio

from sallyport.areas.domains.domain import Domain
from sallyport.areas.factors.enrolment import repo
from sallyport.areas.factors.enrolment.link import LINK_OCTETS, LinkState
from sallyport.base.clock import Clock, iso
from sallyport.base.errors import Conflict, Refused, SallyportError
from sallyport.base.secret import token_hash
from sallyport.store.model import Store, Tx

ROUND_S: Final = 5.0
"""Time between two looks at the queue, in seconds."""
A_TURN: Final = 10
"""Number of mails of a domain before the next domain takes its turn."""
NOT_SENT: Final = "the mail server of the installation has not accepted the mail; its log has the reason"
OFF: Final = "the service sends no mail: set smtp_host and smtp_from, or hand over links"
SUBJECT: Final = "Add your second factor"
_TEXT: Final = """Hello {user},

please add a second factor for your logins at {domain}. Open this link, and type your password there:

{link}

The link works once, until {until}. If you did not expect this mail, do not open the link, and tell your administrator.
"""

log = structlog.get_logger()


class SendsMail(Protocol):
    """The mail of the service, see `outgoing.mail`."""

    @property
    def is_on(self) -> bool:
        """Whether the settings name an SMTP server."""

    def send(self, tenant_id: int, to: str, subject: str, text: str) -> None:
        """Send a mail soon, and at most once. Raises Conflict, Invalid, TooMany."""

    async def deliver(self, tenant_id: int, to: str, subject: str, text: str) -> None:
        """Send a mail now. Raises Conflict, Invalid, ProviderError."""


class Mailing:
    """The queue of mails with enrolment links.

    store: the store of the node with the lease. link_to: returns the address of a link. domain_of: returns a domain
    that exists. life_us: the time for which a link is valid, in microseconds.
    """

    def __init__(
        self,
        store: Store,
        mails: SendsMail,
        link_to: Callable[[str], str],
        domain_of: Callable[[int], Domain],
        clock: Clock,
        *,
        life_us: int,
    ) -> None:
        self._store = store
        self._mails = mails
        self._link_to = link_to
        self._domain_of = domain_of
        self._clock = clock
        self.life_us = life_us

    def check(self) -> None:
        """Raise Conflict if the settings allow no mail."""
        if not self._mails.is_on:
            raise Conflict(OFF)

    async def run(self) -> None:
        """Send mails until cancelled."""
        while True:
            try:
                sent = self._mails.is_on and await self.send_some()
            except SallyportError as error:
                log.warning("enrolment_mails_failed", error=str(error))
                sent = False
            if not sent:
                await trio.sleep(ROUND_S)

    async def send_some(self) -> bool:
        """Send up to A_TURN mails of each domain. Return whether a mail was sent."""
        domains = await self._store.read(repo.domains_with_mails)
        sent = False
        for domain_id in domains:
            for _ in range(A_TURN):
                if not await self._send_next(domain_id):
                    break
                sent = True
        return sent

    async def _send_next(self, domain_id: int) -> bool:
        """Send the next mail of a domain. Return False if there is none, or if it was not sent."""
        secret, at = secrets.token_urlsafe(LINK_OCTETS), self._clock()
        hashed, until = token_hash(secret), at + self.life_us
        mail = await self._store.write(lambda tx: repo.next_mail(tx, domain_id, hashed, at, until))
        if mail is None:
            return False
        state, problem = LinkState.SENT, ""
        try:
            domain = self._domain_of(domain_id)
            text = _TEXT.format(user=mail.user_name, domain=domain.name, link=self._link_to(secret), until=iso(until))
            await self._mails.deliver(domain.tenant_id, mail.address, SUBJECT, text)
        except SallyportError as error:
            state, problem = LinkState.FAILED, str(error) if isinstance(error, Refused) else NOT_SENT
            log.warning("enrolment_mail_failed", domain_id=domain_id, user=mail.user_name, error=str(error))

        def finish(tx: Tx) -> None:
            repo.finish_mail(tx, mail.id, hashed, state, problem)

        await self._store.write(finish)
        return state is LinkState.SENT
