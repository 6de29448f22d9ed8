"""`sallyport log`: what the running service logs."""

import click

from sallyport.base.log import LEVELS
from sallyport.cli.line import Line


@click.group()
def log() -> None:
    """What the running service logs."""


@log.command()
@click.argument("level", type=click.Choice(LEVELS), required=False)
@click.pass_obj
def level(line: Line, *, level: str | None) -> None:
    """Show or set from which level on it logs; a restart, and SIGHUP, go back to the setting `log_level`."""
    line.print(str(line.call("log.level", level=level)))
