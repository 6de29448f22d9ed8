"""`sallyport agent install` writes an agent's configuration file and its systemd unit. `sallyport agent uninstall`
removes them.

`sallyport agent key` manages enrolment keys, and prints the initial configuration files of agents.
"""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sallyport.base.errors import ConfigError
from sallyport.base.wire import Row
from sallyport.host import systemd
from sallyport.shell.command import CommandLine, Form, named
from sallyport.shell.fields import field_option, of_tenant, pass_body
from sallyport.shell.options import FUTURE, NUMBER, Group, json_answer, json_form

if TYPE_CHECKING:
    from sallyport.agent.templates import Installed

COLUMNS = ("keyId", "name", "kind", "agent", "instanceId", "status", "uses", "used", "expiresAt", "lastSeen")
PREFIX = click.Path(path_type=Path)
prefix_option = click.option(
    "--prefix",
    type=PREFIX,
    default=Path("/"),
    help="Root directory of the host. If it is not /, only files are written.",
)
which = click.argument("which", type=click.Choice(["endpoint", "directory"]), default="endpoint")


@click.command()
@which
@click.option("--start", is_flag=True, help="Also enable and start the unit.")
@prefix_option
def install(*, which: str, start: bool, prefix: Path) -> None:
    """Write an agent's configuration file and its systemd unit. Standard input supplies the configuration file.

    The command `agent key create` prints this file. If standard input is empty or a terminal, the configuration file
    that exists already is kept.
    """
    from sallyport.agent.templates import AGENTS

    agent = AGENTS[which]
    config, unit = _under(prefix, agent.config), _under(prefix, agent.unit_path)
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    if not text.strip() and not config.exists():
        raise ConfigError(
            "standard input is empty: pass the configuration file that `sallyport agent key create` prints"
        )
    systemd.make_directory(config.parent, 0o700)
    if text.strip():
        _write(config, text, agent)
    systemd.write_unit(unit, agent.text(systemd.program()))
    click.echo(f"{config}\n{unit}")
    if start:
        systemd.systemctl("daemon-reload")
        systemd.systemctl("enable", "--now", agent.unit)
    else:
        click.echo(f"systemctl daemon-reload && systemctl enable --now {agent.unit}", err=True)


@click.command()
@which
@click.option(
    "--lock-accounts",
    is_flag=True,
    help="Lock all accounts that the endpoint agent manages before the agent is removed.",
)
@click.option("--purge", is_flag=True, help="Also remove the agent's configuration file and its state.")
@prefix_option
def uninstall(*, which: str, lock_accounts: bool, purge: bool, prefix: Path) -> int:
    """Stop an agent and remove its unit. Accounts are not changed, unless --lock-accounts is given.

    If --lock-accounts fails for an account, the agent is stopped, but nothing is removed. Repair the cause and repeat
    the command.
    """
    from sallyport.agent.templates import AGENTS

    agent = AGENTS[which]
    config, unit = _under(prefix, agent.config), _under(prefix, agent.unit_path)
    if unit.exists() and prefix == Path("/") and shutil.which("systemctl"):
        systemd.systemctl("disable", "--now", agent.unit)
    failures = 0
    if which == "endpoint" and lock_accounts:
        from sallyport.agent.endpoint.wiring import lock_all

        for name, error in lock_all(config, prefix):
            failures += bool(error)
            click.echo(f"{name}: {error or 'done'}")
    if failures:
        click.echo(
            f"{agent.unit} was stopped, but nothing was removed, because a step failed: repair the cause and repeat "
            "the command",
            err=True,
        )
        return 1
    unit.unlink(missing_ok=True)
    if purge:
        config.unlink(missing_ok=True)
        shutil.rmtree(_under(prefix, Path("/var/lib") / agent.state), ignore_errors=True)
    click.echo(f"{agent.unit} is removed")
    return 0


@click.group(cls=Group)
def key() -> None:
    """The API keys of agents."""


@key.command()
@of_tenant("domain")
@click.option("--domain", required=True, metavar="NAME|ID", help="Domain of the agents (name or domainId).")
@click.option("--instance", help="Generate a key for this instance only, even if it has an agent already.")
@click.option(
    "--kind",
    type=click.Choice(["endpoint", "directory"]),
    default="endpoint",
    show_default=True,
    help="endpoint: the accounts of a machine; directory: an LDAP directory to which the service cannot connect.",
)
@field_option("name", "--name", help="Name of the key in lists and in the audit trail.")
@field_option("uses", "--uses", type=NUMBER, help="Number of machines that may use the key. Default: unlimited.")
@field_option(
    "expiresAt",
    "--expires",
    type=FUTURE,
    help="Expiry of the key: a span such as 7d, or a time such as 2027-11-23. Default: 30d.",
)
@field_option(
    "service",
    "--service",
    metavar="URL",
    help="URL at which agents reach the service. Default: the setting public_url.",
)
@field_option(
    "directoryName",
    "--directory-name",
    help="Name of the directory in the service. Default: the name of the domain.",
)
@field_option(
    "servers", "--ldap-server", multiple=True, metavar="URL", help="URL of a server of the directory; repeatable."
)
@field_option("baseDN", "--base-dn", help="DN below which the directory's people and groups are.")
@field_option("bindDN", "--bind-dn", help="DN of the account that reads the directory.")
@field_option("startTls", "--start-tls", is_flag=True, help="Encrypt ldap:// connections with StartTLS.")
@click.option("--key-only", is_flag=True, help="Print only the key.")
@json_answer
@pass_body
def create(line: CommandLine, body: Row, *, domain: str, instance: str | None, kind: str, key_only: bool) -> None:
    """Generate an enrolment key, and print an agent's configuration file with the key. The key cannot be shown again.

    The options for a directory can be omitted if the domain's first factor is `ldap`.
    """
    body["agent"] = kind
    if instance is not None:
        found = line.listed(
            "/api/v1/instances/list",
            "instances",
            {"orgId": body["orgId"], "tenantId": body["tenantId"], "filter": instance},
            domain=domain,
        )
        body["instanceId"] = named(found, "instanceName", instance, "instance")["instanceId"]
    made = line.run("/api/v1/agent/createKey", body, domain=domain)
    line.print_answer(made, str(made["apiKey"] if key_only else made["configuration"]).removesuffix("\n"))
    if key_only:
        return
    line.note(
        f"the key can be used until {made['expiresAt']}; the file contains the key, so only the agent's "
        "user may read it: chmod 600"
    )


@key.command("list")
@click.option("--domain", required=True, metavar="NAME|ID", help="Domain of the key.")
@json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List enrolment keys and the keys of agents, without their secrets."""
    line.print_rows(line.listed("/api/v1/agent/listKeys", "keys", domain=domain), COLUMNS, form)


@key.command()
@click.argument("key", type=NUMBER, metavar="ID")
@click.option("--domain", required=True, metavar="NAME|ID", help="Domain of the key.")
@click.pass_obj
def revoke(line: CommandLine, *, key: int, domain: str) -> None:
    """Revoke a key. The keys that agents received in exchange for an enrolment key stay valid."""
    line.run("/api/v1/agent/revokeKey", {"keyId": key}, domain=domain)
    line.note(f"API key {key} was revoked")


def _write(config: Path, text: str, agent: "Installed") -> None:
    """Check the configuration file as the agent does, and write it. Raises ConfigError if the file is invalid, or if it
    belongs to another kind of agent."""
    from sallyport.agent import file
    from sallyport.host import disk

    new = config.with_name(f"{config.name}.new")
    try:
        disk.write(new, text.encode())
        state_dir = Path("/var/lib") / agent.state
        if file.read(new, agent.agent).state_dir == Path(file.STATE_DIR) != state_dir:
            file.rewrite(new, {"state_dir": str(state_dir)})
        new.replace(config)
    finally:
        new.unlink(missing_ok=True)


def _under(prefix: Path, path: Path) -> Path:
    return prefix / path.relative_to("/")
