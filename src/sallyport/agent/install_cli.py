"""`sallyport agent install` and `uninstall`: an agent's file and its systemd unit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sallyport.base.errors import ConfigError

if TYPE_CHECKING:
    from sallyport.agent.templates import Installed

PREFIX = click.Path(path_type=Path)
prefix_option = click.option(
    "--prefix", type=PREFIX, default=Path("/"), help="The root directory of the host; another is only written to."
)
which = click.argument("which", type=click.Choice(["endpoint", "directory"]), default="endpoint")


@click.command()
@which
@click.option("--start", is_flag=True, help="Enable and start it, too.")
@prefix_option
def install(*, which: str, start: bool, prefix: Path) -> None:
    """Write an agent's file, which `agent key create` prints and standard input takes, and its systemd unit.

    A file that is there already is kept when standard input is empty or a terminal.
    """
    from sallyport.agent.templates import AGENTS
    from sallyport.base import disk

    agent = AGENTS[which]
    config, unit = _under(prefix, agent.config), _under(prefix, agent.unit_path)
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    if not text.strip() and not config.exists():
        raise ConfigError("standard input: the agent's file is needed, as `sallyport agent key create` prints it")
    _make(config.parent, 0o700)
    _make(unit.parent, 0o755)
    if text.strip():
        _write(config, text, agent)
    disk.write(unit, agent.text(_program()).encode(), mode=0o644)
    click.echo(f"{config}\n{unit}")
    if start:
        _systemctl("daemon-reload")
        _systemctl("enable", "--now", agent.unit)
    else:
        click.echo(f"systemctl daemon-reload && systemctl enable --now {agent.unit}", err=True)


@click.command()
@which
@click.option("--lock-accounts", is_flag=True, help="Lock every account that the endpoint agent manages first.")
@click.option("--purge", is_flag=True, help="Remove the agent's file and its state, too.")
@prefix_option
def uninstall(*, which: str, lock_accounts: bool, purge: bool, prefix: Path) -> int:
    """Stop an agent and remove its unit. Accounts stay as they are, unless --lock-accounts is given."""
    from sallyport.agent.templates import AGENTS

    agent = AGENTS[which]
    config, unit = _under(prefix, agent.config), _under(prefix, agent.unit_path)
    if unit.exists() and prefix == Path("/") and shutil.which("systemctl"):
        _systemctl("disable", "--now", agent.unit)
    failures = 0
    if which == "endpoint" and lock_accounts:
        from sallyport.agent.endpoint.wiring import lock_all

        for name, error in lock_all(config, prefix):
            failures += bool(error)
            click.echo(f"{name}: {error or 'locked'}")
    unit.unlink(missing_ok=True)
    if purge and not failures:
        config.unlink(missing_ok=True)
        shutil.rmtree(_under(prefix, Path("/var/lib") / agent.state), ignore_errors=True)
    click.echo(f"{agent.unit} is gone")
    return 1 if failures else 0


def _write(config: Path, text: str, agent: "Installed") -> None:
    """Write the file after the agent's own check. ConfigError: it is wrong, or another agent's."""
    from sallyport.agent import file
    from sallyport.base import disk

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


def _make(directory: Path, mode: int) -> None:
    try:
        directory.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}") from None


def _program() -> Path:
    """Return the path of this program, for a unit."""
    found = shutil.which(sys.argv[0])
    return Path(found if found is not None else sys.argv[0]).absolute()


def _systemctl(*arguments: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603  an argument list of our own words
            ["systemctl", *arguments],  # noqa: S607
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", **_bus()},
            capture_output=True,
            timeout=180,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise ConfigError("systemctl: not there, or it does not answer") from None
    if done.returncode != 0:
        raise ConfigError(f"systemctl {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")


def _bus() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name == "DBUS_SYSTEM_BUS_ADDRESS"}
