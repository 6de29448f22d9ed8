"""The program `sallyport-agent`, for a host that has the agents alone, without the service. Its commands are those of
`sallyport agent` for the host of an agent.

The distribution sallyport-agent has the modules that these commands need: pyproject-agent.toml lists them.
"""

from importlib.util import find_spec
from typing import Final

import click

from sallyport import __version__
from sallyport.base.errors import StartError
from sallyport.host.systemd import AGENT_PROGRAM as NAME
from sallyport.shell import program
from sallyport.shell.program import LazyGroup, Sections

HOST: Final = {
    "status": ("sallyport.agent.endpoint.cli:status", "The state of the endpoint agent of this host."),
    "endpoint": ("sallyport.agent.endpoint.cli:endpoint", "Run the endpoint agent of this host."),
    "directory": ("sallyport.agent.directory.cli:directory", "Run the agent of a directory."),
    "authorized-keys": ("sallyport.agent.endpoint.cli:authorized_keys", "A user's keys, for sshd."),
}
SET_UP: Final = {
    "install": ("sallyport.agent.cli:install", "Write an agent's file and its systemd unit."),
    "uninstall": ("sallyport.agent.cli:uninstall", "Stop an agent and remove its unit."),
}
SECTIONS: Final[Sections] = {"Set up": SET_UP, "On the host of an agent": HOST}


class AgentGroup(LazyGroup):
    """The commands. The directory agent needs packages that only the extra `directory` has."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None. Raises StartError."""
        if cmd_name == "directory" and not all(map(find_spec, ("trio", "structlog", "pydantic"))):
            raise StartError("the directory agent needs more packages: install the wheel as 'WHEEL[directory]'")
        return super().get_command(ctx, cmd_name)


@click.group(NAME, cls=AgentGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=NAME)
def root() -> None:
    """Agents of Sallyport: programs on a machine or near a directory that the service itself cannot reach."""


def main() -> None:
    """Run the command line."""
    program.main(root, NAME, click.ClickException.format_message)
