"""The command `sallyport agent directory`, with which systemd or an admin starts the agent."""

import os
import signal
from pathlib import Path
from typing import Final

import click
import structlog
import trio

from sallyport.agent import file
from sallyport.agent.directory.agent import DirectoryAgent, StateFile
from sallyport.agent.directory.settings import settings_of
from sallyport.agent.keys import KeyRing
from sallyport.agent.service import ServiceClient
from sallyport.areas.directory.reading.reader import LdapReader
from sallyport.base import log as logging
from sallyport.base.clock import now_us
from sallyport.host.notify import Notifier
from sallyport.outgoing.egress import Egress
from sallyport.settings.values import ANYWHERE

TABLE: Final = "directory"

log = structlog.get_logger()


@click.command()
@click.option(
    "--config",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="Configuration file, as `sallyport agent key create --kind directory` prints it.",
)
@click.option("--once", is_flag=True, help="Read and send the directory once, then exit.")
@click.option("--full", is_flag=True, help="With --once or --dry-run: all entries, not only the changes.")
@click.option("--dry-run", is_flag=True, help="Print the entries that would be sent, and send nothing.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    help="Lowest level that is logged.",
)
def directory(*, path: Path, once: bool, full: bool, dry_run: bool, log_level: str) -> None:
    """Read a directory to which the service cannot connect, and send its groups, units and users to the service."""
    logging.configure(level=log_level)
    found = file.read(path, TABLE)
    settings = settings_of(found)
    service = ServiceClient(found.service, ca_certificate=found.ca_certificate)
    state_dir = found.state_dir / TABLE
    with file.alone(state_dir):
        agent = DirectoryAgent(
            settings,
            LdapReader(Egress(ANYWHERE), now_us),
            service,
            KeyRing(path, TABLE, service),
            StateFile(state_dir / "state.json"),
            now_us,
        )
        if dry_run:
            trio.run(lambda: agent.dry_run(click.echo, full=full))
        elif once:
            click.echo(f"sent {trio.run(lambda: agent.once(full=full))}")
        else:
            trio.run(_run, agent)
    service.close()


async def _run(agent: DirectoryAgent) -> None:
    """Run the agent until SIGTERM or SIGINT."""
    systemd = Notifier(os.environ)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.run, systemd)
            if systemd.alive_s is not None:
                nursery.start_soon(_report_alive, systemd, systemd.alive_s)
            async for _ in signals:
                break
            log.info("agent_stopped")
            systemd.stopping()
            nursery.cancel_scope.cancel()


async def _report_alive(systemd: Notifier, every_s: float) -> None:
    """Reset systemd's watchdog at an interval. So the watchdog checks only that the event loop runs. This is
    sufficient, because each step of reading and sending has its own time limit."""
    while True:
        systemd.alive()
        await trio.sleep(every_s)
