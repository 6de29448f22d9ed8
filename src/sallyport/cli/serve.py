"""`sallyport serve`."""

import os

import click

from sallyport.base import log
from sallyport.base.config import unknown_environment
from sallyport.cli.connection import Connection


@click.command()
@click.pass_obj
def serve(connection: Connection) -> None:
    """Run the service; it logs one line `ready` when every listener answers."""
    import trio

    from sallyport.serve import serve_until_signal

    settings = connection.settings()
    json = {"json": True, "text": False}.get(settings.log_format)
    log.configure(level=settings.log_level, json=json)
    for name in unknown_environment(os.environ):
        log.logger().warning("an environment variable that names no setting is ignored", variable=name)
    trio.run(serve_until_signal, settings, os.environ)
