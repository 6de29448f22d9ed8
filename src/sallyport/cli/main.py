"""`sallyport`: the root of the command line, its exit codes, and its groups; a command is imported when it is used."""

import io
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from sallyport import __version__
from sallyport.base.errors import SallyportError
from sallyport.base.options import Group
from sallyport.base.owner import user_name
from sallyport.cli.line import Line
from sallyport.cli.output import safe

if TYPE_CHECKING:
    from sallyport.cli.connection import Connection

Sections: TypeAlias = Mapping[str, Mapping[str, tuple[str, str]]]

# Under each heading, the most used command first. name: (module:object, its line in the help), so that the help
# imports no command.
SECTIONS: Sections = {
    "RADIUS": {
        "client": ("sallyport.inventory.clients.cli:client", "RADIUS clients: who may speak to the listeners."),
        "device": ("sallyport.inventory.devices.cli:device", "The inventory of network devices."),
        "check": ("sallyport.cli.check:check", "Ask a server as a device would, and tell what is wrong."),
        "station": ("sallyport.inventory.devices.cli:station", "Stations: the hosts behind network devices."),
        "session": ("sallyport.inventory.sessions.cli:session", "Sessions: who is connected where, live and past."),
        "cert": ("sallyport.certs.cli:cert", "Certificates for EAP and RadSec."),
    },
    "Sign-in policy": {
        "domain": ("sallyport.domains.cli:domain", "Directory domains and their enforcement mode."),
        "provider": ("sallyport.mfa.cli:provider", "MFA providers: who is asked for the second factor."),
        "event": ("sallyport.events.cli:event", "The log of logins: what was decided, and its export."),
        "rule": ("sallyport.policy.rules.cli:rule", "Login rules: allow, block, or ask for a second factor."),
        "bypass": ("sallyport.policy.bypass.cli:bypass", "MAC authentication bypass: stations let in by address."),
        "lockout": ("sallyport.policy.lockouts.cli:lockout", "Users and stations that have failed too often."),
    },
    "People and directories": {
        "user": ("sallyport.endpoints.users.cli:user", "Endpoint users: people whose password the service checks."),
        "directory": ("sallyport.directory.cli:directory", "Directories: people and groups that other systems keep."),
    },
    "Endpoints": {
        "instance": (
            "sallyport.endpoints.instances.cli:instance",
            "Instances: machines that users are assigned to.",
        ),
        "group": ("sallyport.endpoints.groups.cli:group", "Endpoint groups: users together, and their instances."),
        "policy": ("sallyport.passwords.cli:policy", "Password policies of endpoint machines."),
        "agent": ("sallyport.cli.main:agent", "Agents: beside a directory or on a machine that is not reached."),
    },
    "Credentials": {
        "did": ("sallyport.did.cli:did", "DIDs of issuers and holders, and their keys."),
        "schema": ("sallyport.did.cli:schema", "Schemas of credentials."),
        "credential": ("sallyport.did.cli:credential", "Credentials of holders: issue, show, revoke."),
        "wallet": (
            "sallyport.did.holder.cli:wallet",
            "Wallets: register and assign them; hold credentials, and answer login prompts.",
        ),
    },
    "Operate": {
        "serve": ("sallyport.cli.serve:serve", "Run the service."),
        "server": ("sallyport.deploy.cli:server", "Install and uninstall the service as one of this machine."),
        "doctor": ("sallyport.cli.doctor:doctor", "Look for what is wrong or weak in this installation."),
        "token": ("sallyport.tenancy.cli:token", "Access tokens of the API."),
        "db": ("sallyport.store.cli:db", "The database as a whole: schema, backup, restore."),
        "audit": ("sallyport.audit.cli:audit", "The audit trail: who changed what, and when."),
        "log": ("sallyport.cli.serve:log_group", "What the running service logs."),
        "demo": ("sallyport.cli.demo:demo", "Run the service with simulated devices, and show what it sees."),
    },
}
AGENT_SECTIONS: Sections = {
    "Set up": {
        "key": ("sallyport.agent.cli:key", "API keys of agents."),
        "install": ("sallyport.agent.cli:install", "Write an agent's file and its systemd unit."),
        "uninstall": ("sallyport.agent.cli:uninstall", "Stop an agent and remove its unit."),
    },
    "Watch and manage machines": {
        "list": ("sallyport.endpoints.agents.cli:list_", "The endpoint agents of a domain."),
        "show": ("sallyport.endpoints.agents.cli:show", "How it stands with a machine."),
        "order": ("sallyport.endpoints.agents.cli:order", "Tell an agent to act now: sync, discover, rotate."),
        "found": ("sallyport.endpoints.agents.cli:found", "The local accounts and groups of a machine."),
        "take-over": ("sallyport.endpoints.agents.cli:take_over", "Let an agent manage accounts that it has found."),
        "drift": ("sallyport.endpoints.agents.cli:drift", "What someone else has changed on machines."),
        "password": ("sallyport.endpoints.agents.cli:password", "The passwords that may be in force for an account."),
        "settings": ("sallyport.endpoints.agents.cli:settings", "How the agents of a domain behave."),
        "rotate-state-key": (
            "sallyport.endpoints.agents.cli:rotate_state_key",
            "Sign what agents are told by a new key.",
        ),
    },
    "On the host of an agent": {
        "status": ("sallyport.agent.endpoint.cli:status", "How the endpoint agent of this host stands."),
        "endpoint": ("sallyport.agent.endpoint.cli:endpoint", "Run the endpoint agent of this host."),
        "directory": ("sallyport.agent.directory.cli:directory", "Run the agent of a directory."),
        "authorized-keys": ("sallyport.agent.endpoint.cli:authorized_keys", "A user's keys, for sshd."),
    },
}


class LazyGroup(Group):
    """A group that imports a command when it is used. sections: by heading, its commands in the order of the help."""

    def __init__(self, *args: object, sections: Sections, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.sections = sections
        self._listed = {name: place for listed in sections.values() for name, (place, _) in listed.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands' names."""
        return list(self._listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if there is none of that name."""
        if cmd_name not in self._listed:
            return None
        module, _, name = self._listed[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        width = max(map(len, self._listed))
        for heading, listed in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in listed.items()])


@click.group(cls=LazyGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="sallyport.toml to use.")
@click.version_option(__version__, prog_name="sallyport")
@click.pass_context
def root(ctx: click.Context, config: Path | None) -> None:
    """RADIUS-aware network device inventory and login policy service."""

    def note(text: str) -> None:
        given = click.get_current_context().params
        if given.get("form") != "json" and not given.get("as_json"):
            click.echo(safe(text), err=True)

    def connect() -> "Connection":
        from sallyport.cli.connection import Connection

        connection = Connection(config, note=note)
        ctx.call_on_close(connection.close)
        return connection

    ctx.obj = Line(connect)


@click.group(cls=LazyGroup, sections=AGENT_SECTIONS)
def agent() -> None:
    """Agents: beside a directory or on a machine that the service does not reach."""


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 refused or failed, 2 wrong usage."""
    os.umask(0o077)  # only the owner may read the store, its log and its copies
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names may not fit the terminal's encoding
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(lambda: root(standalone_mode=False)))


def run(command: Callable[[], object]) -> int:
    """Run a command; turn its exception into an exit code and one line on standard error."""
    try:
        result = command()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return _told(error)
    except (click.Abort, SallyportError, OSError, BaseExceptionGroup) as error:
        return _failed(error)
    return result if isinstance(result, int) else 0


def _told(error: click.ClickException) -> int:
    """Print the error of a command line, and the help command that explains it."""
    from sallyport.cli.wrong import usage

    click.echo(safe(f"sallyport: {usage(error)}"), err=True)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        click.echo(f"Try: {context.command_path} --help", err=True)
    return error.exit_code


def _failed(error: BaseException) -> int:
    """Print an error in one line. Unexpected exceptions propagate."""
    ours = _only(error) if isinstance(error, BaseExceptionGroup) else error
    if ours is None:
        raise error
    if isinstance(error.__cause__, KeyboardInterrupt):
        return 130
    if isinstance(ours, BrokenPipeError):  # the reader, such as head, has closed: Python must not flush at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    text = str(ours)
    if isinstance(ours, OSError):
        if ours.filename is None:  # no file that an admin could mend
            raise error
        reason = f"permission denied for user {user_name(os.geteuid())}"
        text = f"{ours.filename}: {reason if isinstance(ours, PermissionError) else ours.strerror}"
    click.echo(safe(f"sallyport: {text or 'nothing was done'}"), err=True)
    return 1


def _only(group: BaseExceptionGroup[BaseException]) -> SallyportError | OSError | None:
    """Return the only error of a group, however nested, if a command may end with it; None if there are others."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
        found = found.exceptions[0]
    return found if isinstance(found, SallyportError | OSError) else None
