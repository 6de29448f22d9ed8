"""Taking the agent's accounts out of use when the agent goes: no service is asked."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sallyport.agent import file
from sallyport.agent.disk import alone
from sallyport.agent.endpoint.accounts import read
from sallyport.agent.endpoint.plan import plan
from sallyport.agent.endpoint.wiring import AGENT, parts
from sallyport.base.agentwire.state import Removal, Settings, State
from sallyport.base.errors import ConfigError, HostError


def lock_all(config: Path, prefix: Path) -> Iterator[tuple[str, str]]:
    """Lock the accounts that the agent manages, take their keys and their sudo: each step, and why not.

    ConfigError; Locked: the agent runs.
    """
    agent_file = file.read(config, AGENT)
    agent_file = replace(agent_file, state_dir=prefix / agent_file.state_dir.relative_to("/"))
    executor = parts(agent_file, prefix).executor
    nobody = State(0, 0, 0, settings=Settings(removal=Removal.LOCK))
    with alone(agent_file.state_dir):
        for step in plan(nobody, read(executor.files), executor, now=0).steps:
            try:
                step.do()
            except (HostError, ConfigError) as error:
                yield f"{step.kind} {step.name}".strip(), str(error)
            else:
                yield f"{step.kind} {step.name}".strip(), ""
