"""`sallyport shadow`: compare the decisions of another RADIUS server with those of this service."""

import json
import zoneinfo
from collections.abc import Iterable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Final, cast

import click

from sallyport.areas.shadow.bodies import CompareShadowLogins
from sallyport.areas.shadow.logs.reading import READERS, read_logs
from sallyport.areas.shadow.logs.record import OldLogin, Tally
from sallyport.areas.shadow.shadow_login import MAX_AT_ONCE
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, entries, note_warnings
from sallyport.shell.exits import ExitStatus
from sallyport.shell.fields import option, pass_body
from sallyport.shell.options import Group, InputFile, in_domain, json_form

GROUPS: Final = ("result", "logins", "users", "devices", "reason", "rule", "oldReason", "oldPolicy")
CASES: Final = ("at", "user", "device", "result", "reason", "rule", "oldAnswer", "oldReason", "oldPolicy", "place")
NAMES: Final = ("name", "same", "stricter", "laxer", "reply", "unknown")
MAX_BODY: Final = 700_000
"""Maximum number of octets of one request, below the limit of the service."""


class Share(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """An option type for a share, such as `0.5%`."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share in percent. Raises BadParameter."""
        try:
            share = float(str(value).strip().removesuffix("%"))
        except ValueError:
            share = -1.0
        if not 0 <= share <= 100:
            self.fail(f"{value!r} is not a share from 0% to 100%, such as 0.5%", param, ctx)
        return share


class Zone(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """An option type for a time zone."""

    name = "zone"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        """Return the time zone. Raises BadParameter."""
        try:
            return zoneinfo.ZoneInfo(str(value))
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            self.fail(f"{value!r} is no time zone; give one such as Europe/Berlin", param, ctx)


@click.group(cls=Group, first=("report",))
def shadow() -> None:
    """Shadow mode: compare the decisions of another RADIUS server with those of this service."""


@shadow.command()
@click.argument("files", type=InputFile(), nargs=-1)
@in_domain
@click.option("--format", "log_format", type=click.Choice([*READERS]), help="Format of the files. Default: find it.")
@click.option("--zone", type=Zone(), help="Time zone of the other server. Default: that of this host.")
@click.option("--encoding", default="cp1252", show_default=True, help="Encoding of lines that are not UTF-8.")
@click.option("--limit", type=Share(), default="100%", help="Exit with status 1 if more logins than this share differ.")
@option(CompareShadowLogins, "device")
@option(CompareShadowLogins, "user")
@option(CompareShadowLogins, "result")
@option(CompareShadowLogins, "reason")
@option(CompareShadowLogins, "rule")
@option(CompareShadowLogins, "oldReason")
@option(CompareShadowLogins, "oldPolicy")
@option(CompareShadowLogins, "cases")
@click.option("--logins", "kind", flag_value="cases", help="List the logins one by one instead of their causes.")
@click.option("--users", "kind", flag_value="users", help="List the users instead of the causes.")
@click.option("--devices", "kind", flag_value="devices", help="List the NAS instead of the causes.")
@json_form
@pass_body
def report(
    line: CommandLine,
    body: Row,
    *,
    files: tuple[Path, ...],
    domain: str,
    log_format: str | None,
    zone: tzinfo | None,
    encoding: str,
    limit: float,
    kind: str | None,
    form: Form | None,
) -> None:
    """Record the logins in the log FILES of another server, and compare all recorded logins of a domain.

    Each login is decided by the current rules, with the other server's result of the first factor. Without FILES, the
    logins that were recorded before are compared again.
    """
    if files:
        _record(line, files, domain, log_format or "", zone, encoding)
    found = line.run("/ad/CompareShadowLogins", body, domain=domain)
    if form == "json":
        line.print_json(found)
    else:
        _print(line, found, kind or "groups", form)
    note_warnings(line, found["warnings"])
    logins, differing = int(cast(int, found["logins"])), int(cast(int, found["differing"]))
    if 100 * differing > limit * logins:
        line.note(f"{differing} of {counted(logins, 'login')} differ, more than {limit:g} %")
        raise click.exceptions.Exit(ExitStatus.FAILED)


@shadow.command()
@in_domain
@click.pass_obj
def clear(line: CommandLine, *, domain: str) -> None:
    """Delete all recorded logins of another server."""
    line.note(str(line.run("/ad/DeleteShadowLogins", {}, domain=domain)["message"]))


def _print(line: CommandLine, found: Row, kind: str, form: Form | None) -> None:
    counts, logins = cast(Row, found["counts"]), int(cast(int, found["logins"]))
    line.note(
        f"{counted(logins, 'login')}: {counts['same']} the same, {counts['stricter']} stricter, "
        f"{counts['laxer']} laxer, {counts['unknown']} unknown"
        + (f", {counts['reply']} with another reply" if counts["reply"] else "")
    )
    columns = {"groups": GROUPS, "cases": CASES, "users": NAMES, "devices": NAMES}[kind]
    line.print_rows(entries(found[kind]), columns, form, spare=("oldPolicy", "oldReason", "place"))


def _record(
    line: CommandLine, files: tuple[Path, ...], domain: str, form: str, zone: tzinfo | None, encoding: str
) -> None:
    """Send the logins of log files to the service, part by part."""
    try:
        "".encode(encoding)
    except LookupError:
        raise click.BadParameter(
            f"{encoding!r} is no encoding; give one such as cp1252", param_hint="--encoding"
        ) from None
    tally, recorded = Tally(), 0
    for part in _parts(read_logs(files, zone, tally, form=form, encoding=encoding)):
        answer = line.run("/ad/RecordShadowLogins", {"logins": [*part]}, domain=domain)
        recorded += int(cast(int, answer["recorded"]))
    line.note(f"{counted(tally.lines, 'line')} read: {counted(tally.logins, 'login')}, {recorded} of them new")
    for number, text in (
        (tally.unanswered, "without an answer"),
        (tally.unasked, "without the name of a user"),
        (tally.unread, f"not understood: {', '.join(tally.first_unread)}"),
    ):
        if number:
            line.note(f"warning: {counted(number, 'record')} {text}")


def _parts(logins: Iterable[OldLogin]) -> Iterator[list[Row]]:
    """Yield the logins in parts that fit into a request."""
    part, size = list[Row](), 0
    for login in logins:
        body = login.body()
        octets = len(json.dumps(body))
        if part and (len(part) == MAX_AT_ONCE or size + octets > MAX_BODY):
            yield part
            part, size = [], 0
        part.append(body)
        size += octets
    if part:
        yield part
