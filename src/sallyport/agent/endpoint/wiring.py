"""The endpoint agent put together from its file: the parts that it needs, wired as the host is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from sallyport.agent import file
from sallyport.agent.endpoint.agent import Endpoint, StateFile
from sallyport.agent.endpoint.executor import Executor, Keys, Options
from sallyport.agent.endpoint.files import Files
from sallyport.agent.endpoint.identity import Identity
from sallyport.agent.endpoint.memory import MemoryFile
from sallyport.agent.endpoint.processes import NO_PROCESSES, Processes
from sallyport.agent.endpoint.rotation import Journal, Rotator
from sallyport.agent.endpoint.service import Service
from sallyport.agent.endpoint.tools import Tools
from sallyport.base.errors import ConfigError
from sallyport.base.notify import Notifier

AGENT: Final = "endpoint"
_STATE: Final = "endpoint-state.json"
_MEMORY: Final = "endpoint-memory.json"
_JOURNAL: Final = "endpoint-rotation.json"


@dataclass(frozen=True, slots=True)
class Parts:
    """What works on the host without the service."""

    executor: Executor
    journal: Journal
    states: StateFile

    def endpoint(self, service: Service, identity: Identity, systemd: Notifier) -> Endpoint:
        """The agent."""
        rotator = Rotator(self.executor, self.journal, service)
        return Endpoint(self.executor, rotator, service, identity, self.states, alive=systemd.alive)


def options(own: file.Table) -> Options:
    """The agent's table in its file. ConfigError."""
    keys = own.choice("keys", "file", "command", "off")
    keys_dir = own.text("keys_dir", Options().keys_dir)
    protected = frozenset(own.texts("protected"))
    own.end()
    if not keys_dir.startswith("/") or ".." in keys_dir.split("/"):
        raise own.wrong("keys_dir", "must be an absolute path")
    return Options(cast(Keys, keys), keys_dir.rstrip("/"), protected)


def parts(agent_file: file.AgentFile, prefix: Path) -> Parts:
    """The host whose root directory is `prefix`, and what is remembered of it. ConfigError."""
    directory = agent_file.state_dir
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}") from None
    memory = MemoryFile(directory / _MEMORY)
    processes = Processes() if prefix == Path("/") else NO_PROCESSES
    executor = Executor(Files(prefix), Tools(prefix), memory, options(agent_file.own), processes)
    return Parts(executor, Journal(directory / _JOURNAL), StateFile(directory / _STATE))
