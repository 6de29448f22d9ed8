"""`sallyport`: the root of the command line, its exit codes, and the commands that need no group."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import click

from sallyport.base.errors import SallyportError
from sallyport.cli.connection import Connection

# name: module:object; imported when used.
COMMANDS = {
    "check": "sallyport.cli.check:check",
    "client": "sallyport.inventory.clients.cli:client",
    "db": "sallyport.store.cli:db",
    "demo": "sallyport.cli.demo:demo",
    "device": "sallyport.inventory.devices.cli:device",
    "doctor": "sallyport.cli.doctor:doctor",
    "domain": "sallyport.domains.cli:domain",
    "serve": "sallyport.cli.serve:serve",
    "token": "sallyport.tenancy.cli:token",
    "user": "sallyport.endpoints.cli:user",
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = COMMANDS.get(cmd_name)
        if where is None:
            return None
        module, _, name = where.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=_Lazy)
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="sallyport.toml to use.")
@click.version_option(version("sallyport"), prog_name="sallyport")
@click.pass_context
def root(ctx: click.Context, config: Path | None) -> None:
    """RADIUS-aware network device inventory and login policy service."""
    ctx.obj = Connection(config)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 refused or failed, 2 wrong usage."""
    os.umask(0o077)  # the store, its log and copies of it are nobody else's business
    sys.exit(run(lambda: root(standalone_mode=False)))


def run(command: Callable[[], object]) -> int:
    """Run and turn what it raises into an exit code and one line on standard error."""
    try:
        result = command()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BaseExceptionGroup as group:
        error_of_ours = _only(group)
        if error_of_ours is None:
            raise
        return _fail(str(error_of_ours))
    except SallyportError as error:
        return _fail(str(error))
    except BrokenPipeError:
        return 1
    return result if isinstance(result, int) else 0


def _fail(message: str) -> int:
    click.echo(f"sallyport: {message}", err=True)
    return 1


def _only(group: BaseExceptionGroup[BaseException]) -> SallyportError | None:
    """The error of ours that nurseries have wrapped, where it is the only one."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
        found = found.exceptions[0]
    return found if isinstance(found, SallyportError) else None
