"""`sallyport demo`: the service, with simulated devices that send RADIUS traffic.

The service runs in this process on a temporary database. The other parts of the demo use the service from outside, as
admins and devices do: over the control socket, over UDP from several addresses, and over HTTP.
"""

import signal
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from socket import SOCK_DGRAM, SOCK_STREAM, SocketKind
from tempfile import TemporaryDirectory

import click
import trio

from sallyport.base import log
from sallyport.cli.connection import Connection
from sallyport.cli.demo_story import DemoRun
from sallyport.cli.line import Line
from sallyport.service.serve import serve
from sallyport.settings.listening import bound
from sallyport.settings.settings import Settings
from sallyport.settings.values import Address

HOST = "127.0.0.1"
INTERRUPTED = 130


@click.command()
@click.option("--once", is_flag=True, help="Stop after the last step; otherwise the service keeps running.")
def demo(*, once: bool) -> int:
    """Run the service with simulated devices, and show the inventory and the logins.

    The service listens on the default ports of 127.0.0.1, or on other ports if these are in use. The data are in a
    temporary directory, which is removed at the end. Exit status 0 means that every step worked.
    """
    log.configure(level="error", form="text")
    with TemporaryDirectory(prefix="sallyport-demo-") as directory:
        settings = Settings(
            data_dir=Path(directory),
            http_bind=_address(8080, SOCK_STREAM),
            radius_auth_bind=(_address(1812, SOCK_DGRAM),),
            radius_acct_bind=(_address(1813, SOCK_DGRAM),),
            disk_reserve_mib=0,
            log_level="error",
        )
        return trio.run(_run, settings, once)


def _address(port: int, kind: SocketKind) -> Address:
    """Return a loopback address with this port if the port is free. Otherwise return port 0, so that the system chooses
    a port."""
    usual = Address(HOST, port)
    try:
        bound(usual, kind).close()
    except OSError:
        return Address(HOST, 0)
    return usual


async def _run(settings: Settings, once: bool) -> int:
    """Run the service and the steps of the demo, until the demo ends or a signal arrives. Return the exit status.

    once: whether to end after the last step.
    """
    stop, status = trio.Event(), INTERRUPTED
    connection = Connection(settings=settings)
    line = Line(lambda: connection)
    with closing(connection), trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as outer:
            # The environment is empty, so that the demo does not use the master key of a real installation.
            ports = await outer.start(serve, settings, {}, stop)

            async def tell() -> None:
                nonlocal status
                story = DemoRun(line, settings, ports, stays_up=not once)
                status = await trio.to_thread.run_sync(story.tell, abandon_on_cancel=True)
                if once:
                    stop.set()
                else:
                    line.print("\nThe service keeps running. Press Ctrl-C to stop it and to remove its data.")

            async with trio.open_nursery() as inner:
                inner.start_soon(_stop_on_signal, signals, stop)
                inner.start_soon(tell)
                await stop.wait()
                inner.cancel_scope.cancel()
    return status


async def _stop_on_signal(signals: AsyncIterator[int], stop: trio.Event) -> None:
    async for _ in signals:
        stop.set()
