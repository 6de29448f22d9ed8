"""The commands on the host of an endpoint agent: `sallyport agent endpoint`, `status` and `authorized-keys`.

These commands do not use the service's command-line client. Each command imports its modules only when it runs, because
sshd waits for `authorized-keys` at each login.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sallyport.base.errors import ConfigError, HostError
from sallyport.shell.options import as_json

if TYPE_CHECKING:
    from sallyport.agent.endpoint.plan import Plan
    from sallyport.agent.endpoint.wiring import AgentParts
    from sallyport.agent.file import AgentFile

CONFIG = Path("/etc/sallyport/endpoint-agent.toml")
PATH = click.Path(path_type=Path)
file_option = click.option(
    "--config", type=PATH, default=CONFIG, show_default=True, help="Configuration file of the agent."
)
prefix_option = click.option(
    "--prefix", type=PATH, default=Path("/"), help="Root directory of the host. Values other than / are for tests."
)


@click.command()
@file_option
@prefix_option
@click.option("--once", is_flag=True, help="Apply the service's state to the host once, report, and exit.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show the planned steps without changing accounts. A host that is not enrolled yet is enrolled first.",
)
def endpoint(*, config: Path, prefix: Path, once: bool, dry_run: bool) -> int:
    """Manage accounts, groups, SSH keys and passwords of this host according to the service's desired state."""
    from contextlib import nullcontext

    from sallyport.agent import file
    from sallyport.agent.endpoint.wiring import AGENT, parts

    if os.geteuid() != 0:
        raise ConfigError("only root can manage accounts")
    agent_file = file.read(config, AGENT)
    host = parts(agent_file, prefix)
    with nullcontext() if dry_run else file.alone(agent_file.state_dir):
        return _run(agent_file, host, once=once, dry_run=dry_run)


def _run(agent_file: "AgentFile", host: "AgentParts", *, once: bool, dry_run: bool) -> int:
    from sallyport.agent.endpoint.daemon import Daemon, Environment, Stop, enrolled
    from sallyport.agent.endpoint.identity import enrol
    from sallyport.agent.endpoint.service import HttpService
    from sallyport.agent.keys import KeyRing
    from sallyport.agent.service import ServiceClient
    from sallyport.host.notify import Notifier

    posts = ServiceClient(
        agent_file.service, ca_certificate=agent_file.ca_certificate, agent="sallyport-agent-endpoint"
    )
    ring = KeyRing(agent_file.path, "endpoint", posts)
    environment = Environment(Notifier(os.environ), Stop())
    if not (once or dry_run):
        environment.stop.listen()
    known = enrolled(lambda: enrol(agent_file.state_dir, posts, ring), environment, patient=not (once or dry_run))
    if known is None:
        return 0
    service = HttpService(posts, ring)
    agent = host.endpoint(service, known, environment.systemd)
    if dry_run:
        return _show(agent.preview())
    daemon = Daemon(agent, service, ring, environment)
    if once:
        return daemon.once()
    daemon.run()
    return 0


@click.command()
@file_option
@as_json
def status(*, config: Path, as_json: bool) -> int:
    """Show the status of this host's endpoint agent: instance, state and accounts.

    The exit status is 1 if the agent is not enrolled, or if a password rotation is not completed.
    """
    import json

    from sallyport.agent import file
    from sallyport.agent.endpoint.identity import Identity
    from sallyport.agent.endpoint.wiring import AGENT, parts

    agent_file = file.read(config, AGENT)
    known = Identity.load(agent_file.state_dir)
    host = parts(agent_file, Path("/"))
    memory = host.executor.memory.now
    unended = host.journal.read()
    status = 0 if known is not None and unended is None else 1
    accounts, groups = sorted(kept.name for kept in memory.kept), sorted(memory.groups)
    if as_json:
        found = {
            "service": agent_file.service,
            "instance": known.instance if known else None,
            "state": memory.version,
            "accounts": accounts,
            "groups": groups,
            "rotation": None if unended is None else {"user": unended.user, "stage": unended.stage},
        }
        click.echo(json.dumps(found, indent=2))
        return status
    click.echo(f"service    {agent_file.service}")
    click.echo(f"instance   {known.instance if known else 'not enrolled'}")
    click.echo(f"state      {memory.version or 'none yet'}")
    click.echo(f"accounts   {', '.join(accounts) or 'none'}")
    click.echo(f"groups     {', '.join(groups) or 'none'}")
    if unended is not None:
        click.echo(f"rotation   of {unended.user} is not completed ({unended.stage})")
    return status


@click.command("authorized-keys")
@click.argument("user")
@click.option(
    "--keys-dir",
    type=PATH,
    default=Path("/var/lib/sallyport-keys"),
    help="Directory of the key files: keys_dir in the agent's configuration file.",
)
def authorized_keys(*, user: str, keys_dir: Path) -> int:
    """Print the SSH keys of a user for sshd (AuthorizedKeysCommand). If the user has expired, print no keys."""
    import re

    from sallyport.agent.endpoint.keys import MAX_LENGTH, authorized
    from sallyport.agentwire.fields import NAME
    from sallyport.base.clock import now_us

    if not re.fullmatch(NAME, user):  # sshd runs this command for any login name that a client sends
        return 0
    try:
        with (keys_dir / user).open("rb") as file:
            octets = file.read(MAX_LENGTH)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise HostError(f"{keys_dir / user}: {error.strerror}") from None
    for line in authorized(octets, now_us()):
        click.echo(line)
    return 0


def _show(dry_run: "Plan | None") -> int:
    """Print a plan as a diff. Return the exit status."""
    if dry_run is None:
        click.echo("the service has no state for this host yet")
        return 1
    for step in dry_run.steps:
        click.echo(f"{step.sign} {step.kind:<10} {step.name:<32} {step.detail}".rstrip())
    for action in dry_run.refused:
        click.echo(f"! {action.kind:<10} {action.name:<32} {action.detail} {action.error}".rstrip())
    for drift in dry_run.drift:
        click.echo(f"? {drift.kind:<10} {drift.name:<32} {drift.detail}".rstrip())
    if not dry_run.steps:
        click.echo("nothing to do", err=True)
    return 0
