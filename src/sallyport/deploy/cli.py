"""`sallyport server`: the commands that install the service on this machine, reload its settings, or remove it."""

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from sallyport.base.errors import ConfigError
from sallyport.host import systemd
from sallyport.host.systemd import BACKUP_TIMER, CONFIG_FILE, DATA_DIR, SOCKET, UNIT, USER
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.options import Group, json_form

QUESTION = f"Delete {DATA_DIR} with everything in it, the settings and the user {USER}?"


@click.group(cls=Group)
def server() -> None:
    """Install the service on this machine, reload its settings, or uninstall it. The service has a user, settings, a
    data directory and units."""


@server.command()
@click.option("--start", is_flag=True, help="Also enable and start the service.")
def install(*, start: bool) -> None:
    """Install this program as a service of systemd: create the user, settings, data directory and units.

    Parts that exist already are kept. Only a unit is updated if its text differs. Without systemd, everything except
    the units is created.
    """
    from sallyport.deploy.install import Installation
    from sallyport.settings.settings import unknown_environment
    from sallyport.settings.values import MASTER_KEY, MASTER_KEY_FILE, PREFIX, SECRET_PREFIX

    program = _checked()
    if start and not systemd.is_booted():
        raise ConfigError(f"--start: systemd does not run on this machine. Omit --start; {_by_hand(program)}")
    installation = Installation(program, click.echo, _note)
    own = {MASTER_KEY, MASTER_KEY_FILE, *unknown_environment(os.environ)}
    left_out = {name for name in os.environ if name.startswith(PREFIX) and not name.startswith(SECRET_PREFIX)} - own
    for name in sorted(left_out):
        _note(
            f"the variable {name} is not passed on to the service: set {name.removeprefix(PREFIX).lower()} in "
            f"{CONFIG_FILE}"
        )
    changed = installation.make(os.environ)
    running = [SOCKET, UNIT] if systemd.is_booted() and systemd.is_active(SOCKET) else [UNIT]
    if start:
        systemd.systemctl("enable", UNIT, BACKUP_TIMER)
        if changed and SOCKET in running:  # after failed starts with the old addresses, systemd would refuse a restart
            systemd.systemctl("stop", *running)
            systemd.systemctl("reset-failed", *running)
        systemd.systemctl("restart" if changed else "start", *running)
        systemd.systemctl("start", BACKUP_TIMER)
        click.echo(f"{UNIT} and {BACKUP_TIMER} are enabled and started")
    elif systemd.is_booted():
        _note(f"next: sudo systemctl enable --now {UNIT} {BACKUP_TIMER}")
        if changed and systemd.is_active(UNIT):
            _note(f"the running service still uses the old unit: sudo systemctl restart {' '.join(running)}")
    else:
        _note(f"systemd does not run on this machine: {_by_hand(program)}")
        if installation.has_systemd:
            _note(f"when systemd runs: systemctl enable --now {UNIT} {BACKUP_TIMER}")
    _note(f"then: sudo {_called(program)} client add NAME --address ADDRESS --org 1 --tenant 1")


@server.command()
@click.option("--purge", is_flag=True, help=f"Also delete {DATA_DIR}, {CONFIG_FILE} and the user.")
@click.option("--yes", is_flag=True, help="Delete with --purge without asking for confirmation.")
def uninstall(*, purge: bool, yes: bool) -> None:
    """Stop the service and remove its units. Data, settings and user are kept, unless --purge is given."""
    from sallyport.deploy import uninstall as steps

    if yes and not purge:
        raise click.UsageError("--yes can be used only with --purge, because only --purge asks for confirmation")
    steps.check(_checked())
    if purge and not yes and not click.confirm(QUESTION, err=True):
        raise ConfigError("nothing was changed")
    steps.remove_units(click.echo)
    if purge:
        steps.purge(click.echo)
    elif DATA_DIR.exists():
        _note(f"{DATA_DIR}, {CONFIG_FILE} and the user {USER} were kept; --purge deletes them")


@server.command()
@json_form
@click.pass_obj
def reload(line: CommandLine, *, form: Form | None) -> None:
    """Reload the settings of the running service. List each changed setting: whether it applies now, or needs a
    restart."""
    rows = line.rows("settings.reload")
    if form is None and not rows:
        line.note("no setting has changed; certificates and the configuration were read again")
    else:
        line.print_rows(rows, ("setting", "state", "reason"), form)


def _checked() -> Path:
    """Check the conditions of both commands, and return the path of this program. Raises ConfigError."""
    program, command = systemd.program(), f"server {click.get_current_context().info_name}"
    config = click.get_current_context().find_root().params.get("config")
    if config is not None and config != CONFIG_FILE:
        raise ConfigError(f"--config: {command} accepts only {CONFIG_FILE}; copy your file there first")
    if os.geteuid() != 0:
        raise ConfigError(f"{command} needs root: sudo {shlex.join([str(program), *sys.argv[1:]])}")
    return program


def _by_hand(program: Path) -> str:
    return f"start the service with: runuser -u {USER} -- {program} --config {CONFIG_FILE} serve"


def _called(program: Path) -> str:
    """Return the command with which an admin runs this program. The command is the name of the program if the shell
    finds the program by this name. Otherwise the command is the path of the program."""
    return program.name if shutil.which(program.name, path=systemd.PATH) == str(program) else str(program)


def _note(text: str) -> None:
    click.echo(text, err=True)
