"""`sallyport audit`: the command for the audit trail."""

import json
from collections.abc import Iterator
from itertools import islice

import click

from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, entries
from sallyport.shell.fields import field_option, pass_body
from sallyport.shell.options import PAST, Group, csv_form, json_form

COLUMNS = ("time", "actor", "action", "target", "changes")
ALL_COLUMNS = (
    "auditId",
    "time",
    "org",
    "tenant",
    "domainId",
    "actorKind",
    "actor",
    "tokenId",
    "action",
    "target",
    "changes",
    "requestId",
)
_MAX_CELL_LENGTH = 60
_EMPTY: tuple[JSON, ...] = (None, "", [], {})


@click.group(cls=Group)
def audit() -> None:
    """The audit trail: the changes of the installation, each with its actor and time."""


@audit.command("list")
@field_option("domain", "--domain", help="Show only entries of this domain (name or domainId).")
@field_option("action", "--action", help="Show only entries with this action, such as client.update.")
@field_option(
    "actor",
    "--actor",
    help="Show only entries of this actor: the name of a token, of an API key or of a local user.",
)
@field_option(
    "search", "--search", help="Show only entries with this text in action, actor, target, changes or requestId."
)
@field_option("from", "--since", type=PAST, help="Start of the period, such as 2026-11-23T10:00 (UTC) or 24h (ago).")
@field_option("to", "--until", type=PAST, help="End of the period (exclusive), in the same form as --since.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Maximum number of entries. The default is 100 in a table, and all entries in JSON and CSV.",
)
@json_form
@csv_form
@pass_body
def list_(line: CommandLine, asked: Row, *, limit: int | None, form: Form | None) -> None:
    """List the changes of the installation, the newest first."""
    found = islice(_entries(line, asked), limit if form or limit else 100)
    if form == "json":
        line.print_rows(found, ALL_COLUMNS, form)
    elif form == "csv":
        line.print_rows(({**each, "changes": json.dumps(each["changes"])} for each in found), ALL_COLUMNS, form)
    else:
        line.print_rows(({**each, "changes": _in_one_line(each["changes"])} for each in found), COLUMNS)


def _entries(line: CommandLine, asked: Row) -> Iterator[Row]:
    """Yield the entries of all pages. asked: the arguments of the command audit.list."""
    while True:
        answer = line.row("audit.list", **asked)
        page = entries(answer["entries"])
        if not page:
            return
        yield from page
        asked = {**asked, "after": answer["after"]}


def _in_one_line(changes: JSON) -> str:
    """Return the changed fields of an entry as one line, such as `mode: monitor > enforce`, without fields that were
    and are empty."""
    if not isinstance(changes, dict):
        return ""
    pairs = ((field, value if isinstance(value, list) else [None, value]) for field, value in changes.items())
    changed = ((field, value) for field, value in pairs if not all(each in _EMPTY for each in value))
    return ", ".join(f"{field}: {' > '.join(map(_cell, value))}" for field, value in changed)


def _cell(value: JSON) -> str:
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CELL_LENGTH else f"{text[:_MAX_CELL_LENGTH]}..."
