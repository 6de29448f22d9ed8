"""`sallyport serve`."""

import os

import click
import trio

from sallyport.base import log
from sallyport.base.config import unknown_environment
from sallyport.cli.line import Line
from sallyport.serve import serve_until_signal


@click.command()
@click.pass_obj
def serve(line: Line) -> None:
    """Run the service; it logs one line `ready` when every listener answers."""
    settings = line.settings()
    json = {"json": True, "text": False}.get(settings.log_format)
    log.configure(level=settings.log_level, json=json)
    for name in unknown_environment(os.environ):
        log.logger().warning("an environment variable that names no setting is ignored", variable=name)
    trio.run(serve_until_signal, settings, os.environ, line.connection.read)
