"""`sallyport agent install` writes an agent's configuration file and its systemd unit. `sallyport agent uninstall`
removes them."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sallyport.base.errors import ConfigError
from sallyport.host import systemd

if TYPE_CHECKING:
    from sallyport.agent.templates import Installed

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
