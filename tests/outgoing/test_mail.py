"""Tests of mail, with a real SMTP server on the other end."""

import ssl
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from trio.testing import MockClock

from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, Invalid, TooMany
from sallyport.metrics import MailMetrics
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.mail import DEADLINE_S, MAX_AGE_S, MAX_SUBJECT_LENGTH, MAX_WAITING, Mail
from sallyport.outgoing.tls import client_context
from sallyport.settings.mail import MailServer, MailTls
from sallyport.settings.values import ANYWHERE
from tests.areas.mfa.certificates import self_signed
from tests.mail_server import PASSWORD, USER, mail_server

SENDER, ANN = "sallyport@example.com", "ann@example.com"


def at(_host: str, _port: int, _kind: object) -> list[str]:
    """Resolve every name to this machine."""
    return ["127.0.0.1"]


@dataclass
class Bench:
    """A service's mail. now: the time in microseconds."""

    directory: Path
    now: int = 1_800_000_000 * SECOND
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def mail(
        self,
        port: int,
        tls: MailTls = "none",
        trust: Path | None = None,
        *,
        password: str = "",
        egress: Egress | None = None,
    ) -> Mail:
        """Return mail through a server at a port of this machine. trust: the file of its certificate."""
        file = self.directory / "password"
        file.write_text(f"{password}\n")
        kept = file if password else None
        server = MailServer("mail.example.com", port, tls, USER if password else "", kept, SENDER)
        context = client_context(trust.read_text()) if trust else ssl.create_default_context()
        return Mail(
            server, egress or Egress(ANYWHERE, at), MailMetrics(self.registry), lambda: self.now, lambda: context
        )

    def count(self, result: str) -> float | None:
        """Return the number of mails with a result."""
        return self.registry.get_sample_value("sallyport_mails_total", {"result": result})


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Return a bench."""
    return Bench(tmp_path)


@pytest.mark.parametrize("tls", ["starttls", "tls"])
async def test_mail_arrives_over_tls_after_authentication(bench: Bench, tmp_path: Path, tls: MailTls) -> None:
    """The server receives the sender, the recipient, the subject and the text, in any language."""
    context, chain = self_signed(tmp_path, "mail.example.com")
    with mail_server(context, implicit=tls == "tls") as server:
        mail = bench.mail(server.port, tls, chain, password=PASSWORD)
        await mail.deliver(1, ANN, "Ihre Anmeldung für Zürich", "Öffne https://example.com/mfa/ABCD\n.\nEnde")
    found = server.received()
    assert (found.sender, found.recipients) == (SENDER, [ANN])
    assert (found.over_tls, found.with_password) == (True, True)
    assert (found.message["Subject"], found.message["From"]) == ("Ihre Anmeldung für Zürich", f"Sallyport <{SENDER}>")
    assert found.text == "Öffne https://example.com/mfa/ABCD\n.\nEnde\n"
    assert found.message["Auto-Submitted"] == "auto-generated"
    assert found.octets.isascii()
    assert bench.count("sent") == 1


async def test_a_queued_mail_is_sent_by_the_task(bench: Bench) -> None:
    """`send` returns at once; the task sends the mail. The name in EHLO is the address, so no DNS is asked."""
    with mail_server() as server:
        mail = bench.mail(server.port)
        mail.send(1, ANN, "Hello", "Text")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mail.run)
            found = await trio.to_thread.run_sync(server.received)
            nursery.cancel_scope.cancel()
    assert (found.text, found.client) == ("Text\n", "[127.0.0.1]")


@pytest.mark.parametrize("line_end", ["\r\n", "\n", "\r", "\x0b", "\x85", "\u2028"])
async def test_texts_of_strangers_add_no_header_and_no_mail(bench: Bench, line_end: str) -> None:
    """Line ends in the subject become spaces. Line ends in the text end neither the mail nor its headers."""
    evil = f"Hi{line_end}Bcc: eve@example.com{line_end}{line_end}.{line_end}MAIL FROM:<eve@example.com>"
    with mail_server() as server:
        await bench.mail(server.port).deliver(1, ANN, evil, evil)
    found = server.received()
    assert found.message["Subject"] == "Hi Bcc: eve@example.com . MAIL FROM:<eve@example.com>"
    assert (found.message["Bcc"], found.recipients) == (None, [ANN])
    assert found.text.splitlines() == ["Hi", "Bcc: eve@example.com", "", ".", "MAIL FROM:<eve@example.com>"]
    assert server.inbox.empty()


async def test_a_subject_is_cut_and_may_have_any_character(bench: Bench) -> None:
    """An unpaired surrogate, as a name from a packet may have, becomes a space or a question mark."""
    with mail_server() as server:
        await bench.mail(server.port).deliver(1, ANN, "\udce9" + "x" * 5000, "\udce9")
    found = server.received()
    assert found.message["Subject"] == "x" * (MAX_SUBJECT_LENGTH - 1)
    assert found.text == "?\n"


@pytest.mark.parametrize(
    "address",
    ["", "ann", "ann@", "@example.com", "ann@example.com\r\nRCPT TO:<eve@example.com>", "ann@example.com,eve@a.org",
     "<ann@example.com>", '"ann b"@example.com', "änn@example.com", "ann@exämple.com", f"{'a' * 65}@example.com",
     f"ann@{'a.' * 130}com", "ann @example.com", "-@-", "ann@[127.0.0.1]",
     "=?utf-8?q?x?=@example.com", "ann@example.com."],
)  # fmt: skip
async def test_only_one_plain_address_is_accepted(bench: Bench, address: str) -> None:
    """Another recipient is refused before any server is asked."""
    mail = bench.mail(9)
    with pytest.raises(Invalid, match="the mail address is not usable"):
        mail.send(1, address, "Hello", "Text")


async def test_no_mail_without_a_server(bench: Bench) -> None:
    """The error names the settings."""
    mail = Mail(None, Egress(), MailMetrics(bench.registry), lambda: 0)
    assert not mail.is_on
    with pytest.raises(Conflict, match="set smtp_host and smtp_from"):
        await mail.deliver(1, ANN, "Hello", "Text")


async def test_nothing_is_sent_in_clear_text_if_starttls_is_missing(bench: Bench) -> None:
    """An attacker on the path may hide STARTTLS from the client: then there is no mail, and no password."""
    with mail_server() as server, pytest.raises(ProviderError, match="smtp_tls = starttls"):
        await bench.mail(server.port, "starttls", password=PASSWORD).deliver(1, ANN, "Hello", "Text")
    assert server.inbox.empty()
    assert bench.count("failed") == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"password": "wrong"}, "does not accept smtp_user and its password"),
        ({"to": "refused@example.com"}, "does not accept the recipient: 550 5.1.1 no such mailbox"),
        ({"trust": "other"}, "certificate is not trusted"),
        ({"tls": "tls"}, "TLS fails; check smtp_port and smtp_tls"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_a_failure_has_its_reason(bench: Bench, tmp_path: Path, change: dict[str, str], reason: str) -> None:
    """The error and the log have the reason. They have neither the password nor the recipient."""
    context, chain = self_signed(tmp_path, "mail.example.com")
    (tmp_path / "other").mkdir()
    trust = self_signed(tmp_path / "other", "mail.example.com")[1] if "trust" in change else chain
    tls: MailTls = "tls" if "tls" in change else "starttls"
    password = change.get("password", PASSWORD)
    with mail_server(context) as server, capture_logs() as logs, pytest.raises(ProviderError, match=reason):
        await bench.mail(server.port, tls, trust, password=password).deliver(1, change.get("to", ANN), "Hello", "Text")
    assert [each["event"] for each in logs] == ["mail_failed"]
    assert not {password, ANN} & {word for each in logs for word in str(each).split()}


async def test_the_rules_of_egress_apply(bench: Bench) -> None:
    """The service does not connect to an address that `egress` does not allow. The error says what to add."""
    with mail_server() as server, pytest.raises(ProviderError, match=r"add 127\.0\.0\.1/32 to the setting egress"):
        await bench.mail(server.port, egress=Egress(look_up=at)).deliver(1, ANN, "Hello", "Text")
    assert server.inbox.empty()


async def test_a_silent_server_holds_up_a_mail_until_the_deadline(bench: Bench, mock_clock: MockClock) -> None:
    """Then the connection ends, and with it the thread."""
    begun, ended = trio.Event(), trio.Event()

    async def silent(stream: trio.SocketStream) -> None:
        begun.set()
        await stream.receive_some()
        ended.set()

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, silent, 0, host="127.0.0.1"))
        mail = bench.mail(listener.socket.getsockname()[1])

        async def deliver() -> None:
            with pytest.raises(ProviderError, match=f"no answer within {DEADLINE_S:g} s"):
                await mail.deliver(1, ANN, "Hello", "Text")
            await ended.wait()
            nursery.cancel_scope.cancel()

        nursery.start_soon(deliver)
        await begun.wait()
        mock_clock.jump(DEADLINE_S + 1)


async def test_a_tenant_fills_only_its_share_of_the_queue(bench: Bench) -> None:
    """When one tenant has filled the queue, it is refused, and another tenant is not."""
    mail = bench.mail(9)
    for _ in range(MAX_WAITING):
        mail.send(1, ANN, "Hello", "Text")
    with pytest.raises(TooMany):
        mail.send(1, ANN, "Hello", "Text")
    mail.send(2, ANN, "Hello", "Text")
    assert bench.count("full") == 1
    assert bench.registry.get_sample_value("sallyport_mail_waiting") == MAX_WAITING + 1


async def test_a_mail_that_waited_too_long_is_not_sent(bench: Bench) -> None:
    """A link in it would have expired."""
    with mail_server() as server:
        mail = bench.mail(server.port)
        mail.send(1, ANN, "late", "Text")
        bench.now += (MAX_AGE_S + 1) * SECOND
        mail.send(1, ANN, "in time", "Text")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mail.run)
            found = await trio.to_thread.run_sync(server.received)
            nursery.cancel_scope.cancel()
    assert (found.message["Subject"], bench.count("late")) == ("in time", 1)


@pytest.mark.parametrize("password", ["pässwort", "correct horse"], ids=["in UTF-8", "wrong answer"])
async def test_any_error_ends_one_mail_only(bench: Bench, password: str) -> None:
    """A password that the library cannot encode, and an answer that is no Base64, are errors of the mail. The next mail
    of the queue is sent."""

    async def strange(stream: trio.SocketStream) -> None:
        await stream.send_all(b"220 mail\r\n")
        async for octets in stream:
            answers = {b"EHLO": b"250-mail\r\n250 AUTH CRAM-MD5 PLAIN\r\n", b"AUTH": b"334 a\r\n"}
            await stream.send_all(answers.get(octets[:4].upper(), b"250 OK\r\n"))

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, strange, [listener])
        mail = bench.mail(listener.socket.getsockname()[1], password=password)
        nursery.start_soon(mail.run)
        for _ in range(2):
            with pytest.raises(ProviderError):
                await mail.deliver(1, ANN, "Hello", "Text")
            mail.send(1, ANN, "Hello", "Text")
        name = "sallyport_mails_total"
        while (bench.registry.get_sample_value(name, {"result": "failed"}) or 0) < 4:
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
