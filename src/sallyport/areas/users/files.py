"""Code that the commands of endpoints share: options, look-ups of ids by name, and import files.

An import file is CSV with a header line, or a JSON array of objects.

Column names are case-insensitive and may contain underscores. An export writes an apostrophe before the text of a cell
if a spreadsheet would interpret the text as a formula. An import removes this apostrophe. It does not remove an
apostrophe from a secret, because exports contain no secrets.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from sallyport.base.errors import StartError
from sallyport.base.text import counted, fold, of_cell
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, named
from sallyport.shell.options import InputFile

INSTANCES = ("/api/v1/instances/list", "instances")
GROUPS = ("/api/v1/instanceGroup/listEndpointGroup", "groups")
USERS = ("/api/v1/endpointUsers/listAllEpmUsers", "epmUsers")
BATCH = 500
"""Number of rows that one transaction imports. Other writes wait for this transaction."""
PLAN = ("line", "action", "name", "what")
_SECRETS = {"password", "motp", "psk"}
_NOTHING: tuple[JSON, ...] = ("", None, [])


def read(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return the rows of an import file, each with its line number in the key `line`. Empty values are left out.

    columns: the allowed column names. Raises StartError if the file cannot be read or is invalid.
    """
    known = {_key(column): column for column in columns}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = file.read()
        found = _objects(text, known) if text.lstrip()[:1] in ("[", "{") else _cells(text, known)
        return [{"line": line, **row} for line, row in found]
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StartError(f"{path}: octet {error.start + 1} is not UTF-8; save the file as UTF-8") from error
    except (ValueError, csv.Error) as error:
        raise StartError(f"{path}: {error}") from error
    except RecursionError as error:
        raise StartError(f"{path}: the JSON is nested too deeply") from error


def _cells(text: str, known: dict[str, str]) -> Iterator[tuple[int, Row]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names = _names(next(reader, []), known, "line 1")
    for row in reader:
        if row and len(row) != len(names):
            raise ValueError(
                f"line {reader.line_num} has more or fewer cells than the first line; give one cell for each column"
            )
        cells = ((name, value if name in _SECRETS else of_cell(value)) for name, value in zip(names, row, strict=False))
        if row:
            yield reader.line_num, {name: value for name, value in cells if value}


def _objects(text: str, known: dict[str, str]) -> Iterator[tuple[int, Row]]:
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("the file is not an array of objects; give one, such as the output of the export with --json")  # noqa: TRY004  it is the file's fault
    for number, each in enumerate(found, 1):
        if not isinstance(each, dict):
            raise ValueError(f"entry {number} is not an object; give an object with a value for each column")  # noqa: TRY004
        names = _names(list(each), known, f"entry {number}")
        yield number, {name: value for name, value in zip(names, each.values(), strict=True) if value not in _NOTHING}


def _names(given: Sequence[str], known: dict[str, str], where: str) -> list[str]:
    """Return the canonical names of columns. Raises ValueError if a column is unknown or occurs twice.

    given: the names in the file. where: the position in the file, for the error.
    """
    for index, name in enumerate(given):
        if _key(name) not in known:
            raise ValueError(f"{where}: unknown column {name}; there are {', '.join(known.values())}")
        if _key(name) in map(_key, given[:index]):
            raise ValueError(f"{where}: the column {known[_key(name)]} is there twice; remove one")
    return [known[_key(name)] for name in given]


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "")


def import_rows(
    line: CommandLine,
    command: str,
    domain: str,
    rows: Sequence[Row],
    *,
    dry_run: bool,
    skip_refused: bool,
    as_json: bool,
) -> None:
    """Show the plan of an import. Then execute the plan, unless some rows cannot be imported.

    skip_refused: whether to skip the rows that cannot be imported, and to import the others. dry_run: whether to show
    the plan without executing it. Each transaction imports at most BATCH rows. If a transaction fails, none of its rows
    is imported.
    """
    fresh, steps = _each_once(rows)
    steps += _run(line, command, domain, fresh, apply=False)
    refused = sum(step["action"] == "refused" for step in steps)
    applied = not dry_run and (skip_refused or not refused)
    if applied:
        sound = {step["line"] for step in steps if step["action"] != "refused"}
        _run(line, command, domain, [row for row in fresh if row["line"] in sound], apply=True)
    steps.sort(key=lambda step: int(str(step["line"])))
    if as_json:
        line.print_json({"applied": applied, "rows": list[JSON](steps)})
    else:
        line.print_rows([{**step, "what": step["reason"] or step["changes"]} for step in steps], PLAN)
    if refused and not skip_refused:
        raise StartError(
            f"{refused} of {counted(len(steps), 'entry', 'entries')} cannot be imported, so nothing was "
            "imported; correct the file, or skip these entries with --skip-refused"
        )
    actions = [str(step["action"]) for step in steps]
    counts = ", ".join(f"{actions.count(each)} {each}" for each in dict.fromkeys(actions)) or "the file is empty"
    line.note(f"{counts}; nothing was changed (--dry-run)" if dry_run else counts)


def _each_once(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split rows into two lists. The first list contains the first row with each name. The second list contains an
    entry with the action `refused` for each further row with the same name."""
    fresh, refused, seen = list[Row](), list[Row](), set[str]()
    for row in rows:
        name = str(row.get("userName", row.get("instanceName", "")))
        if name and fold(name) in seen:
            plan: Row = {"action": "refused", "name": name, "changes": []}
            refused.append(
                {
                    "line": row["line"],
                    **plan,
                    "reason": "the name is used twice; only the first row with this name is imported",
                }
            )
        else:
            fresh.append(row)
        seen.add(fold(name))
    return fresh, refused


def _run(line: CommandLine, command: str, domain: str, rows: Sequence[Row], *, apply: bool) -> list[Row]:
    steps = list[Row]()
    for at in range(0, len(rows), BATCH):
        part = rows[at : at + BATCH]
        sent: list[JSON] = [{field: value for field, value in row.items() if field != "line"} for row in part]
        done = line.rows(command, domain=domain, rows=sent, apply=apply)
        steps += [{"line": row["line"], **step} for row, step in zip(part, done, strict=True)]
    return steps


def instance_id(line: CommandLine, domain: str, name: str) -> JSON:
    """Return the id of an instance. Raises NotFound if the domain has no instance with this name."""
    rows = line.listed(*INSTANCES, {"filter": name}, domain=domain)
    return named(rows, "instanceName", name, "instance", lambda: line.listed(*INSTANCES, domain=domain))["instanceId"]


def group_id(line: CommandLine, domain: str, name: str) -> JSON:
    """Return the id of a group. Raises NotFound if the domain has no group with this name."""
    rows = line.listed(*GROUPS, {"filter": name}, domain=domain)
    return named(rows, "groupName", name, "group", lambda: line.listed(*GROUPS, domain=domain))["groupId"]


def user_id(line: CommandLine, domain: str, name: str) -> JSON:
    """Return the id of a user. Raises NotFound if the domain has no user with this name."""
    rows = line.listed(*USERS, {"filter": {"filterBy": "userName", "value": name}}, domain=domain)
    return named(rows, "userName", name, "user")["userId"]


dry_run = click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
skip_refused = click.option(
    "--skip-refused", is_flag=True, help="Skip the rows that cannot be imported, and import the other rows."
)
source = click.argument("file", type=InputFile())
