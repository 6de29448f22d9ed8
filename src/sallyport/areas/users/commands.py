"""Code that the commands of endpoints share: options, look-ups of ids by name, and imports that show their plan."""

from collections.abc import Sequence

import click

from sallyport.base.errors import StartError
from sallyport.base.text import counted, fold
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, named

INSTANCES = ("/api/v1/instances/list", "instances")
GROUPS = ("/api/v1/instanceGroup/listEndpointGroup", "groups")
USERS = ("/api/v1/endpointUsers/listAllEpmUsers", "epmUsers")
BATCH = 500
"""Number of rows that one transaction imports. Other writes wait for this transaction."""
PLAN = ("line", "action", "name", "what")


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
        done = line.rows(command, domain=domain, rows=sent, apply=apply, override=line.override)
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
