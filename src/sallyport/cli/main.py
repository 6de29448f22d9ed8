"""`sallyport`: the root of the command line, its groups, and its exit statuses. A command is imported only when it is
used."""

import io
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click
from click.shell_completion import CompletionItem

from sallyport import __version__
from sallyport.base.errors import SallyportError
from sallyport.cli.line import Line
from sallyport.cli.output import safe
from sallyport.host.owner import user_name
from sallyport.shell.exits import ExitStatus
from sallyport.shell.options import Group, wants_json, with_columns

if TYPE_CHECKING:
    from sallyport.cli.connection import Connection

Sections: TypeAlias = Mapping[str, Mapping[str, tuple[str, str]]]

# The commands by heading, the most used first. An entry is name: (module:object, line in the help). So the help is
# shown without importing a command.
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
        "completion": ("sallyport.cli.completion:completion", "The scripts of bash, zsh and fish."),
        "demo": ("sallyport.cli.demo:demo", "Run the service with simulated devices."),
    },
}
AGENT_SECTIONS: Sections = {
    "Set up": {
        "key": ("sallyport.agent.cli:key", "API keys of agents."),
        "install": ("sallyport.agent.cli:install", "Write an agent's file and its systemd unit."),
        "uninstall": ("sallyport.agent.cli:uninstall", "Stop an agent and remove its unit."),
    },
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
    "On the host of an agent": {
        "status": ("sallyport.agent.endpoint.cli:status", "The state of the endpoint agent of this host."),
        "endpoint": ("sallyport.agent.endpoint.cli:endpoint", "Run the endpoint agent of this host."),
        "directory": ("sallyport.agent.directory.cli:directory", "Run the agent of a directory."),
        "authorized-keys": ("sallyport.agent.endpoint.cli:authorized_keys", "A user's keys, for sshd."),
    },
}


class LazyGroup(Group):
    """A click group that imports a command only when the command is used. sections: the headings of the help, in order,
    with the commands under each heading."""

    def __init__(self, *args: object, sections: Sections, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.sections = sections
        self._listed = {name: module for listed in sections.values() for name, (module, _) in listed.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self._listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name. Return None if there is no such command."""
        if cmd_name not in self._listed:
            return None
        module, _, name = self._listed[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return with_columns(command) if cmd_name == "list" else command  # findings of doctor are not cut

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, or the options, that begin with a text, without importing a command."""
        listed = [entry for each in self.sections.values() for entry in each.items()]
        found = [CompletionItem(name, help=text) for name, (_, text) in listed if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        width = max(map(len, self._listed))
        for heading, listed in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in listed.items()])


@click.group(cls=LazyGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    help="Settings file (sallyport.toml).",
)
@click.version_option(__version__, prog_name="sallyport")
@click.pass_context
def root(ctx: click.Context, config: Path | None) -> None:
    """RADIUS server for the second factor of network logins, with an inventory of the devices that use it."""

    def note(text: str) -> None:
        if not wants_json():
            click.echo(safe(text), err=True)

    def connect() -> "Connection":
        from sallyport.cli.connection import Connection

        connection = Connection(config, note=note)
        ctx.call_on_close(connection.close)
        return connection

    ctx.obj = Line(connect)


@click.group(cls=LazyGroup, sections=AGENT_SECTIONS)
def agent() -> None:
    """Agents are programs on a machine or near a directory that the service itself cannot reach."""


def main() -> None:
    """Run the command line. `ExitStatus` has the exit statuses."""
    os.umask(0o077)  # new files can be read only by their owner
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the encoding of the terminal may not have all characters
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(lambda: root(standalone_mode=False)))


def run(command: Callable[[], object]) -> int:
    """Run a command, and return its exit status. An error is printed as one line on standard error."""
    try:
        result = command()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return _print_usage_error(error)
    except (click.Abort, SallyportError, OSError, BaseExceptionGroup) as error:
        return _print_error(error)
    return result if isinstance(result, int) else ExitStatus.DONE


def _print_usage_error(error: click.ClickException) -> int:
    """Print a usage error, and how to see the help. Return the exit status."""
    from sallyport.cli.messages import usage

    click.echo(safe(f"sallyport: {usage(error)}"), err=True)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        click.echo(f"Try: {context.command_path} --help", err=True)
    return error.exit_code


def _print_error(error: BaseException) -> int:
    """Print an error as one line, and return the exit status. Unexpected exceptions propagate."""
    ours = _only(error) if isinstance(error, BaseExceptionGroup) else error
    if ours is None:
        raise error
    if isinstance(error.__cause__, KeyboardInterrupt):
        return ExitStatus.INTERRUPTED
    if isinstance(
        ours, BrokenPipeError
    ):  # the reader (such as head) has closed the pipe, so flushing at exit would fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FAILED
    text = str(ours)
    if isinstance(ours, OSError):
        if ours.filename is None:  # an admin cannot correct this error, so the traceback is needed
            raise error
        reason = f"permission denied for user {user_name(os.geteuid())}"
        text = f"{ours.filename}: {reason if isinstance(ours, PermissionError) else ours.strerror}"
    click.echo(safe(f"sallyport: {text or 'nothing was done'}"), err=True)
    return ExitStatus.FAILED


def _only(group: BaseExceptionGroup[BaseException]) -> SallyportError | OSError | None:
    """Return the error of a group that contains exactly one error, even in a nested group. Return None if there are
    several errors, or if the error is not a SallyportError or OSError."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
        found = found.exceptions[0]
    return found if isinstance(found, SallyportError | OSError) else None
