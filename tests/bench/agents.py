"""A thousand endpoint agents on one service. Each agent has a connection of its own, waits for its next state and
reports every thirty seconds. Meanwhile an admin assigns users to machines, one after the other. The benchmark measures
the service's processor time, its memory, and the delay from the answer to the admin until the agent has received the
new state.
"""

import json
import os
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import trio

from sallyport.agentwire.envelope import open_envelope
from sallyport.agentwire.fields import REPORT, STATE
from sallyport.agentwire.state import State
from sallyport.base.secret import new_key, token_hash
from sallyport.base.wire import decode, loads
from sallyport.cli.benchmark.processes import cpu_s, process_tree

from .child import child_process, wait_until
from .lists import Tenant, add_tenant, environ_of, tell
from .sallyport import PROGRAM, is_ready
from .settings import BenchmarkError, Settings

AGENTS = 1000
EVERY_S = 30
WINDOW_S = 90.0
CHANGES_S = 0.5
AGAIN_S = 3.0
LIMIT_S = 2.0
"""Maximum delay of a change, in seconds."""


@dataclass
class Agent:
    """An agent. changed_at: the time of the last change of its machine's state, or None if the agent has received that
    state.
    """

    instance: int
    key: str
    version: int = 0
    states: int = 0
    changed_at: float | None = None


@dataclass
class Fleet:
    """All agents and their measurements. delays: the seconds from each change to the arrival of its state. lost: the
    number of lost connections.
    """

    port: int
    agents: list[Agent] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    requests: int = 0
    lost: int = 0


def run(settings: Settings) -> str:
    """Enrol the agents, measure, and return Markdown. Raises BenchmarkError if the service does not start or gives a
    wrong answer.
    """
    with TemporaryDirectory(prefix="bench-", dir=settings.directory) as name:
        return measure(Path(name), agents=AGENTS, seconds=WINDOW_S)


def measure(directory: Path, *, agents: int, seconds: float) -> str:
    """Do the same as `run` in an empty directory, with this number of agents and for this number of seconds."""
    environ = dict(environ_of(directory / "data"))
    tenant = add_tenant(environ, directory, 1)
    port = int(environ["SALLYPORT_HTTP_BIND"].rpartition(":")[2])
    output = directory / "log"
    with child_process([PROGRAM, "serve"], directory=directory, output=output, environment=environ) as process:
        wait_until(lambda: is_ready(port), process, output, seconds=30)
        fleet = trio.run(enrol, port, tenant, agents)
        return trio.run(_measure, fleet, tenant, process.pid, seconds)


async def enrol(port: int, tenant: Tenant, count: int) -> Fleet:
    """Register machines in a tenant's domain, each with a key of its own."""
    fleet = Fleet(port)
    async with _client(port, tenant.token) as http:
        made = await _post(http, "/api/v1/agent/createKey", {"domainId": tenant.domain_id})
        for number in range(count):
            machine = {"machineKey": made["apiKey"], "instanceName": f"m{number:04}", "machineId": f"id{number}"}
            registered = await _post(http, "/api/v1/machine/add-machine", machine)
            own, instance = new_key(), int(str(registered["instanceId"]))
            body = {"keyHash": token_hash(own), "instanceId": instance}
            headers = {"X-Authorization": str(made["apiKey"])}
            await _post(http, "/api/v1/agent/exchangeKey", body, headers)
            fleet.agents.append(Agent(instance, own))
            if len(fleet.agents) % 100 == 0 or len(fleet.agents) == count:
                tell(f"{len(fleet.agents)} of {count} agents are enrolled")
    return fleet


async def _measure(fleet: Fleet, tenant: Tenant, process_id: int, seconds: float) -> str:
    async with trio.open_nursery() as nursery, _client(fleet.port, tenant.token) as http:
        for agent in fleet.agents:
            nursery.start_soon(live, fleet, agent)
        with trio.fail_after(120):
            while not all(agent.states for agent in fleet.agents):
                await trio.sleep(0.1)
        tell("all agents have their state")
        await trio.sleep(2)
        fleet.requests, fleet.lost, before, began = 0, 0, cpu_s(process_id), time.monotonic()
        with trio.move_on_after(seconds / 2):
            await trio.sleep_forever()
        idle = (cpu_s(process_id) - before) / (time.monotonic() - began)
        before, began = cpu_s(process_id), time.monotonic()
        with trio.move_on_after(seconds / 2):
            await _change(fleet, tenant, http)
        busy = (cpu_s(process_id) - before) / (time.monotonic() - began)
        rate = fleet.requests / seconds
        memory = sum(_memory_mib(each) for each in process_tree(process_id))
        nursery.cancel_scope.cancel()
    return _table(fleet, idle, busy, rate, memory)


async def _change(fleet: Fleet, tenant: Tenant, http: httpx.AsyncClient) -> None:
    """Assign a user to a machine or remove it from the machine, again and again."""
    made = await _post(http, "/api/v1/endpointUsers/addEpmUserInfo", {"domainId": tenant.domain_id, "userName": "ann"})
    assigned: set[int] = set()
    while True:
        agent = random.choice([each for each in fleet.agents if each.changed_at is None])
        action = "remove" if agent.instance in assigned else "add"
        assigned ^= {agent.instance}
        body = {"domainId": tenant.domain_id, "instanceIds": [agent.instance], "userIds": [int(str(made["userId"]))]}
        agent.changed_at = time.monotonic()  # set before the answer arrives, because the agent may be quicker
        await _post(http, "/api/v1/instances/assignUsersToMachines", {**body, "action": action})
        await trio.sleep(CHANGES_S)


async def live(fleet: Fleet, agent: Agent) -> None:
    """Poll and report until cancelled. After a lost connection open a new one, as real agents do."""
    while True:
        await trio.sleep(AGAIN_S * random.random())
        with suppress(OSError, trio.BrokenResourceError):
            async with await trio.open_tcp_stream("127.0.0.1", fleet.port) as stream:
                while await _turn(fleet, agent, stream):
                    pass
        fleet.lost += 1


async def _turn(fleet: Fleet, agent: Agent, stream: trio.SocketStream) -> bool:
    """Send one poll and one report. Return False if the service has closed the connection."""
    poll = {"version": agent.version, "waitS": EVERY_S}
    answer = await _ask(fleet, agent, stream, STATE, poll)
    if not answer:
        return False
    signed = open_envelope(json.loads(answer))
    if signed is not None:
        agent.version = decode(State, loads(signed.payload, most=1 << 22)).version
        agent.states += 1
        if agent.changed_at is not None:
            fleet.delays.append(time.monotonic() - agent.changed_at)
            agent.changed_at = None
    report = {"id": f"r{random.getrandbits(60):x}-bench", "at": 1, "version": agent.version}
    return bool(await _ask(fleet, agent, stream, REPORT, report))


async def _ask(
    fleet: Fleet, agent: Agent, stream: trio.SocketStream, path: str, message: Mapping[str, object]
) -> bytes:
    """Send one request on an agent's connection and return the body of the answer.

    The body is empty if the connection was closed. Raises BenchmarkError if the status is not 200.
    """
    body = json.dumps(message).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {agent.key}\r\n"
    await stream.send_all(
        f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )
    octets = b""
    while b"\r\n\r\n" not in octets:
        piece = await stream.receive_some(65536)
        if not piece:
            return b""
        octets += piece
    top, _, octets = octets.partition(b"\r\n\r\n")
    if not top.startswith(b"HTTP/1.1 200"):
        raise BenchmarkError(f"{path}: {top[:60]!r} {octets[:200]!r}")
    length = next(int(line[15:]) for line in top.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(octets) < length:
        octets += await stream.receive_some(65536)
    fleet.requests += 1
    return octets


def _client(port: int, token: str) -> httpx.AsyncClient:
    headers = {"X-Authorization": token}
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60, trust_env=False)


async def _post(
    http: httpx.AsyncClient, path: str, body: Mapping[str, object], headers: Mapping[str, str] | None = None
) -> Mapping[str, object]:
    answer = await http.post(path, json=body, headers=headers)
    if answer.status_code != 200:
        raise BenchmarkError(f"{path}: {answer.status_code} {answer.text[:200]}")
    told: Mapping[str, object] = answer.json()
    return told


def _memory_mib(process_id: int) -> float:
    with suppress(OSError):
        return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    return 0.0


def _table(fleet: Fleet, idle: float, busy: float, rate: float, memory: float) -> str:
    delays = sorted(fleet.delays)
    if not delays:
        raise BenchmarkError("no change reached an agent")
    middle, most = delays[len(delays) // 2], delays[-1]
    rows = [
        ("agents that wait, each reporting every 30 s", f"{len(fleet.agents):,}"),
        ("requests/s", f"{rate:.0f}"),
        ("cores, while nothing changes", f"{idle:.2f}"),
        (f"cores, with a change every {CHANGES_S:g} s", f"{busy:.2f}"),
        ("connections lost", f"{fleet.lost}"),
        ("MiB of the service", f"{memory:.0f}"),
        (f"a change at its agent, s: median, longest of {len(delays)}", f"{middle:.2f}, {most:.2f}"),
        (f"all within {LIMIT_S:g} s", "yes" if most < LIMIT_S else "no"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
