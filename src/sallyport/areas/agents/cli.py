"""`sallyport agent ...`: the commands for endpoint agents, their reports, orders and settings."""

import click

from sallyport.areas.users import files
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, entries

COLUMNS = ("instanceId", "instanceName", "hostName", "status", "lastSeen", "agentVersion", "upToDate")
DRIFT = ("instanceId", "kind", "name", "detail", "putBack", "first", "last", "ended")
FOUND = {"account": ("name", "uid", "shell", "groups", "sudo", "managed", "found"), "group": ("name", "gid", "members")}
SETTINGS = ("setting", "value")
PASSWORDS = ("state", "since", "password")
_instance = click.argument("instance")


@click.command("list")
@files.domain
@files.json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the endpoint agents of a domain."""
    line.print_rows(line.listed("/api/v1/agent/listAgents", "agents", domain=domain), COLUMNS, form)


@click.command("show")
@_instance
@files.domain
@click.pass_obj
def show(line: CommandLine, *, instance: str, domain: str) -> None:
    """Show the status of a machine as JSON: its accounts, its newest report and its orders."""
    body = {"instanceId": files.instance_id(line, domain, instance)}
    line.print_json(line.run("/api/v1/agent/agentStatus", body, domain=domain))


@click.command("drift")
@files.domain
@click.option("--instance", help="Show only the drift on this instance.")
@click.option("--all", "everything", is_flag=True, help="Also show drift that has ended.")
@files.json_form
@click.pass_obj
def drift(line: CommandLine, *, domain: str, instance: str | None, everything: bool, form: Form | None) -> None:
    """List drift: changes that were made on machines, but not by agents."""
    body: Row = {"lasting": not everything}
    if instance is not None:
        body["instanceId"] = files.instance_id(line, domain, instance)
    line.print_rows(line.listed("/api/v1/agent/listDrift", "drift", body, domain=domain), DRIFT, form)


@click.command("found")
@_instance
@files.domain
@click.option("--groups", is_flag=True, help="List groups instead of accounts.")
@files.json_form
@click.pass_obj
def found(line: CommandLine, *, instance: str, domain: str, groups: bool, form: Form | None) -> None:
    """List the local accounts of a machine, or its groups, as its agent discovered them."""
    kind = "group" if groups else "account"
    body: Row = {"instanceId": files.instance_id(line, domain, instance), "kind": kind}
    rows = line.listed("/api/v1/agent/listDiscovered", "discovered", body, domain=domain)
    line.print_rows(rows if form == "json" else map(_flat, rows), FOUND[kind], form)


@click.command("take-over")
@_instance
@click.argument("account", nargs=-1, required=True)
@files.domain
@click.option("--undo", is_flag=True, help="Undo the take-over: the agent stops managing the accounts.")
@click.pass_obj
def take_over(line: CommandLine, *, instance: str, account: tuple[str, ...], domain: str, undo: bool) -> None:
    """Let a machine's agent manage accounts that the agent has discovered on the machine."""
    body: Row = {
        "instanceId": files.instance_id(line, domain, instance),
        "userNames": list[JSON](account),
        "action": "remove" if undo else "add",
    }
    line.run("/api/v1/agent/takeOver", body, domain=domain)
    line.note(f"{counted(len(account), 'account')} {'given back' if undo else 'taken over'}")


@click.command("order")
@click.argument("kind", type=click.Choice(["sync", "discover", "rotate"]))
@_instance
@files.domain
@click.option(
    "--user",
    "users",
    multiple=True,
    help="Account whose password is rotated; repeatable. Default: all accounts with a password.",
)
@click.option(
    "--wait",
    type=click.IntRange(0, 60),
    default=20,
    show_default=True,
    help="Longest wait for the outcome, in seconds.",
)
@click.pass_obj
def order(line: CommandLine, *, kind: str, instance: str, domain: str, users: tuple[str, ...], wait: int) -> None:
    """Order a machine's agent to act now, and wait for the outcome. The exit status is 1 if the order failed."""
    body: Row = {
        "instanceId": files.instance_id(line, domain, instance),
        "kind": kind,
        "userNames": list[JSON](users),
        "waitSeconds": wait,
    }
    (given,) = entries(line.run("/api/v1/agent/order", body, domain=domain)["orders"])
    line.note(f"order {given['orderId']}: {given['outcome']} {given['error']}".rstrip())
    if given["outcome"] == "failed":
        raise click.exceptions.Exit(1)


@click.command("settings")
@files.domain
@click.option("--instance", help="Change or show the settings of this instance. Default: the settings of the domain.")
@click.option(
    "--put-back/--leave",
    "put_back",
    default=None,
    help="Remove privileges that the desired state does not grant to an account.",
)
@click.option(
    "--remove-unknown-keys/--keep-unknown-keys",
    "remove_keys",
    default=None,
    help="Remove SSH keys of managed accounts that are not in the desired state.",
)
@click.option(
    "--removal", type=click.Choice(["delete", "lock"]), help="Action on a removed account: delete it or lock it."
)
@click.option(
    "--sudo-without-password/--sudo-with-password",
    "sudo_free",
    default=None,
    help="Let privileged users run sudo without a password. Users with only an SSH key have no password.",
)
@click.option(
    "--rotate-days",
    type=click.IntRange(0, 3650),
    help="Days between two rotations of a password. With 0, passwords are not rotated.",
)
@files.json_form
@click.pass_obj
def settings(
    line: CommandLine,
    *,
    domain: str,
    instance: str | None,
    put_back: bool | None,
    remove_keys: bool | None,
    removal: str | None,
    sudo_free: bool | None,
    rotate_days: int | None,
    form: Form | None,
) -> None:
    """Change the given settings of a domain's agents, or of one machine's agent, and show all settings."""
    given: dict[str, JSON] = {
        "putBackPrivileges": put_back,
        "removeUnknownKeys": remove_keys,
        "removal": removal,
        "sudoWithoutPassword": sudo_free,
        "rotateDays": rotate_days,
    }
    scope: Row = {"instanceId": 0 if instance is None else files.instance_id(line, domain, instance)}
    changes = {name: value for name, value in given.items() if value is not None}
    if changes:
        line.run("/api/v1/agent/setSettings", {**scope, **changes}, domain=domain)
    shown = line.run("/api/v1/agent/getSettings", scope, domain=domain)
    line.print_rows(({"setting": name, "value": value} for name, value in shown.items()), SETTINGS, form)


@click.command("rotate-state-key")
@files.domain
@click.pass_obj
def rotate_state_key(line: CommandLine, *, domain: str) -> None:
    """Replace the key that signs a domain's desired states. Agents receive the new key with the next state."""
    line.run("/api/v1/agent/rotateStateKey", domain=domain)
    line.note("desired states are signed by a new key; agents that `agent list` shows as up to date have it")


@click.command("password")
@_instance
@click.argument("account")
@files.domain
@files.json_form
@click.pass_obj
def password(line: CommandLine, *, instance: str, account: str, domain: str, form: Form | None) -> None:
    """Show the passwords that may be valid for an account on a machine. The audit trail records each call."""
    body: Row = {"instanceId": files.instance_id(line, domain, instance), "userName": account}
    found = entries(line.run("/api/v1/agent/getPassword", body, domain=domain)["passwords"])
    line.print_rows(found, PASSWORDS, form)


def _flat(found: Row) -> Row:
    """Return a discovered account or group as a table row."""
    told = found["told"]
    return {**(told if isinstance(told, dict) else {}), "found": found["found"]}
