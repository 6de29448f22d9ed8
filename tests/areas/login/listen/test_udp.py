"""Tests of UDP sockets: the source addresses of answers, and turns between senders."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

import pytest
import trio

from sallyport.areas.login.listen.udp import DRAIN, MIN_READ, PASS_S, Datagram, bind, own_address, receive
from sallyport.settings.values import Address

NAMESPACE = os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip")


@pytest.mark.skipif(not NAMESPACE, reason="needs root, unshare and ip, for a network namespace")
def test_an_answer_leaves_from_the_address_that_was_asked() -> None:
    """A socket on all addresses sends each answer from the address that received the request, as a NAS expects."""
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-m", "tests.areas.login.listen.many_addresses"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "127.0.0.1 hello3",
        "192.0.2.7 hello3",
        "::1 hello3",
        "2001:db8::7 hello3",
    ], done.stdout  # a missing answer has the addresses and routes of the namespace


def test_routing_chooses_the_interface() -> None:
    """Routing chooses the interface of an answer, except for an address that needs an interface."""
    v4 = socket.inet_aton("192.0.2.7")
    assert own_address((2).to_bytes(4, "little") + v4 + v4) == bytes(4) + v4 + bytes(4)
    wide = socket.inet_pton(socket.AF_INET6, "2001:db8::7")
    assert own_address(wide + (2).to_bytes(4, "little")) == wide + bytes(4)
    link = socket.inet_pton(socket.AF_INET6, "fe80::7") + (2).to_bytes(4, "little")
    assert own_address(link) == link


class Taken:
    """A record of the datagrams in order, and of the number of datagrams in each turn of the event loop.

    turn_s: the time that each turn takes, in seconds.
    """

    def __init__(self, turn_s: float = 0) -> None:
        self.turn_s = turn_s
        self.datagrams: list[bytes] = []
        self.refused: list[bytes] = []
        self.turns = [0]

    def take(self, datagrams: list[Datagram]) -> None:
        """Record the datagrams of a turn."""
        self.datagrams += [octets for octets, *_ in datagrams]
        self.turns[-1] += len(datagrams)
        time.sleep(self.turn_s)

    def turn(self) -> None:
        """Record the end of a turn."""
        self.turns.append(0)


async def received(
    sent: list[tuple[socket.socket, bytes]],
    *,
    ahead: int,
    tenants: Mapping[socket.socket, int] | None = None,
    turn_s: float = 0,
) -> Taken:
    """Send datagrams to a socket on loopback, then read all of them.

    There are few enough of them for any system's buffer.
    """
    taken = Taken(turn_s)
    with bind(Address("127.0.0.1", 0), "radius_auth_bind") as sock:
        for sender, datagram in sent:
            sender.sendto(datagram, sock.getsockname())
        of_port = {sender.getsockname()[1]: tenant for sender, tenant in (tenants or {}).items()}
        work = partial(
            receive,
            sock,
            taken.take,
            taken.turn,
            owner=lambda source: of_port.get(source[1], 0),
            refuse=lambda datagram, _source, _at: taken.refused.append(datagram),
            ahead=ahead,
        )
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(work)
                while len(taken.datagrams) + len(taken.refused) < len(sent):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
    return taken


async def test_a_burst_does_not_delay_others() -> None:
    """Datagrams that arrive after a burst of another source are read in the next turns.

    Datagrams of one source stay in order, and a turn reads a limited number.
    """
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as burst,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain,
    ):
        many = [b"burst%d" % number for number in range(3 * DRAIN)]
        few = [b"plain%d" % number for number in range(3)]
        taken = await received([(burst, each) for each in many] + [(plain, each) for each in few], ahead=1000)
    at = [taken.datagrams.index(each) for each in few]
    assert at == [DRAIN + 1, DRAIN + 3, DRAIN + 5]
    assert [each for each in taken.datagrams if each in set(many)] == many
    assert max(taken.turns) == DRAIN


async def test_slow_turns_become_shorter() -> None:
    """While datagrams wait in the queue and a turn takes too long, the next turn processes half as many, down to a
    minimum."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as burst:
        many = [b"%d" % number for number in range(4 * DRAIN)]
        taken = await received([(burst, each) for each in many], ahead=1000, turn_s=2 * PASS_S)
    assert taken.turns[:6] == [DRAIN, DRAIN // 2, DRAIN // 4, MIN_READ, MIN_READ, MIN_READ]
    assert taken.datagrams == many


async def test_tenants_take_turns() -> None:
    """A tenant with many sources has only one turn. The datagrams of another tenant are read in the next turns."""
    with ExitStack() as stack:
        many = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(3 * DRAIN)]
        plain = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        plain.bind(("127.0.0.1", 0))
        few = [b"plain%d" % number for number in range(3)]
        sent = [(each, b"burst") for each in many] + [(plain, each) for each in few]
        taken = await received(sent, ahead=1000, tenants={plain: 2})
    assert [taken.datagrams.index(each) for each in few] == [DRAIN + 1, DRAIN + 3, DRAIN + 5]


async def test_a_tenant_with_its_share_gets_no_more_in() -> None:
    """Datagrams beyond the share of a tenant are dropped and counted.

    A datagram of another tenant is still accepted.
    """
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as burst,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain,
    ):
        plain.bind(("127.0.0.1", 0))
        many = [b"%d" % number for number in range(4 * DRAIN)]
        # The second tenant's datagram is read in the second round, when the first tenant's datagrams have filled the
        # queue.
        taken = await received([(burst, each) for each in many] + [(plain, b"plain")], ahead=DRAIN, tenants={plain: 2})
    assert taken.refused
    assert sorted((*taken.datagrams, *taken.refused)) == sorted((*many, b"plain"))
    assert b"plain" in taken.datagrams
    assert max(taken.turns) == DRAIN
