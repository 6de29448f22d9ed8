"""`sallyport export` and `sallyport apply`: configuration as code."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import click

from sallyport.areas.configuration.files import SUFFIX, FileKind, Tenant, read_folder
from sallyport.areas.configuration.item import Prune
from sallyport.areas.configuration.references import References
from sallyport.areas.configuration.writing import PUBLIC, write_file
from sallyport.base.errors import StartError
from sallyport.base.wire import JSON, Row
from sallyport.host import disk
from sallyport.shell.command import CommandLine, entries
from sallyport.shell.exits import ExitStatus
from sallyport.shell.options import NUMBER, as_json

_COLOURS: Final = {"+": "green", "~": "yellow", "-": "red"}
_folder = click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
_org = click.option("--org", type=NUMBER, help="orgId of the tenant. Default: the only tenant.")
_tenant = click.option("--tenant", type=NUMBER, help="tenantId of the tenant. Default: the only tenant.")
_only = click.option("--only", multiple=True, metavar="KIND", help="Only this kind of objects; repeatable.")


@click.command("export")
@_folder
@_org
@_tenant
@_only
@click.option("--schema", is_flag=True, help="Write also the JSON Schema of each file, for editors.")
@click.pass_obj
def export(
    line: CommandLine, folder: Path, *, org: int | None, tenant: int | None, only: tuple[str, ...], schema: bool
) -> None:
    """Write the configuration as TOML files into a folder. Comments and the order of existing files stay. Secrets are
    written as `keep`."""
    disk.make_folder(folder)
    described = line.rows("configuration.kinds")
    kinds = {str(each["kind"]): FileKind.of(each) for each in described}
    tenants = _tenants(line, org, tenant)
    written = list[str]()
    for numbers in tenants:
        found = line.row("configuration.export", org=numbers[0], tenant=numbers[1], only=list[JSON](only))
        prefix = f"{numbers[0]}-{numbers[1]}." if len(tenants) > 1 else ""
        for name, objects in found.items():
            path = folder / f"{prefix}{name}{SUFFIX}"
            if write_file(path, kinds[name], entries(objects), References(folder, os.environ)):
                written.append(path.name)
    if schema:
        for each in described:
            path = folder / f"{each['kind']}.schema.json"
            disk.write(path, f"{json.dumps(each['schema'], indent=2)}\n".encode(), mode=PUBLIC)
            written.append(path.name)
    line.note(f"written: {', '.join(written)}" if written else "nothing has changed")


@click.command("apply")
@_folder
@_org
@_tenant
@_only
@click.option("--diff", is_flag=True, help="Only print the plan. Exit status 3 if something would change.")
@click.option(
    "--prune",
    type=click.Choice(["managed", "all"]),
    is_flag=False,
    flag_value="managed",
    metavar="",
    help="Remove objects that files have managed and that are in no file any more. --prune=all: also all objects of a "
    "kind, or more than a third of them.",
)
@as_json
@click.pass_obj
def apply(
    line: CommandLine,
    folder: Path,
    *,
    org: int | None,
    tenant: int | None,
    only: tuple[str, ...],
    diff: bool,
    prune: str | None,
    as_json: bool,
) -> int:
    """Change the configuration to that of the TOML files in a folder, each tenant in one transaction. Objects that are
    in no file stay. The plan is printed first."""
    kinds = [FileKind.of(each) for each in line.rows("configuration.kinds")]
    if wrong := [each for each in only if each not in [kind.name for kind in kinds]]:
        raise click.UsageError(f"--only: there is no kind {wrong[0]}: {', '.join(kind.name for kind in kinds)}")
    tenants = _tenants(line, org, tenant, may_be_new=True)
    own = tenants[0] if len(tenants) == 1 else None
    found = read_folder(folder, kinds, own, References(folder, os.environ))
    if not found:
        raise StartError(f"{folder}: no file KIND{SUFFIX}; `sallyport export` writes some")
    wanted = {numbers: _arguments(numbers, items, prune, only) for numbers, items in found.items()}
    plans = {numbers: line.row("configuration.apply", **each) for numbers, each in wanted.items()}
    changes = [step for plan in plans.values() for step in entries(plan["steps"])]
    if as_json:
        line.print_json([{"org": numbers[0], "tenant": numbers[1], **plan} for numbers, plan in plans.items()])
    else:
        for numbers, plan in plans.items():
            _print_plan(line, numbers if len(plans) > 1 else None, plan)
    if not diff:
        for each in wanted.values():
            line.row("configuration.apply", **{**each, "apply": True})
    return ExitStatus.WOULD_CHANGE if diff and changes else ExitStatus.DONE


def _arguments(numbers: Tenant, items: Sequence[Row], prune: str | None, only: Sequence[str]) -> Row:
    return {
        "org": numbers[0],
        "tenant": numbers[1],
        "items": list[JSON](items),
        "prune": prune or Prune.NOTHING.value,
        "only": list[JSON](only),
    }


def _tenants(line: CommandLine, org: int | None, tenant: int | None, *, may_be_new: bool = False) -> list[Tenant]:
    """Return the tenant of the options, or all tenants of the installation. may_be_new: whether an installation without
    tenants gets the tenant 1 of the organization 1."""
    if (org is None) != (tenant is None):
        raise click.UsageError("give --org and --tenant, or none of them")
    if org is not None and tenant is not None:
        return [(org, tenant)]
    found = [(int(str(each["org"])), int(str(each["tenant"]))) for each in line.rows("tenant.list")]
    return found or ([(1, 1)] if may_be_new else [])


def _print_plan(line: CommandLine, numbers: Tenant | None, plan: Row) -> None:
    """Print a plan: a line for each object that changes, and for each field."""
    if numbers is not None:
        line.print(f"org {numbers[0]}, tenant {numbers[1]}:")
    for step in entries(plan["steps"]):
        colour = _COLOURS[str(step["sign"])]
        line.print(f"{step['sign']} {step['kind']} {step['name']}", colour=colour)
        for name, values in cast(Row, step["fields"]).items():
            before, after = cast(list[JSON], values)
            line.print(f"    {name}: {_text(before)} -> {_text(after)}", colour=colour)
    counts = cast(dict[str, int], plan["counts"])
    words = {"added": "to add", "changed": "to change", "removed": "to remove", "unchanged": "unchanged"}
    line.note(", ".join(f"{counts[name]} {text}" for name, text in words.items()))


def _text(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)
