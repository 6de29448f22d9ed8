"""`sallyport session`: user sessions of the devices, and requests to end or change them."""

from collections.abc import Iterator

import click

from sallyport.areas.sessions.bodies import ListSessions
from sallyport.areas.sessions.session import SessionRow
from sallyport.base.answer import wire_names
from sallyport.base.errors import StartError
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, domains, entries
from sallyport.shell.fields import field_option, option, pass_body
from sallyport.shell.options import NUMBER, Group, Pair, any_domain, csv_form, json_form

COLUMNS = (
    "sessionId",
    "domain",
    "userName",
    "device_name",
    "station",
    "framedIp",
    "state",
    "startedAt",
    "sessionTime",
    "inputOctets",
    "outputOctets",
)
ALL_COLUMNS = wire_names(SessionRow, "sessionId", "domain")
RESULTS = ("sessionId", "userName", "outcome", "errorCause", "errorText", "latencyMs")


@click.group(cls=Group)
def session() -> None:
    """Live and past sessions, from the accounting requests of the devices."""


@session.command("list")
@any_domain
@option(ListSessions, "live", is_flag=True, help="Only live sessions.")
@option(ListSessions, "userName", "--user")
@json_form
@csv_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str | None, form: Form | None) -> None:
    """List sessions, newest first."""
    sessions = (each for one in domains(line, domain) for each in _sessions(line, one, body))
    line.print_rows(sessions, ALL_COLUMNS if form == "csv" else COLUMNS, form)


@session.command()
@click.argument("session_id", type=NUMBER, required=False)
@field_option("userName", "--user", "user", expose_value=True, help="User whose live sessions are ended.")
@click.option("--domain", help="Domain of the user's devices (name or domainId).")
@json_form
@click.pass_obj
def disconnect(
    line: CommandLine, *, session_id: int | None, user: str | None, domain: str | None, form: Form | None
) -> None:
    """Ask the device to end a session, or all sessions of a user. The command fails if a device refuses or does not
    answer."""
    if (session_id is None) is (user is None) or (user is None) is not (domain is None):
        raise click.UsageError("give either SESSION_ID, or --user and --domain; see: sallyport session list")
    own_domain = domain or _domain_of(line, session_id)
    body: Row = {"userName": user} if session_id is None else {"sessionId": session_id}
    _print_results(line, line.run("/network_device/DisconnectSession", body, domain=own_domain), form)


@session.command()
@click.argument("session_id", type=NUMBER)
@field_option(
    "replyAttributes",
    "--set",
    type=Pair(),
    multiple=True,
    required=True,
    metavar="NAME=VALUE",
    help="An attribute; repeatable.",
)
@json_form
@pass_body
def change(line: CommandLine, body: Row, *, session_id: int, form: Form | None) -> None:
    """Ask the device to change attributes of a session. The command fails if the device refuses or does not answer."""
    body["sessionId"] = session_id
    _print_results(line, line.run("/network_device/ChangeSession", body, domain=_domain_of(line, session_id)), form)


def _print_results(line: CommandLine, asked: Row, form: Form | None) -> None:
    """Print the results. Raises StartError if a device refused a request or did not answer."""
    results = entries(asked["results"])
    line.print_rows(results, RESULTS, form)
    if asked["more"]:
        line.note("the user has more live sessions: run the command again")
    failed = sum(each["outcome"] != "ack" for each in results)
    if failed:
        raise StartError(f"the request failed for {failed} of {counted(len(results), 'session')}")


def _domain_of(line: CommandLine, session_id: int | None) -> str:
    return str(line.call("session.domain", session=session_id))


def _sessions(line: CommandLine, domain: Row, body: Row) -> Iterator[Row]:
    """Yield each session of a domain once. A new session moves older sessions to later pages, so a session may appear
    on two pages."""
    last: int | None = None
    for each in line.listed("/network_device/ListSessions", "sessions", body, domain=str(domain["domainId"])):
        session_id = int(str(each["sessionId"]))
        if last is None or session_id < last:
            last = session_id
            yield {"domain": domain["domainName"], **each}
