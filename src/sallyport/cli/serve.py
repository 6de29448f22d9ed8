"""`sallyport serve`, and `sallyport log`: its log level."""

import gc
import os
import resource
import sys
from typing import Final

import click

from sallyport.base import log
from sallyport.base.config import unknown_environment
from sallyport.base.options import Group
from sallyport.cli.line import Line

DESCRIPTORS = 65_536
SWITCH_S: Final = 0.0005
"""Switch interval of the interpreter lock in seconds. The store's thread releases the lock for each statement; with
Python's 5 ms, a transaction of ten statements took 50 ms beside a busy event loop."""


@click.command()
@click.pass_obj
def serve(line: Line) -> None:
    """Run the service; it logs one line `ready` when every listener answers."""
    gc.disable()  # a twentieth of the start; from `ready` on it runs as serving needs it
    sys.setswitchinterval(SWITCH_S)
    import trio

    from sallyport.serve import serve_until_signal

    settings = line.settings()
    json = {"json": True, "text": False}.get(settings.log_format)
    log.configure(level=settings.log_level, json=json)
    for name in unknown_environment(os.environ):
        log.logger().warning("unknown_environment_variable", variable=name)
    _take_descriptors()
    trio.run(serve_until_signal, settings, os.environ, line.connection.read)


def _take_descriptors() -> None:
    """Raise the limit of file descriptors: each waiting agent holds one, and the usual 1024 are too few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@click.group("log", cls=Group)
def log_group() -> None:
    """The log of the running service."""


@log_group.command()
@click.argument("level", type=click.Choice(log.LEVELS), required=False)
@click.pass_obj
def level(line: Line, *, level: str | None) -> None:
    """Show or set the lowest level that is logged; a restart or SIGHUP restores the setting `log_level`."""
    line.print(str(line.call("log.level", level=level)))
