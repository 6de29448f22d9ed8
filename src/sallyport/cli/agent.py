"""`sallyport agent`: the list of its commands."""

import click

from sallyport.cli.lazy import LazyGroup

COMMANDS = {
    "key": ("sallyport.agent.key_cli:key", "API keys of agents."),
}


@click.group(cls=LazyGroup, listed=COMMANDS)
def agent() -> None:
    """Agents: beside a directory or on a machine that the service does not reach."""
