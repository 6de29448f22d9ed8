"""`sallyport agent`: the list of its commands."""

import click

from sallyport.cli.lazy import LazyGroup

COMMANDS = {
    "drift": ("sallyport.endpoints.agents.cli:drift", "What someone else has changed on machines."),
    "found": ("sallyport.endpoints.agents.cli:found", "The local accounts and groups of a machine."),
    "key": ("sallyport.agent.key_cli:key", "API keys of agents."),
    "list": ("sallyport.endpoints.agents.cli:list_", "The endpoint agents of a domain."),
    "order": ("sallyport.endpoints.agents.cli:order", "Tell an agent to act now: sync, discover, rotate."),
    "password": ("sallyport.endpoints.agents.cli:password", "The passwords that may be in force for an account."),
    "settings": ("sallyport.endpoints.agents.cli:settings", "How the agents of a domain behave."),
    "show": ("sallyport.endpoints.agents.cli:show", "How it stands with a machine."),
    "take-over": ("sallyport.endpoints.agents.cli:take_over", "Let an agent manage accounts that it has found."),
}


@click.group(cls=LazyGroup, listed=COMMANDS)
def agent() -> None:
    """Agents: beside a directory or on a machine that the service does not reach."""
