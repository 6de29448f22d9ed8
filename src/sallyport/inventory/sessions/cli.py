"""`sallyport session`: who is connected where, by the accounting of the devices; what they are asked about it."""

from collections.abc import Iterator

import click

from sallyport.base.command import CommandLine, Form, domains, entries
from sallyport.base.errors import StartError
from sallyport.base.wire import JSON, Row

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
ALL_COLUMNS = (
    "sessionId",
    "domain",
    "acctSessionId",
    "userName",
    "ip_address",
    "client_ip",
    "device_id",
    "device_name",
    "station",
    "calledStation",
    "framedIp",
    "framedIpv6",
    "framedIpv6Prefix",
    "delegatedIpv6Prefix",
    "nasPort",
    "nasPortId",
    "nasPortType",
    "state",
    "startedAt",
    "updatedAt",
    "stoppedAt",
    "sessionTime",
    "inputOctets",
    "outputOctets",
    "inputPackets",
    "outputPackets",
    "terminateCause",
)
RESULTS = ("sessionId", "userName", "outcome", "errorCause", "errorText", "latencyMs")
NUMBER = click.IntRange(min=1)


@click.group()
def session() -> None:
    """Sessions: who is connected where, live and past, by the accounting of the devices."""


@session.command("list")
@click.option("--domain", help="Only of this domain (name or domainId).")
@click.option("--live", is_flag=True, help="Only those that go on.")
@click.option("--user", default="", help="Only of this user, as the device names it.")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.option("--csv", "form", flag_value="csv", help="As CSV.")
@click.pass_obj
def list_(line: CommandLine, *, domain: str | None, live: bool, user: str, form: Form | None) -> None:
    """List sessions, newest first."""
    found = [str(each["domainId"]) for each in domains(line, domain)]
    sessions = (each for one in found for each in _sessions(line, one, live=live, user=user))
    line.print_rows(sessions, ALL_COLUMNS if form == "csv" else COLUMNS, form)


@session.command()
@click.argument("session_id", type=NUMBER, required=False)
@click.option("--user", help="The live sessions of this user.")
@click.option("--domain", help="At the devices of this domain (name or domainId).")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.pass_obj
def disconnect(
    line: CommandLine, *, session_id: int | None, user: str | None, domain: str | None, form: Form | None
) -> None:
    """Ask the device of a session, or of those of a user, to end it. Fails unless every device has said yes."""
    if (session_id is None) is (user is None) or (user is None) is not (domain is None):
        raise click.UsageError("a session's id, or --user and --domain")
    _tell(line, line.row("session.disconnect", session=session_id, user=user, domain=domain), form)


@session.command()
@click.argument("session_id", type=NUMBER)
@click.option("--set", "pairs", multiple=True, required=True, metavar="NAME=VALUE", help="An attribute; repeatable.")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.pass_obj
def change(line: CommandLine, *, session_id: int, pairs: tuple[str, ...], form: Form | None) -> None:
    """Ask the device of a session to give it other attributes. Fails unless it has said yes."""
    attributes: list[JSON] = []
    for name, sign, value in (pair.partition("=") for pair in pairs):
        if not sign:
            raise click.BadParameter("NAME=VALUE", param_hint="--set")
        attributes.append({"name": name.strip(), "value": value.strip()})
    _tell(line, line.row("session.change", session=session_id, replyAttributes=attributes), form)


def _tell(line: CommandLine, asked: Row, form: Form | None) -> None:
    """What came of it. StartError: not every device has said yes."""
    results = entries(asked["results"])
    line.print_rows(results, RESULTS, form)
    if asked["more"]:
        line.note("further sessions are live: ask again")
    failed = sum(each["outcome"] != "ack" for each in results)
    if failed:
        raise StartError(f"{failed} of {len(results)} session(s) not done")


def _sessions(line: CommandLine, domain: str, *, live: bool, user: str) -> Iterator[Row]:
    """A domain's sessions, a page at a time; what comes meanwhile shifts no page."""
    page = line.rows("session.list", domain=domain, live=live, user=user)
    while page:
        yield from page
        page = line.rows("session.list", domain=domain, live=live, user=user, before=page[-1]["sessionId"])
