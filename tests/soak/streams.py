"""The clients of a round that keep connections open: a RadSec proxy, and endpoint agents."""

import secrets
import ssl
import time
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final

import trio

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import CALLING_STATION_ID, NAS_IDENTIFIER, push_attribute
from sallyport.radius.packet import decode_reply
from tests.bench.agents import Agent, Fleet, live
from tests.bench.settings import BenchmarkError
from tests.packets import pap
from tests.radsec_client import RADSEC, RadSecClient, client_context, connected
from tests.soak.history import Login, Packet
from tests.soak.nas import PATIENCE_S, Turn
from tests.soak.site import AGENT_DOMAINS, PASSWORD, SERVER_NAME, client_certificate

Lost = (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError, ssl.SSLError)
"""What a connection raises that a fault has ended."""
ANSWER_S: Final = 5.0
"""A RadSec client without an answer for this time opens another connection."""
PATH: Final = "/api/v1/endpointUsers/updateEpmUserInfo"
LATE_S: Final = 30.0
"""The time within which an agent has a new state, once all faults are over."""


# --- RadSec --------------------------------------------------------------------------------------------------------


def log_in_over_tls(turn: Turn) -> None:
    """Send logins over a connection with TLS, and open another one when it has ended."""
    trio.run(_log_in_over_tls, turn)


async def _log_in_over_tls(turn: Turn) -> None:
    random = turn.random("radsec")
    context = client_context(turn.site.nodes[0].data_dir / "certs" / "ca.pem", client_certificate(turn.site))
    login = _login(turn, random)
    while not turn.over.is_set() or (login.packets and time.monotonic() < login.began + PATIENCE_S):
        node = random.randrange(len(turn.site.nodes))
        with suppress(*Lost):
            async with connected(turn.site.radsec_ports[node], context, host=SERVER_NAME) as client:
                while not turn.over.is_set() or login.packets:
                    await _ask(turn, client, login, node)
                    login = _login(turn, random)
                    await trio.sleep(random.uniform(0, 0.3))
        await trio.sleep(0.2)
    if login.packets:
        login.ended = time.monotonic()
        turn.site.history.add(login)


def _login(turn: Turn, random: Random) -> Login:
    is_right = random.random() < 0.8
    forbidden = "" if is_right else "the password is wrong"
    return Login("radsec", "ann", turn.station(), expected=is_right, forbidden=forbidden, began=time.monotonic())


async def _ask(turn: Turn, client: RadSecClient, login: Login, node: int) -> None:
    """Send a login, and record its answer. A connection that ends before the answer raises one of `Lost`."""
    password = PASSWORD if login.expected else "not the password"
    body = push_attribute(NAS_IDENTIFIER, b"proxy") + push_attribute(CALLING_STATION_ID, login.station.encode())
    octets = pap("ann", password, body, secret=RADSEC.octets)
    packet = Packet(node, octets=octets, first=time.monotonic(), last=time.monotonic(), sent=1)
    login.packets.append(packet)
    await client.send(octets)
    with trio.fail_after(ANSWER_S):
        reply = await client.reply()
    try:
        decode_reply(reply, octets, RADSEC)
    except PacketError:
        turn.site.history.count(forged=1)
        return
    packet.replies.append(reply)
    login.code, login.node, login.ended = reply[0], node, time.monotonic()
    turn.site.history.add(login)


# --- endpoint agents -----------------------------------------------------------------------------------------------


def run_agents(turn: Turn) -> None:
    """Let the agents of each node wait for new states and report, while their users are changed. At the end of the
    round, each agent must have the state of the last change that the service has confirmed."""
    trio.run(_run_agents, turn)


async def _run_agents(turn: Turn) -> None:
    random = turn.random("agents")
    agents = [(number, agent) for number, fleet in enumerate(turn.site.fleets) for agent in fleet.agents]
    before = sum(agent.states for _, agent in agents)
    async with trio.open_nursery() as nursery:
        for number, agent in agents:
            agent.changed_at = None
            nursery.start_soon(_live, turn.site.fleets[number], agent)
        while not turn.over.is_set():
            number, agent = random.choice(agents)
            if agent.changed_at is None:
                await _change(turn, number, agent)
            await trio.sleep(random.uniform(0.2, 1))
        with trio.move_on_after(LATE_S):
            while any(agent.changed_at for _, agent in agents):
                await trio.sleep(0.1)
        turn.site.history.outdated_agents = sum(agent.changed_at is not None for _, agent in agents)
        turn.site.history.states = sum(agent.states for _, agent in agents) - before
        nursery.cancel_scope.cancel()


async def _live(fleet: Fleet, agent: Agent) -> None:
    while True:
        with suppress(BenchmarkError):  # a fault: the node answers 503
            await live(fleet, agent)


async def _change(turn: Turn, number: int, agent: Agent) -> None:
    """Give the user of a machine another password. Each makes another state, also if an earlier change is made late. If
    the answer is lost, it is unknown whether the machine has a new state."""
    agent.changed_at = time.monotonic()  # the agent may be quicker than the answer
    body = {"userId": turn.site.machine_users[agent.instance], "password": secrets.token_hex(8)}
    change = partial(turn.site.nodes[number].run, PATH, body, domain=AGENT_DOMAINS[number])
    try:
        await trio.to_thread.run_sync(change)
    except (OSError, AssertionError, ValueError):
        agent.changed_at = None
