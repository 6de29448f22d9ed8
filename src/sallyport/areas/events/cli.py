"""`sallyport event`: the log of logins, newest first, and its export."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

import click

from sallyport.areas.events.bodies import GetAuthLog
from sallyport.areas.events.event import EventRow
from sallyport.base.answer import wire_names
from sallyport.base.errors import StartError
from sallyport.base.wire import Row
from sallyport.host import disk
from sallyport.shell.command import CommandLine, Form, entries
from sallyport.shell.fields import field_option, options, pass_body
from sallyport.shell.options import PAST, Group, in_domain

COLUMNS = (
    "time",
    "user",
    "device_name",
    "station",
    "ssid",
    "port",
    "method",
    "factor",
    "appliedDecision",
    "wouldHaveBeen",
    "reason",
    "latencyMs",
)
SPARE = ("latencyMs", "port", "ssid", "method", "factor", "station", "device_name")
"""Columns that a table leaves out at a narrow terminal, in this order, before it cuts the reason."""
ALL_COLUMNS = wire_names(EventRow)
_since = field_option(
    "from",
    "--from",
    "since",
    type=PAST,
    expose_value=True,
    help="Start of the period, such as 2026-11-23T10:00 (UTC) or 24h (ago).",
)
_until = field_option(
    "to",
    "--to",
    "until",
    type=PAST,
    expose_value=True,
    help="End of the period (exclusive), in the form of --from.",
)
WHOLE = ("user", "device", "reason", "traceId")
PAGE = 200
FOLLOW_S = 1.0
LATE = "3m"
"""Time between a request and its decision, for a user who is asked for a second factor."""
MAX_FOLLOWED = 1000


@click.group(cls=Group)
def event() -> None:
    """Events: every login with its decision, the decision that was sent, and the decision of enforce mode."""


@event.command("list")
@in_domain
@options(GetAuthLog, "search")
@_since
@_until
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Maximum number of events.")
@options(GetAuthLog, "user", "device", "reason", "traceId")
@click.option("--follow", is_flag=True, help="Print the last events, oldest first, and then new ones, until Ctrl-C.")
@click.option("--json", "form", flag_value="json", help="Print JSON; with --follow, a line for each event.")
@pass_body
def list_(
    line: CommandLine,
    wanted: Row,
    *,
    domain: str,
    since: str | None,
    until: str | None,
    limit: int,
    follow: bool,
    form: Form | None,
) -> None:
    """List the events of a domain, newest first."""
    if follow and until is not None:
        raise click.UsageError("--follow prints new events, so it cannot be used with --to")

    def newest(since: str | None, limit: int) -> Iterator[Row]:
        asked: Row = {**_stretch(since, until), **wanted, "pageSize": min(limit, PAGE), "withTotal": False}
        pages = _events(lambda cursor: line.run("/ad/GetAuthLog", {**asked, **cursor}, domain=domain))
        return islice(pages, limit)

    if follow:
        _follow(newest, since, limit, line.rows_printer(COLUMNS, form, spare=SPARE))
        return
    events = newest(since, limit)
    first = next(events, None)
    line.print_rows(() if first is None else chain([first], events), COLUMNS, form, spare=SPARE)
    if first is None and not wanted.keys().isdisjoint(WHOLE):
        line.note(
            "no event matches: --user, --device, --reason and --trace-id need the whole value; --search finds a part "
            "of one"
        )


def _follow(
    newest: Callable[[str | None, int], Iterator[Row]],
    since: str | None,
    limit: int,
    show: Callable[[Sequence[Row]], None],
) -> None:
    """Print the last events, and then new events until Ctrl-C.

    newest: a function that returns the newest events since a time, up to a limit. A login is stored when it is decided,
    with the time of its request. Therefore each look goes back by LATE, and skips the events of the look before. The
    first look also finds recent events that `since` or `limit` leaves out.
    """

    def recent() -> list[Row]:
        return [*newest(PAST.convert(LATE, None, None), MAX_FOLLOWED)]

    with suppress(KeyboardInterrupt):
        left_out = recent()
        rows = [*newest(since, limit)]
        show(rows[::-1])
        known = {str(row["eventId"]) for row in (*left_out, *rows)}
        while True:
            time.sleep(FOLLOW_S)
            rows = recent()
            show([row for row in reversed(rows) if str(row["eventId"]) not in known])
            known = {str(row["eventId"]) for row in rows}


@event.command()
@in_domain
@_since
@_until
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "jsonl"]),
    default="csv",
    show_default=True,
    help="Format of the export: CSV or JSON lines.",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True), default="-", help="File to write."
)
@click.pass_obj
def export(line: CommandLine, *, domain: str, since: str | None, until: str | None, form: Form, output: Path) -> None:
    """Export the current events of a domain, oldest first.

    In CSV, a cell that a spreadsheet would run as a formula starts with an apostrophe, and unprintable characters are
    replaced. JSON lines have every field unchanged.
    """
    asked = _stretch(since, until)

    def page(cursor: Row) -> Row:
        return line.row("event.export", domain=domain, **asked, **cursor)

    with _written(output) as to:
        line.print_rows(_events(page), ALL_COLUMNS, form, to=to)


def _stretch(since: str | None, until: str | None) -> Row:
    bounds = {"from": since, "to": until}
    return {name: text for name, text in bounds.items() if text is not None}


def _events(page: Callable[[Row], Row]) -> Iterator[Row]:
    """Yield the events of all pages.

    page: a function that returns a page. Its argument is the request: it contains the cursor that came with the
    previous page, and it is empty for the first page.
    """
    cursor: Row = {}
    while True:
        answer = page(cursor)
        yield from entries(answer["events"])
        if not answer["cursor"]:
            return
        cursor = {name: answer[name] for name in ("cursor", "last_id") if name in answer}


@contextmanager
def _written(path: Path) -> Iterator[TextIO | None]:
    """Yield the file to write, or None for standard output. If an existing pipe or device has this path, it is written
    directly. A new file gets its name and mode 0600 only when it is complete.

    Raises StartError.
    """
    if str(path) == "-":
        yield None
        return
    try:
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8", newline="") as file:
                yield file
        else:
            with disk.replacing(path.resolve()) as octets:
                file = TextIOWrapper(octets, encoding="utf-8", newline="")
                yield file
                file.detach()
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
