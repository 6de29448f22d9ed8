"""`sallyport`: the root of the command line, its groups, and its exit statuses. A command is imported only when it is
used."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sallyport import __version__
from sallyport.agent.program import HOST, SET_UP
from sallyport.base.text import printable
from sallyport.cli.line import Line
from sallyport.shell import program
from sallyport.shell.options import wants_json
from sallyport.shell.program import LazyGroup, Sections

if TYPE_CHECKING:
    from sallyport.cli.connection import Connection

NAME: Final = "sallyport"
SECTIONS: Sections = {
    "RADIUS": {
        "client": ("sallyport.areas.clients.cli:client", "RADIUS clients: addresses that may send requests."),
        "device": ("sallyport.areas.devices.cli:device", "The inventory of network devices."),
        "check": ("sallyport.cli.check:check", "Test a RADIUS server as a device does, or the mail of the service."),
        "ssid": ("sallyport.areas.devices.cli:ssid", "SSIDs that logins have named."),
        "station": ("sallyport.areas.devices.cli:station", "Stations: the hosts behind network devices."),
        "session": ("sallyport.areas.reauthorization.cli:session", "User sessions at network devices, live and past."),
        "cert": ("sallyport.areas.certificates.cli:cert", "Certificates for EAP and RadSec."),
    },
    "Sign-in policy": {
        "domain": ("sallyport.areas.login.first.cli:domain", "Directory domains and their enforcement mode."),
        "provider": ("sallyport.areas.mfa.cli:provider", "MFA providers, which check the second factor."),
        "event": ("sallyport.areas.events.cli:event", "The log of logins and their decisions, and its export."),
        "rule": ("sallyport.areas.policy.rules.cli:rule", "Login rules: allow, block, or require a second factor."),
        "role": ("sallyport.areas.policy.roles.cli:role", "Roles: named sets of reply attributes for each product."),
        "profile": (
            "sallyport.areas.profiles.cli:profile",
            "Network profiles for devices: Apple, Windows, Android, Linux.",
        ),
        "bypass": ("sallyport.areas.policy.bypass.cli:bypass", "MAC authentication bypass: stations admitted by MAC."),
        "shadow": ("sallyport.areas.shadow.cli:shadow", "Shadow mode: compare with another RADIUS server."),
        "authority": (
            "sallyport.areas.authorities.cli:authority",
            "Authorities that sign client certificates for EAP-TLS.",
        ),
        "lockout": ("sallyport.areas.policy.lockouts.cli:lockout", "Users and stations locked out after failures."),
        "prompt-pause": ("sallyport.areas.factors.cli:prompt_pause", "Users who get no prompt at present."),
    },
    "People and directories": {
        "user": ("sallyport.areas.factors.cli:user", "Endpoint users, whose passwords the service checks."),
        "directory": ("sallyport.areas.directory.cli:directory", "Directories: users and groups from other systems."),
    },
    "Endpoints": {
        "instance": (
            "sallyport.areas.users.instances.cli:instance",
            "Instances: machines that users are assigned to.",
        ),
        "group": ("sallyport.areas.users.groups.cli:group", "Endpoint groups: users with the same instances."),
        "policy": ("sallyport.areas.passwords.cli:policy", "Password policies of endpoint machines."),
        "agent": ("sallyport.cli.main:agent", "Agents beside a directory or on a machine."),
    },
    "Credentials": {
        "did": ("sallyport.areas.did.cli:did", "DIDs of issuers and holders, and their keys."),
        "schema": ("sallyport.areas.did.cli:schema", "Schemas of credentials."),
        "credential": ("sallyport.areas.did.cli:credential", "Credentials of holders: issue, show, revoke."),
        "wallet": (
            "sallyport.areas.did.holder.cli:wallet",
            "Wallets of users: their registration, credentials and login prompts.",
        ),
    },
    "Operate": {
        "serve": ("sallyport.cli.serve:serve", "Run the service."),
        "server": ("sallyport.deploy.cli:server", "Install and uninstall the system service."),
        "doctor": ("sallyport.cli.doctor:doctor", "Find faults and weaknesses of this installation."),
        "admin": ("sallyport.cli.admin:admin", "Local administrators of the console, and sessions."),
        "token": ("sallyport.areas.tenancy.cli:token", "Access tokens of the API."),
        "tenant": ("sallyport.areas.tenancy.cli:tenant", "Organizations and tenants: list, rename, remove."),
        "node": ("sallyport.nodes.cli:node", "Nodes: the services that use the same database."),
        "db": ("sallyport.store.cli:db", "The database: schema, backup, restore."),
        "export": ("sallyport.areas.configuration.cli:export", "Write the configuration as TOML files."),
        "import": (
            "sallyport.areas.migration.cli:import_",
            "Import from NPS, Cisco ISE, ClearPass, FreeRADIUS or a CSV file.",
        ),
        "apply": ("sallyport.areas.configuration.cli:apply", "Apply the configuration of TOML files."),
        "audit": ("sallyport.areas.audit.cli:audit", "The audit trail: changes with actor and time."),
        "log": ("sallyport.cli.serve:log_group", "The log level of the running service."),
        "grafana": ("sallyport.deploy.grafana:grafana", "Dashboards of Grafana, and rules of Prometheus."),
        "completion": ("sallyport.cli.completion:completion", "The scripts of bash, zsh and fish."),
        "demo": ("sallyport.cli.demo:demo", "Run the service with simulated devices."),
        "bench": ("sallyport.cli.bench:bench", "Measure how many logins this machine can decide."),
    },
}
AGENT_SECTIONS: Sections = {
    "Set up": {"key": ("sallyport.agent.key_cli:key", "API keys of agents."), **SET_UP},
    "Watch and manage machines": {
        "list": ("sallyport.areas.agents.cli:list_", "The endpoint agents of a domain."),
        "show": ("sallyport.areas.agents.cli:show", "The state of a machine."),
        "order": ("sallyport.areas.agents.cli:order", "Make an agent act now: sync, discover, rotate."),
        "found": ("sallyport.areas.agents.cli:found", "The local accounts and groups of a machine."),
        "take-over": ("sallyport.areas.agents.cli:take_over", "Let an agent manage existing accounts."),
        "drift": ("sallyport.areas.agents.cli:drift", "Changes on machines that no agent made."),
        "password": ("sallyport.areas.agents.cli:password", "The passwords that may be valid for an account."),
        "settings": ("sallyport.areas.agents.cli:settings", "The settings of the agents of a domain."),
        "rotate-state-key": (
            "sallyport.areas.agents.cli:rotate_state_key",
            "Replace the key that signs the states for agents.",
        ),
    },
    "On the host of an agent": HOST,
}


@click.group(cls=LazyGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    help="Settings file (sallyport.toml).",
)
@click.option("--override", is_flag=True, help="Change also objects that files manage (sallyport apply).")
@click.version_option(__version__, prog_name="sallyport")
@click.pass_context
def root(ctx: click.Context, config: Path | None, *, override: bool) -> None:
    """RADIUS server for the second factor of network logins, with an inventory of the devices that use it."""

    def note(text: str) -> None:
        if not wants_json():
            click.echo(printable(text), err=True)

    def connect() -> "Connection":
        from sallyport.cli.connection import Connection

        connection = Connection(config, note=note)
        ctx.call_on_close(connection.close)
        return connection

    ctx.obj = Line(connect, override=override)


@click.group(cls=LazyGroup, sections=AGENT_SECTIONS)
def agent() -> None:
    """Agents are programs on a machine or near a directory that the service itself cannot reach."""


def main() -> None:
    """Run the command line. `ExitStatus` has the exit statuses."""
    program.main(root, NAME, _usage, _tell)


def run(command: Callable[[], object]) -> int:
    """Run a command, and return its exit status. An error is one line on standard error."""
    return program.run(command, NAME, _usage, _tell)


def _tell(text: str) -> None:
    """Print an error. In a service whose log has the form JSON, the error is an event of the log."""
    log = sys.modules.get("sallyport.base.log")
    if log is not None and log.is_json():
        log.logger().error("service_failed", error=text)
    else:
        program.print_error(NAME, text)


def _usage(error: click.ClickException) -> str:
    from sallyport.cli.messages import usage

    return usage(error)
