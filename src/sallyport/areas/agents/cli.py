"""`sallyport agent ...`: the commands for endpoint agents, their reports, orders and settings."""

import click

from sallyport.areas.agents.bodies import GiveOrder, SetSettings
from sallyport.areas.users import commands
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, entries
from sallyport.shell.exits import ExitStatus
from sallyport.shell.fields import field_argument, field_option, option, options, pass_body
from sallyport.shell.options import in_domain, json_answer, json_form

COLUMNS = ("instanceId", "instanceName", "hostName", "status", "lastSeen", "agentVersion", "upToDate")
DRIFT = ("instanceId", "kind", "name", "detail", "putBack", "first", "last", "ended")
FOUND = {"account": ("name", "uid", "shell", "groups", "sudo", "managed", "found"), "group": ("name", "gid", "members")}
SETTINGS = ("setting", "value")
PASSWORDS = ("state", "since", "password")
_instance = field_argument("instanceId", "instance", expose_value=True)


@click.command("list")
@in_domain
@json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the endpoint agents of a domain."""
    line.print_rows(line.listed("/api/v1/agent/listAgents", "agents", domain=domain), COLUMNS, form)


@click.command("show")
@_instance
@in_domain
@json_answer
@click.pass_obj
def show(line: CommandLine, *, instance: str, domain: str) -> None:
    """Show the status of a machine as JSON: its accounts, its newest report and its orders."""
    body = {"instanceId": commands.instance_id(line, domain, instance)}
    line.print_json(line.run("/api/v1/agent/agentStatus", body, domain=domain))


@click.command("drift")
@in_domain
@field_option("instanceId", "--instance", "instance", expose_value=True, help="Show only the drift on this instance.")
@click.option("--all", "everything", is_flag=True, help="Also show drift that has ended.")
@json_form
@click.pass_obj
def drift(line: CommandLine, *, domain: str, instance: str | None, everything: bool, form: Form | None) -> None:
    """List drift: changes that were made on machines, but not by agents."""
    body: Row = {"lasting": not everything}
    if instance is not None:
        body["instanceId"] = commands.instance_id(line, domain, instance)
    line.print_rows(line.listed("/api/v1/agent/listDrift", "drift", body, domain=domain), DRIFT, form)


@click.command("found")
@_instance
@in_domain
@click.option("--groups", is_flag=True, help="List groups instead of accounts.")
@json_form
@click.pass_obj
def found(line: CommandLine, *, instance: str, domain: str, groups: bool, form: Form | None) -> None:
    """List the local accounts of a machine, or its groups, as its agent discovered them."""
    kind = "group" if groups else "account"
    body: Row = {"instanceId": commands.instance_id(line, domain, instance), "kind": kind}
    rows = line.listed("/api/v1/agent/listDiscovered", "discovered", body, domain=domain)
    line.print_rows(rows if form == "json" else map(_flat, rows), FOUND[kind], form)


@click.command("take-over")
@_instance
@field_argument("userNames", "account", nargs=-1, required=True, expose_value=True)
@in_domain
@click.option("--undo", is_flag=True, help="Undo the take-over: the agent stops managing the accounts.")
@click.pass_obj
def take_over(line: CommandLine, *, instance: str, account: tuple[str, ...], domain: str, undo: bool) -> None:
    """Let a machine's agent manage accounts that the agent has discovered on the machine."""
    body: Row = {
        "instanceId": commands.instance_id(line, domain, instance),
        "userNames": list[JSON](account),
        "action": "remove" if undo else "add",
    }
    line.run("/api/v1/agent/takeOver", body, domain=domain)
    line.note(f"{counted(len(account), 'account')} {'given back' if undo else 'taken over'}")


@click.command("order")
@field_argument("kind", "kind", type=click.Choice(["sync", "discover", "rotate"]))
@_instance
@in_domain
@option(GiveOrder, "userNames", "--user")
@option(GiveOrder, "waitSeconds", "--wait", default=20, show_default=True)
@json_answer
@pass_body
def order(line: CommandLine, body: Row, *, instance: str, domain: str) -> None:
    """Order a machine's agent to act now, and wait for the outcome. The exit status is 1 if the order failed."""
    body = {"instanceId": commands.instance_id(line, domain, instance), "waitSeconds": 20, **body}
    (given,) = entries(line.run("/api/v1/agent/order", body, domain=domain)["orders"])
    line.print_answer(given, "")
    line.note(f"order {given['orderId']}: {given['outcome']} {given['error']}".rstrip())
    if given["outcome"] == "failed":
        raise click.exceptions.Exit(ExitStatus.FAILED)


@click.command("settings")
@in_domain
@click.option("--instance", help="Change or show the settings of this instance. Default: the settings of the domain.")
@option(SetSettings, "putBackPrivileges", "--put-back/--leave", default=None)
@option(SetSettings, "removeUnknownKeys", "--remove-unknown-keys/--keep-unknown-keys", default=None)
@options(SetSettings, "removal")
@option(SetSettings, "sudoWithoutPassword", "--sudo-without-password/--sudo-with-password", default=None)
@options(SetSettings, "rotateDays")
@json_form
@pass_body
def settings(line: CommandLine, body: Row, *, domain: str, instance: str | None, form: Form | None) -> None:
    """Change the given settings of a domain's agents, or of one machine's agent, and show all settings."""
    scope: Row = {"instanceId": 0 if instance is None else commands.instance_id(line, domain, instance)}
    if body:
        line.run("/api/v1/agent/setSettings", {**scope, **body}, domain=domain)
    shown = line.run("/api/v1/agent/getSettings", scope, domain=domain)
    line.print_rows(({"setting": name, "value": value} for name, value in shown.items()), SETTINGS, form)


@click.command("rotate-state-key")
@in_domain
@click.pass_obj
def rotate_state_key(line: CommandLine, *, domain: str) -> None:
    """Replace the key that signs a domain's desired states. Agents receive the new key with the next state."""
    line.run("/api/v1/agent/rotateStateKey", domain=domain)
    line.note("desired states are signed by a new key; agents that `agent list` shows as up to date have it")


@click.command("password")
@_instance
@field_argument("userName", "account")
@in_domain
@json_form
@pass_body
def password(line: CommandLine, body: Row, *, instance: str, domain: str, form: Form | None) -> None:
    """Show the passwords that may be valid for an account on a machine. The audit trail records each call."""
    body |= {"instanceId": commands.instance_id(line, domain, instance)}
    found = entries(line.run("/api/v1/agent/getPassword", body, domain=domain)["passwords"])
    line.print_rows(found, PASSWORDS, form)


def _flat(found: Row) -> Row:
    """Return a discovered account or group as a table row."""
    told = found["told"]
    return {**(told if isinstance(told, dict) else {}), "found": found["found"]}
