"""A real SMTP server (aiosmtpd) in a thread of its own, which keeps the mails that it receives."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from queue import Queue
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.ports import free_port

USER, PASSWORD = "sallyport", "correct horse"


@dataclass
class Received:
    """A mail as the server has received it. client: the name in EHLO. octets: the content."""

    sender: str
    recipients: list[str]
    client: str
    over_tls: bool
    with_password: bool
    octets: bytes

    @property
    def message(self) -> EmailMessage:
        """The parsed mail."""
        parsed = message_from_bytes(self.octets, policy=default)
        assert isinstance(parsed, EmailMessage)
        return parsed

    @property
    def text(self) -> str:
        """The decoded text of the mail."""
        return str(self.message.get_content()).replace("\r\n", "\n")


@dataclass
class MailServer:
    """The server. refused: a recipient that it does not accept."""

    port: int = 0
    refused: str = "refused@example.com"
    inbox: Queue[Received] = field(default_factory=Queue)

    def received(self, within_s: float = 30) -> Received:
        """Return the next mail, when it has arrived."""
        return self.inbox.get(timeout=within_s)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Accept a recipient, or refuse it."""
        if address == self.refused:
            return "550 5.1.1 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Keep a mail."""
        octets = envelope.content if isinstance(envelope.content, bytes) else b""
        over_tls = server.transport.get_extra_info("ssl_object") is not None
        sender, client = str(envelope.mail_from), str(session.host_name)
        self.inbox.put(Received(sender, envelope.rcpt_tos, client, over_tls, bool(session.authenticated), octets))
        return "250 OK"


def _accepted(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: LoginPassword) -> AuthResult:
    right = isinstance(given, LoginPassword) and (given.login, given.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)


@contextmanager
def mail_server(tls: ssl.SSLContext | None = None, *, implicit: bool = False) -> Iterator[MailServer]:
    """Run the server on a free port of 127.0.0.1. tls: its TLS context; with it the server requires STARTTLS and a
    password. implicit: whether TLS begins with the first octet instead."""
    server = MailServer()
    kept: dict[str, Any] = {}
    if tls is not None:
        kept = {"authenticator": _accepted, "auth_exclude_mechanism": ["CRAM-MD5"]}
        kept |= {"auth_require_tls": False} if implicit else {"auth_required": True, "require_starttls": True}
    server.port = free_port()
    context = {"ssl_context" if implicit else "tls_context": tls}
    controller = Controller(server, hostname="127.0.0.1", port=server.port, **context, **kept)
    controller.start()
    try:
        yield server
    finally:
        controller.stop()
