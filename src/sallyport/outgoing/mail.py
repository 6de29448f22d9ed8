"""Mail to people, through the SMTP server of the settings `smtp_*`.

    mail.send(tenant_id, "ann@example.com", "Your sign-in", "Open https://...")         # soon, without a result
    await mail.deliver(tenant_id, "ann@example.com", "Your account", "Open https://...")  # now, or ProviderError

The service submits mail (RFC 6409), and the SMTP server keeps it and tries again. So the service tries once, and keeps
mail only in memory: a mail that waits is lost if the service stops. Nothing that the service promises may depend on a
mail. A mail is a notice, or has a link that a person can ask for again.

There is no SMTP client for trio, so `smtplib` runs in a worker thread. The event loop resolves the name and connects,
within the rules of the setting `egress`, and passes the connected socket to the thread. At the deadline the event loop
shuts the socket down, which ends the thread.

Tenants take turns, and a full queue refuses the tenant that fills it. The caller limits how often a person gets mail.
"""

import smtplib
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from functools import cache
from typing import Final

import structlog
import trio

from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import ConfigError, Conflict, Invalid, TooMany
from sallyport.base.fair import FairLimiter, FairShares
from sallyport.metrics import MailMetrics
from sallyport.outgoing.certificate import verification_error
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import AddressNotAllowed, ProviderError, no_connection
from sallyport.outgoing.tls import client_context
from sallyport.settings.mail import MailServer, is_mail_address

AT_ONCE: Final = 4
"""Maximum number of mails that are sent at the same time from the queue; as many again by `deliver`."""
DEADLINE_S: Final = 20.0
"""Time limit of one mail, from the look-up of the name to the answer of the server."""
MAX_WAITING: Final = 1000
"""Number of waiting mails at which the queue is full. Then each tenant keeps its equal share."""
MAX_AGE_S: Final = 300
"""Seconds after which a waiting mail is not sent any more."""
_POLICY: Final = SMTP.clone(cte_type="7bit")  # not every server takes 8BITMIME
MAX_SUBJECT_LENGTH: Final = 200
MAX_TEXT_LENGTH: Final = 20_000
OFF: Final = "the service sends no mail: set smtp_host and smtp_from, and reload the service"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail. at: the time in microseconds at which it was given to `Mail`."""

    to: str
    subject: str
    text: str
    at: int


class Mail:
    """The mail of the service. server: None if mail is off. trust: returns the TLS context for the server."""

    def __init__(
        self,
        server: MailServer | None,
        egress: Egress,
        metrics: MailMetrics,
        clock: Clock,
        trust: Callable[[], ssl.SSLContext] = client_context,
    ) -> None:
        self._server = server
        self._egress = egress
        self._metrics = metrics
        self._clock = clock
        self._trust = cache(trust)
        self._queue = FairShares[int, int, Letter](MAX_WAITING)
        self._given = trio.Semaphore(0)
        self._turns = FairLimiter[int](AT_ONCE)
        self._threads = trio.CapacityLimiter(2 * AT_ONCE)
        metrics.watch(lambda: len(self._queue))

    def use(self, server: MailServer | None) -> None:
        """Send through this server from now on. None: mail is off, and the mails that wait are dropped."""
        self._server = server

    @property
    def is_on(self) -> bool:
        """Whether the settings name an SMTP server."""
        return self._server is not None

    def send(self, tenant_id: int, to: str, subject: str, text: str) -> None:
        """Put a mail into the queue and return at once. The mail is sent soon and at most once, or not at all: if it
        waits longer than MAX_AGE_S, if the server does not accept it, or if the service stops. The log and the metric
        sallyport_mails_total have the result.

        Raises Conflict if mail is off, Invalid if `to` is not a mail address, and TooMany if the queue is full and the
        tenant has used its share. Catch them where a login must go on without the mail.

        to: one address in ASCII. subject, text: may contain any text from outside. Control characters and line ends
        cannot begin a header: they become spaces in the subject. Both are cut at their maximum length.
        """
        letter = self._letter(to, subject, text)
        if not self._queue.put(tenant_id, tenant_id, letter):
            self._metrics.ended("full")
            raise TooMany("too many mails of this tenant wait for the SMTP server: try again later")
        self._given.release()

    async def deliver(self, tenant_id: int, to: str, subject: str, text: str) -> None:
        """Send a mail, and return when the SMTP server has accepted it. The call waits for its tenant's turn without a
        limit, and then up to DEADLINE_S. After an error the mail has most likely not been accepted; it is not sent
        again.

        Raises Conflict, Invalid: see `send`. Raises ProviderError with the reason if the server cannot be reached or
        does not accept the mail; show it only to an operator of the installation.
        """
        letter = self._letter(to, subject, text)
        async with self._turns.slot(tenant_id):
            await self._submit(letter)

    async def run(self) -> None:
        """Send the mails of the queue until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._send_queued)

    async def _send_queued(self) -> None:
        while True:
            await self._given.acquire()
            letter = self._queue.take()
            if self._clock() - letter.at > MAX_AGE_S * SECOND:
                self._metrics.ended("late")
                log.warning("mail_failed", reason=f"it has waited for more than {MAX_AGE_S} s")
                continue
            with suppress(ProviderError):
                await self._submit(letter)

    def _letter(self, to: str, subject: str, text: str) -> Letter:
        if self._server is None:
            raise Conflict(OFF)
        if not is_mail_address(to) or not _is_in_headers(to):
            raise Invalid("the mail address is not usable: it must have the form ann@example.com, in ASCII")
        line = "".join(each if each.isprintable() else " " for each in subject[:MAX_SUBJECT_LENGTH])
        return Letter(to, " ".join(line.split()), text[:MAX_TEXT_LENGTH], self._clock())

    async def _submit(self, letter: Letter) -> None:
        """Send a mail over a connection of its own. Raises ProviderError."""
        server = self._server
        if server is None:  # mail was on when the mail was given
            self._metrics.ended("failed")
            raise ProviderError("mail is off")
        try:
            with trio.fail_after(DEADLINE_S):
                stream = await self._egress.connect(server.host, server.port)
                connected = socket.socket(fileno=stream.socket.detach())
                await self._talk(server, connected, letter)
        except Exception as error:  # smtplib raises errors of many kinds; here they would end the tasks of all tenants
            reason = _reason(error, server)
            self._metrics.ended("failed")
            log.warning("mail_failed", host=server.host, reason=reason)
            raise ProviderError(f"{server.host}: {reason}") from None
        self._metrics.ended("sent")

    async def _talk(self, server: MailServer, connected: socket.socket, letter: Letter) -> None:
        """Speak SMTP in a worker thread. If the caller is cancelled, the connection ends, and the thread with it."""
        ends = connected.dup()  # TLS takes over the socket itself
        try:
            await trio.to_thread.run_sync(
                self._transfer, server, connected, letter, abandon_on_cancel=True, limiter=self._threads
            )
        finally:
            with suppress(OSError):
                ends.shutdown(socket.SHUT_RDWR)
            ends.close()

    def _transfer(self, server: MailServer, connected: socket.socket, letter: Letter) -> None:
        """Send a mail over a connected socket, and close it. Raises OSError, SMTPException, ConfigError."""
        with connected:
            connected.settimeout(DEADLINE_S)
            message, password = _message(letter, server.sender), server.password()
            if server.tls == "tls":
                connected = self._trust().wrap_socket(connected, server_hostname=server.host)
            with _Connection(connected, server) as smtp:
                if server.tls == "starttls":
                    smtp.starttls(context=self._trust())
                if server.user:
                    smtp.login(server.user, password)
                smtp.sendmail(server.sender, [letter.to], message.as_bytes())


class _Connection(smtplib.SMTP):
    """An SMTP session over a socket that is connected already. At the end of a block it sends QUIT and closes."""

    def __init__(self, connected: socket.socket, server: MailServer) -> None:
        self._connected = connected
        address = str(connected.getsockname()[0])
        own = f"[IPv6:{address}]" if ":" in address else f"[{address}]"  # RFC 5321 section 4.1.3
        super().__init__(server.host, server.port, local_hostname=own, timeout=DEADLINE_S)

    def _get_socket(self, _host: str, _port: int, _timeout: float) -> socket.socket:
        return self._connected

    def __exit__(self, *_: object) -> None:
        with suppress(smtplib.SMTPException, OSError):  # the server has accepted or refused the mail before
            self.quit()
        self.close()


def _is_in_headers(address: str) -> bool:
    """Return whether a header can have an address. The library finds defects that are no errors of the form."""
    try:
        Address(addr_spec=address)
    except ValueError:
        return False
    return True


def _message(letter: Letter, sender: str) -> EmailMessage:
    """Return the message (RFC 5322). The policy refuses line ends in headers."""
    message = EmailMessage(policy=_POLICY)
    message["From"] = Address("Sallyport", addr_spec=sender)
    message["To"] = Address(addr_spec=letter.to)
    message["Subject"] = letter.subject.encode(errors="replace").decode()
    message["Date"] = format_datetime(datetime.fromtimestamp(letter.at / SECOND, UTC))
    message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no automatic replies
    message.set_content("\n".join(letter.text.encode(errors="replace").decode().splitlines()) + "\n")
    return message


def _reason(error: Exception, server: MailServer) -> str:
    """Return why a mail was not accepted, as a text for the operator of the installation."""
    refused = verification_error(error)
    if refused is not None:
        return f"its certificate is not trusted: {refused.verify_message}"
    match error:
        case smtplib.SMTPAuthenticationError():
            text = f"it does not accept smtp_user and its password ({error.smtp_code})"
        case smtplib.SMTPNotSupportedError():
            text = f"it does not offer what smtp_tls = {server.tls} and smtp_user need: {error}"
        case smtplib.SMTPRecipientsRefused():
            code, answer = next(iter(error.recipients.values()))
            text = f"it does not accept the recipient: {code} {_shown(answer)}"
        case smtplib.SMTPResponseException():
            text = f"it answers {error.smtp_code} {_shown(error.smtp_error)}"
        case smtplib.SMTPException():
            text = "it has closed the connection, or its answer is not SMTP"
        case TimeoutError() | trio.TooSlowError():
            text = f"no answer within {DEADLINE_S:g} s; check smtp_port, smtp_tls and the firewall"
        case ssl.SSLError():
            text = f"TLS fails; check smtp_port and smtp_tls ({error.reason})"
        case OSError():
            text = no_connection(error, server.port)
        case AddressNotAllowed():
            text = error.advice
        case ConfigError() | ProviderError():
            text = str(error)
        case _:
            text = f"the mail or the server's answer has an unexpected form ({type(error).__name__})"
    return text


def _shown(text: bytes | str) -> str:
    """Return the text of a server's answer for a message."""
    decoded = text if isinstance(text, str) else text.decode(errors="replace")
    return "".join(each if each.isprintable() else " " for each in decoded)[:200]
