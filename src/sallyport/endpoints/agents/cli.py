"""`sallyport agent ...` for who looks after endpoint agents: what they say, what they are told, how they behave."""

import click

from sallyport.base.command import CommandLine, Form, pages
from sallyport.base.wire import JSON
from sallyport.endpoints import files

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
    line.print_rows(pages(line, "agent.list", domain=domain), COLUMNS, form)


@click.command("show")
@_instance
@files.domain
@click.pass_obj
def show(line: CommandLine, *, instance: str, domain: str) -> None:
    """Show how it stands with a machine: what is wanted, the newest report, the orders; as JSON."""
    line.print_json(line.call("agent.show", domain=domain, instance=instance))


@click.command("drift")
@files.domain
@click.option("--instance", help="Only of this instance.")
@click.option("--all", "everything", is_flag=True, help="Also what is over.")
@files.json_form
@click.pass_obj
def drift(line: CommandLine, *, domain: str, instance: str | None, everything: bool, form: Form | None) -> None:
    """List what someone else has changed on machines."""
    found = pages(line, "agent.drift", domain=domain, instance=instance, everything=everything)
    line.print_rows(found, DRIFT, form)


@click.command("found")
@_instance
@files.domain
@click.option("--groups", is_flag=True, help="Groups in place of accounts.")
@files.json_form
@click.pass_obj
def found(line: CommandLine, *, instance: str, domain: str, groups: bool, form: Form | None) -> None:
    """List the local accounts of a machine, or its groups, as its agent discovered them."""
    kind = "group" if groups else "account"
    line.print_rows(pages(line, "agent.found", domain=domain, instance=instance, kind=kind), FOUND[kind], form)


@click.command("take-over")
@_instance
@click.argument("account", nargs=-1, required=True)
@files.domain
@click.option("--undo", is_flag=True, help="Give them back: the agent manages them no more.")
@click.pass_obj
def take_over(line: CommandLine, *, instance: str, account: tuple[str, ...], domain: str, undo: bool) -> None:
    """Let a machine's agent manage accounts that it has discovered."""
    action = "remove" if undo else "add"
    line.call("agent.takeover", domain=domain, instance=instance, accounts=list(account), action=action)
    line.note(f"{len(account)} account(s) {'given back' if undo else 'taken over'}")


@click.command("order")
@click.argument("kind", type=click.Choice(["sync", "discover", "rotate"]))
@_instance
@files.domain
@click.option("--user", "users", multiple=True, help="Whom to rotate; everybody unless given. May be repeated.")
@click.option("--wait", type=click.IntRange(0, 60), default=20, show_default=True, help="Seconds to wait for it.")
@click.pass_obj
def order(line: CommandLine, *, kind: str, instance: str, domain: str, users: tuple[str, ...], wait: int) -> None:
    """Tell a machine's agent to act now, and wait for what becomes of it; exit status 1 where it failed."""
    given = line.row("agent.order", kind=kind, domain=domain, instance=instance, accounts=list(users), wait=wait)
    line.note(f"order {given['orderId']}: {given['outcome']} {given['error']}".rstrip())
    if given["outcome"] == "failed":
        raise click.exceptions.Exit(1)


@click.command("settings")
@files.domain
@click.option("--instance", help="Of this instance alone.")
@click.option("--put-back/--leave", "put_back", default=None, help="Take back rights that someone else gave.")
@click.option("--remove-unknown-keys/--keep-unknown-keys", "remove_keys", default=None, help="SSH keys not ours.")
@click.option("--removal", type=click.Choice(["delete", "lock"]), help="Of accounts that are wanted no more.")
@click.option(
    "--sudo-without-password/--sudo-with-password",
    "sudo_free",
    default=None,
    help="Whether sudo asks privileged users for their password; who logs in by key alone has none to give.",
)
@click.option("--rotate-days", type=click.IntRange(0, 3650), help="Rotate passwords so often; 0: never.")
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
    """Show how the agents of a domain behave, or that of one machine, after changing what is given."""
    given: dict[str, JSON] = {
        "putBackPrivileges": put_back,
        "removeUnknownKeys": remove_keys,
        "removal": removal,
        "sudoWithoutPassword": sudo_free,
        "rotateDays": rotate_days,
    }
    said: JSON = {name: value for name, value in given.items() if value is not None}
    shown = line.row("agent.settings", domain=domain, instance=instance, said=said)
    line.print_rows(({"setting": name, "value": value} for name, value in shown.items()), SETTINGS, form)


@click.command("rotate-state-key")
@files.domain
@click.pass_obj
def rotate_state_key(line: CommandLine, *, domain: str) -> None:
    """Sign what the agents of a domain are told by a new key; they learn it from the next state."""
    line.call("agent.rotate_state_key", domain=domain)
    line.note("states are signed by a new key; `agent list` shows as up to date who has heard of it")


@click.command("password")
@_instance
@click.argument("account")
@files.domain
@files.json_form
@click.pass_obj
def password(line: CommandLine, *, instance: str, account: str, domain: str, form: Form | None) -> None:
    """Show the passwords that may be in force for an account on a machine; the audit trail notes it."""
    line.print_rows(line.rows("agent.password", domain=domain, instance=instance, account=account), PASSWORDS, form)
