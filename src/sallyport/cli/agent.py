"""`sallyport agent`: the list of its commands."""

import click

from sallyport.cli.lazy import LazyGroup

COMMANDS = {
    "directory": ("sallyport.agent.directory.cli:directory", "Run the agent of a directory."),
    "authorized-keys": ("sallyport.agent.endpoint.cli:authorized_keys", "A user's keys, for sshd."),
    "drift": ("sallyport.endpoints.agents.cli:drift", "What someone else has changed on machines."),
    "endpoint": ("sallyport.agent.endpoint.cli:endpoint", "Run the endpoint agent of this host."),
    "found": ("sallyport.endpoints.agents.cli:found", "The local accounts and groups of a machine."),
    "install": ("sallyport.agent.install_cli:install", "Write an agent's file and its systemd unit."),
    "key": ("sallyport.agent.key_cli:key", "API keys of agents."),
    "list": ("sallyport.endpoints.agents.cli:list_", "The endpoint agents of a domain."),
    "order": ("sallyport.endpoints.agents.cli:order", "Tell an agent to act now: sync, discover, rotate."),
    "password": ("sallyport.endpoints.agents.cli:password", "The passwords that may be in force for an account."),
    "rotate-state-key": (
        "sallyport.endpoints.agents.cli:rotate_state_key",
        "Sign what agents are told by a new key.",
    ),
    "settings": ("sallyport.endpoints.agents.cli:settings", "How the agents of a domain behave."),
    "show": ("sallyport.endpoints.agents.cli:show", "How it stands with a machine."),
    "status": ("sallyport.agent.endpoint.cli:status", "How the endpoint agent of this host stands."),
    "take-over": ("sallyport.endpoints.agents.cli:take_over", "Let an agent manage accounts that it has found."),
    "uninstall": ("sallyport.agent.install_cli:uninstall", "Stop an agent and remove its unit."),
}


@click.group(cls=LazyGroup, listed=COMMANDS)
def agent() -> None:
    """Agents: beside a directory or on a machine that the service does not reach."""
