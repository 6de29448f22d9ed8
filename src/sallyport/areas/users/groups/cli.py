"""`sallyport group`: the commands for the endpoint groups of a domain."""

import click

from sallyport.areas.users import commands
from sallyport.areas.users.groups.bodies import AddGroup, ListGroups
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.fields import field_argument, option, options, pass_body
from sallyport.shell.options import Group, in_domain, json_answer, json_form

COLUMNS = ("groupId", "groupName", "status", "usersCount", "authFlow")


@click.group(cls=Group, first=("add", "list", "assign"))
def group() -> None:
    """Endpoint groups: groups of users, with the instances that these users may access."""


@group.command()
@field_argument("groupName", "name")
@in_domain
@options(AddGroup, "ou", "cn", "dc")
@json_answer
@pass_body
def add(line: CommandLine, body: Row, *, domain: str) -> None:
    """Add an active group and print its groupId."""
    made = line.run("/api/v1/instanceGroup/addInstanceGroup", body, domain=domain)
    line.print_answer(made, str(made["instanceId"]))
    line.note(f"group {body['groupName']} was added to {domain}")


@group.command("list")
@in_domain
@option(ListGroups, "filter", "--search")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the groups of a domain. The JSON output includes their credential policies."""
    line.print_rows(line.listed(*commands.GROUPS, body, domain=domain), COLUMNS, form)


@group.command()
@click.argument("name")
@in_domain
@click.pass_obj
def remove(line: CommandLine, *, name: str, domain: str) -> None:
    """Remove a group. Its users and instances are not removed."""
    line.run("/api/v1/instanceGroup/deleteEndpointGroup", {"id": commands.group_id(line, domain, name)}, domain=domain)
    line.note(f"group {name} was removed from {domain}")


@group.command()
@click.argument("name")
@click.argument("status")
@in_domain
@click.pass_obj
def status(line: CommandLine, *, name: str, status: str, domain: str) -> None:
    """Set the status of a group. With the status Active or Enabled, the users of the group have access. With any other
    status, they have none."""
    body: dict[str, JSON] = {"groupId": commands.group_id(line, domain, name), "status": status}
    line.run("/api/v1/instanceGroup/updateInstanceGroupStatus", body, domain=domain)
    line.note(f"the status of group {name} is {status} now")


@group.command()
@click.argument("name")
@in_domain
@click.option("--user", "users", multiple=True, help="Name of a user; repeatable.")
@click.option("--instance", "instances", multiple=True, help="Name of an instance; repeatable.")
@click.option("--remove", "removal", is_flag=True, help="Remove the users and instances from the group.")
@click.pass_obj
def assign(
    line: CommandLine, *, name: str, domain: str, users: tuple[str, ...], instances: tuple[str, ...], removal: bool
) -> None:
    """Add users and instances to a group, or remove them. Nothing is changed if a name is unknown."""
    if not users and not instances:
        raise click.UsageError("--user and --instance are missing: give one or both")
    group_id, action = commands.group_id(line, domain, name), "remove" if removal else "add"
    user_ids: list[JSON] = [commands.user_id(line, domain, each) for each in users]
    instance_ids: list[JSON] = [commands.instance_id(line, domain, each) for each in instances]
    if user_ids:
        body: dict[str, JSON] = {"groupId": group_id, "userIds": user_ids, "action": action}
        line.run("/api/v1/instanceGroup/assignUsersToEndpointGroup", body, domain=domain)
    if instance_ids:
        body = {"groupId": group_id, "instanceId": instance_ids, "action": action}
        line.run("/api/v1/instances/assignGroupToMachines", body, domain=domain)
    line.note(f"group {name} was changed")
