"""Builds the parts of the endpoint agent from its configuration file. It also locks the agent's accounts without
contacting the service."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from sallyport.agent import file
from sallyport.agent.endpoint.accounts import read
from sallyport.agent.endpoint.agent import Endpoint, StateFile
from sallyport.agent.endpoint.executor import Executor, Keys, Options, Tools
from sallyport.agent.endpoint.files import Files
from sallyport.agent.endpoint.identity import Identity
from sallyport.agent.endpoint.memory import MemoryFile
from sallyport.agent.endpoint.plan import plan
from sallyport.agent.endpoint.processes import NO_PROCESSES, Processes
from sallyport.agent.endpoint.rotation import Journal, Rotator
from sallyport.agent.endpoint.service import Service
from sallyport.agentwire.state import Removal, Settings, State
from sallyport.base.errors import ConfigError, HostError
from sallyport.host.notify import Notifier

AGENT: Final = "endpoint"
_STATE: Final = "endpoint-state.json"
_MEMORY: Final = "endpoint-memory.json"
_JOURNAL: Final = "endpoint-rotation.json"


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The parts of the agent that need no connection to the service."""

    executor: Executor
    journal: Journal
    states: StateFile

    def endpoint(self, service: Service, identity: Identity, systemd: Notifier) -> Endpoint:
        """Return the agent that uses these parts, the client of the service, and the identity."""
        rotator = Rotator(self.executor, self.journal, service)
        return Endpoint(self.executor, rotator, service, identity, self.states, alive=systemd.alive)


def options(own: file.SettingsTable) -> Options:
    """Return the options in the `[endpoint]` table of the agent's file. Raises ConfigError."""
    keys = own.choice("keys", "file", "command", "off")
    keys_dir = own.text("keys_dir", Options().keys_dir)
    protected = frozenset(own.texts("protected"))
    own.end()
    if not keys_dir.startswith("/") or ".." in keys_dir.split("/"):
        raise own.wrong("keys_dir", "must be an absolute path")
    return Options(cast(Keys, keys), keys_dir.rstrip("/"), protected)


def parts(agent_file: file.AgentFile, prefix: Path) -> AgentParts:
    """Return the parts of the agent for the host whose root directory is `prefix`. Raises ConfigError."""
    folder = agent_file.state_dir
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror}") from None
    memory = MemoryFile(folder / _MEMORY)
    processes = Processes() if prefix == Path("/") else NO_PROCESSES
    executor = Executor(Files(prefix), Tools(prefix), memory, options(agent_file.own), processes)
    return AgentParts(executor, Journal(folder / _JOURNAL), StateFile(folder / _STATE))


def lock_all(config: Path, prefix: Path) -> Iterator[tuple[str, str]]:
    """Lock the accounts that the agent manages, and remove their keys and their sudo rules.

    Yield (step, error) for each step. The error is an empty text if the step succeeded. Raises ConfigError. Raises
    Locked if the agent is running.
    """
    agent_file = file.read(config, AGENT)
    agent_file = replace(agent_file, state_dir=prefix / agent_file.state_dir.relative_to("/"))
    executor = parts(agent_file, prefix).executor
    nothing = State(0, 0, 0, settings=Settings(removal=Removal.LOCK))
    with file.alone(agent_file.state_dir):
        for step in plan(nothing, read(executor.files), executor, now=0).steps:
            try:
                step.do()
            except (HostError, ConfigError) as error:
                yield f"{step.kind} {step.name}".strip(), str(error)
            else:
                yield f"{step.kind} {step.name}".strip(), ""
