"""`sallyport check`: send a RADIUS request as a device would, or a mail as the service does, and explain a failure."""

import os
from secrets import token_hex

import click

from sallyport.areas.clients.client import CHECK
from sallyport.base.clock import iso, now_us
from sallyport.base.wire import Row
from sallyport.cli.diagnosis import explain_reject, explain_silence
from sallyport.cli.line import Line
from sallyport.cli.radius import NoAnswerError, RadiusAnswer, RadiusClient
from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    ACCT_STATUS_TYPE,
    CALLING_STATION_ID,
    CONNECT_INFO,
    NAS_IDENTIFIER,
    REPLY_MESSAGE,
    STATE,
    USER_NAME,
    push_attribute,
)
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_CHALLENGE,
    ACCESS_REJECT,
    ACCOUNTING_REQUEST,
    ACCOUNTING_RESPONSE,
    CODE_NAMES,
    STATUS_SERVER,
    as_text,
)
from sallyport.shell.options import Group, json_answer, wants_json

# Acct-Status-Type (RFC 2866 section 5.1). The Acct-Session-Id is random, so that the record belongs to no real session.
STOP = 2
MAX_OCTETS = 253  # of an attribute's value
ADD_CODE = "The server asks for a code: add --code"
ANOTHER_CODE = "The server has not accepted the code, and asks for another one"
UNSIGNED = (
    "warning: the answer has no Message-Authenticator: the server is vulnerable to BlastRADIUS (CVE-2024-3596), and "
    "devices that require a Message-Authenticator ignore the answer"
)


def _checked(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Return a value that fits into an attribute (RFC 2865 section 5). Raises BadParameter."""
    if value is not None and (size := len(os.fsencode(value))) > MAX_OCTETS:
        raise click.BadParameter(f"has {size} octets, more than {MAX_OCTETS}")
    return value


@click.group(cls=Group)
def check() -> None:
    """Send a RADIUS request as a device would, or a test mail, and explain a failure."""


@check.command()
@click.argument("address")
@click.pass_obj
def mail(line: Line, *, address: str) -> None:
    """Send a test mail to an address, through the SMTP server of the settings smtp_*.

    A running service sends it: with its own settings, as its own user.
    """
    line.call("mail.test", to=address)
    line.print(f"the SMTP server has accepted a test mail to {address}")


@check.command()
@click.argument("server", metavar="HOST[:PORT]")
@click.option("--secret", required=True, help="The shared secret. Give - to read the secret from standard input.")
@click.option("--user", callback=_checked, help="User name of the login.")
@click.option("--password", help="The user's password. Give - to read the password from standard input.")
@click.option("--code", help="Code with which to answer an Access-Challenge.")
@click.option("--chap", is_flag=True, help="Use CHAP instead of PAP.")
@click.option("--accounting", is_flag=True, help="Send an Accounting-Request instead of a login (port 1813).")
@click.option(
    "--status", is_flag=True, help="Send Status-Server instead of a login, to test whether the server answers."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="Seconds to wait for an answer to each try.",
)
@click.option(
    "--retries",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Number of further tries after the first.",
)
@click.option(
    "--nas-identifier",
    default=CHECK.decode(),
    show_default=True,
    callback=_checked,
    help="NAS-Identifier of the check.",
)
@click.option(
    "--station",
    callback=_checked,
    help="Calling-Station-Id, such as 02-00-00-00-00-01: the station that logs in.",
)
@json_answer
@click.pass_obj
def radius(
    line: Line,
    *,
    server: str,
    secret: str,
    user: str | None,
    password: str | None,
    code: str | None,
    chap: bool,
    accounting: bool,
    status: bool,
    timeout: float,
    retries: int,
    nas_identifier: str,
    station: str | None,
) -> int:
    """Try one login. Print the round-trip time, or the likely cause if there is no answer.

    Exit status 0 means Access-Accept; with --accounting it means Accounting-Response.
    """
    if accounting and status:
        raise click.UsageError("--accounting and --status exclude each other")
    if not accounting and not status and (user is None or password is None):
        raise click.UsageError("a login needs --user and --password; or use --accounting or --status")
    octets = _octets(line, secret, "Secret")
    clear = _octets(line, password or "", "Password")
    address = _address(server, 1813 if accounting else 1812)
    nas = _nas(nas_identifier, station)
    began = iso(now_us())
    with RadiusClient(address, octets, timeout=timeout, retries=retries) as client:
        try:
            if accounting or status:
                answer = _other(client, user, nas, accounting=accounting)
            else:
                answer = _log_in(line, client, os.fsencode(user or ""), clear, code, nas, chap=chap)
        except NoAnswerError as error:
            line.note(f"{client.server}: {error}")
            explain_silence(line, client, error.why, began)
            return 1
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        done = _print_answer(line, client, answer)
        if answer.code == ACCESS_REJECT:
            explain_reject(line, client, nas_identifier, began)
        if answer.code == ACCESS_CHALLENGE:
            line.note(ADD_CODE if code is None else ANOTHER_CODE)
    return done


def _nas(identifier: str, station: str | None) -> bytes:
    """Return the attributes that say which device sends the request, and for which station."""
    nas = push_attribute(NAS_IDENTIFIER, os.fsencode(identifier)) + push_attribute(CONNECT_INFO, CHECK)
    return nas if station is None else nas + push_attribute(CALLING_STATION_ID, os.fsencode(station))


def _log_in(
    line: Line, client: RadiusClient, user: bytes, password: bytes, code: str | None, nas: bytes, *, chap: bool
) -> RadiusAnswer:
    """Send an Access-Request. If the answer is an Access-Challenge and a code was given, send the code (RFC 2865
    section 4.4)."""
    answer = client.login(user, password, nas, chap=chap)
    if answer.code != ACCESS_CHALLENGE or code is None or STATE not in answer.attributes:
        return answer
    if not wants_json():
        _print_answer(line, client, answer)
    return client.login(user, os.fsencode(code), nas + push_attribute(STATE, answer.attributes[STATE]), chap=chap)


def _other(client: RadiusClient, user: str | None, nas: bytes, *, accounting: bool) -> RadiusAnswer:
    """Send an Accounting-Request (RFC 2866) or a Status-Server (RFC 5997)."""
    if not accounting:
        return client.ask(STATUS_SERVER, lambda _: nas)
    record = push_attribute(ACCT_STATUS_TYPE, STOP.to_bytes(4)) + nas
    record += push_attribute(ACCT_SESSION_ID, token_hex(8).encode())
    if user is not None:
        record += push_attribute(USER_NAME, os.fsencode(user))
    return client.ask(ACCOUNTING_REQUEST, lambda _: record)


def _print_answer(line: Line, client: RadiusClient, answer: RadiusAnswer) -> int:
    name = CODE_NAMES.get(answer.code, f"code {answer.code}")
    tries = "" if answer.tries == 1 else f", at try {answer.tries}"
    message = as_text(answer.attributes.get(REPLY_MESSAGE, b""))
    told: Row = {
        "answer": name,
        "server": str(client.server),
        "milliseconds": round(answer.seconds * 1000, 1),
        "tries": answer.tries,
        "isSigned": answer.signed,
        "replyMessage": message,
    }
    text = f"{name} from {client.server} in {told['milliseconds']} ms{tries}"
    line.print_answer(told, f"{text}\nReply-Message: {message}" if message else text)
    if not answer.signed and answer.code != ACCOUNTING_RESPONSE:
        line.note(UNSIGNED)
    return 0 if answer.code in (ACCESS_ACCEPT, ACCOUNTING_RESPONSE) else 1


def _octets(line: Line, value: str, prompt: str) -> bytes:
    return line.read_secret(prompt, confirm=False) if value == "-" else os.fsencode(value)


def _address(text: str, port: int) -> tuple[str, int]:
    """Parse HOST, HOST:PORT, [IPV6] or [IPV6]:PORT, and return (host, port). port: the default port."""
    host, colon, last = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, last = text, str(port)
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or not last.isdecimal() or not 0 < int(last) < 65536 or (":" in host and "[" not in text):
        raise click.BadParameter(
            f'"{text}" is not understood; give a host, or host:port; an IPv6 address needs brackets',
            param_hint="HOST[:PORT]",
        )
    return host, int(last)
