"""`sallyport instance`: the commands for the machines of a domain."""

from pathlib import Path

import click

from sallyport.areas.users import commands
from sallyport.areas.users.instances.bodies import FILE_COLUMNS, AddInstance, ListInstances
from sallyport.areas.users.instances.instance import SYSTEMS
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.fields import field_argument, option, options, pass_body
from sallyport.shell.files import read_rows, source
from sallyport.shell.options import Group, as_json, in_domain, json_answer, json_form

COLUMNS = (
    "instanceId",
    "instanceName",
    "osName",
    "publicIp",
    "privateIp",
    "hostName",
    "authType",
    "status",
    "totalUsers",
    "totalGroups",
)


@click.group(cls=Group, first=("add", "list", "assign", "import", "export"))
def instance() -> None:
    """Instances: the machines to which users and groups are assigned."""


@instance.command()
@field_argument("instanceName", "name")
@in_domain
@option(AddInstance, "osId", "--os", type=click.IntRange(0, max(SYSTEMS)))
@options(AddInstance, "publicIp", "privateIp", "hostName", "authType")
@json_answer
@pass_body
def add(line: CommandLine, body: Row, *, domain: str) -> None:
    """Add an instance and print its instanceId."""
    made = line.run("/api/v1/instances/addInstance", body, domain=domain)
    line.print_answer(made, str(made["instanceId"]))
    line.note(f"instance {body['instanceName']} was added to {domain}")


@instance.command("list")
@in_domain
@option(ListInstances, "filter", "--search")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the instances of a domain."""
    line.print_rows(line.listed(*commands.INSTANCES, body, domain=domain), COLUMNS, form)


@instance.command()
@click.argument("name")
@in_domain
@click.option("--user", "users", multiple=True, required=True, help="Name of a user; repeatable.")
@click.option("--remove", "removal", is_flag=True, help="Remove the assignments instead of adding them.")
@click.pass_obj
def assign(line: CommandLine, *, name: str, domain: str, users: tuple[str, ...], removal: bool) -> None:
    """Assign users to an instance, or remove the assignments. If one user does not exist, nothing is changed.

    To assign groups, use the command `group assign`.
    """
    body: dict[str, JSON] = {
        "instanceIds": commands.instance_id(line, domain, name),
        "userIds": [commands.user_id(line, domain, each) for each in users],
        "action": "remove" if removal else "add",
    }
    line.run("/api/v1/instances/assignUsersToMachines", body, domain=domain)
    line.note(f"the users of instance {name} were changed")


@instance.command()
@click.argument("name")
@in_domain
@click.pass_obj
def remove(line: CommandLine, *, name: str, domain: str) -> None:
    """Remove an instance, with its assignments."""
    body = {"instanceId": commands.instance_id(line, domain, name)}
    line.run("/api/v1/instances/deleteInstance", body, domain=domain)
    line.note(f"instance {name} was removed from {domain}")


@instance.command("import")
@source
@in_domain
@commands.dry_run
@commands.skip_refused
@as_json
@click.pass_obj
def import_(line: CommandLine, *, file: Path, domain: str, dry_run: bool, skip_refused: bool, as_json: bool) -> None:
    """Import instances from a CSV or JSON file in the format of `instance export`. If an instance with the name exists
    already, change it."""
    rows = read_rows(file, FILE_COLUMNS)
    commands.import_rows(
        line, "instance.import", domain, rows, dry_run=dry_run, skip_refused=skip_refused, as_json=as_json
    )


@instance.command()
@in_domain
@json_form
@click.pass_obj
def export(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """Export the instances of a domain as CSV or JSON."""
    found = line.listed(*commands.INSTANCES, domain=domain)
    rows = ({column: row[column] for column in FILE_COLUMNS} for row in found)
    line.print_rows(rows, FILE_COLUMNS, form or "csv")
