"""Tests of the campaign of faults: its schedule, its helpers in C, and a round in which something is planted."""

import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import cast

import pytest
from click.testing import CliRunner

from sallyport.radius.attributes import REPLY_MESSAGE, push_attribute
from sallyport.radius.packet import ACCESS_ACCEPT, SharedSecret, decode, encode_reply
from tests.bench.radload import compile_radload
from tests.ports import free_port
from tests.running_service import Ports
from tests.soak.__main__ import main
from tests.soak.disk import MountedDisk
from tests.soak.history import History, Login
from tests.soak.judging import check
from tests.soak.nas import Nas, Turn
from tests.soak.outages import FAULTS, kinds
from tests.soak.programs import SYNCS, WRITES, Relay, Shim, compile_shim, compiled
from tests.soak.report import Figures
from tests.soak.runner import Tools, run_round
from tests.soak.schedule import Round, Step, rounds
from tests.soak.site import SECRET, Site, running_site
from tests.torture.disk import SmallDisk, needs_mounts, small_disk

pytestmark = pytest.mark.torture


# --- the schedule -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_seed_repeats_its_schedule(engine: str) -> None:
    """The same seed has the same faults at the same times. Another seed or installation has others."""
    first = rounds(7, 0, kinds(engine))
    assert rounds(7, 0, kinds(engine)) == first
    assert rounds(8, 0, kinds(engine)) != first
    assert rounds(7, 1, kinds(engine)) != first


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_fault_comes_and_one_at_a_place(engine: str) -> None:
    """Some installations have every fault of the engine. The faults of a place follow one another, and calm rounds have
    only those that disturb no other tenant."""
    by_name = {each.name: each for each in FAULTS}
    found = [each for number in range(5) for each in rounds(1, number, kinds(engine))]
    assert {step.fault for each in found for step in each.steps} == {each.name for each in kinds(engine)}
    for each in found:
        assert not (each.is_calm and any(by_name[step.fault].disturbs_all for step in each.steps))
        for place in {by_name[step.fault].place for step in each.steps}:
            own = [step for step in each.steps if by_name[step.fault].place == place]
            assert all(before.at_s + before.lasts_s <= after.at_s + 0.01 for before, after in pairwise(own))


def test_the_command_names_its_options() -> None:
    """`python -m tests.soak --help` names the engine and the seed."""
    shown = CliRunner().invoke(main, ["--help"])
    assert shown.exit_code == 0
    assert "--engine" in shown.output
    assert "--seed" in shown.output


# --- the helpers in C ---------------------------------------------------------------------------------------------

TRIES = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
print("ready", flush=True)
for line in sys.stdin:
    try:
        os.pwrite(file, b"octets", 0), os.fdatasync(file)
        told = "written"
    except OSError as error:
        told = error.errno
    print(told, time.time(), flush=True)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library for LD_PRELOAD."""
    return compile_shim(tmp_path_factory.mktemp("shim"))


def test_the_shim_fails_calls_and_sets_the_clock(library: Path, tmp_path: Path) -> None:
    """Calls on the files of the data directory fail as long as they should, others do not, and the clock of the day
    is changed at once."""
    data = tmp_path / "data"
    data.mkdir()
    shim = Shim(data)
    environ = {**os.environ, **shim.environ, "LD_PRELOAD": str(library)}
    for path, is_of_the_service in ((data / "file", True), (tmp_path / "file", False)):
        command = [sys.executable, "-c", TRIES, path]
        with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tries:
            assert tries.stdin is not None
            assert tries.stdout is not None
            tries.stdout.readline()

            def told(tries: "subprocess.Popen[str]" = tries) -> tuple[str, float]:
                assert tries.stdin is not None
                assert tries.stdout is not None
                tries.stdin.write("\n")
                tries.stdin.flush()
                result, at = tries.stdout.readline().split()
                return result, float(at) - time.time()

            result, ahead = told()
            assert (result, abs(ahead) < 30) == ("written", True)
            for calls, error in ((WRITES, errno.EIO), (SYNCS, errno.ENOSPC)):
                shim.fail(calls, error, 1)
                shim.set_clock(-3600)
                result, ahead = told()
                assert (result, -3660 < ahead < -3540) == (str(error) if is_of_the_service else "written", True)
                shim.fail(0, 0, 1)
                shim.set_clock(0)
            assert told()[0] == "written"
            tries.stdin.close()
    assert shim.failed == 2
    assert shim.stepped > 0


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program of the relay."""
    return compiled("relay.c", tmp_path_factory.mktemp("relay") / "relay")


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Yield the socket of a server that a relay passes datagrams to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", free_port()))
        server.settimeout(10)
        yield server


def test_the_relay_keeps_clients_apart_and_disturbs(relay: Path, server: socket.socket) -> None:
    """Each socket of a client has its own port at the server, with the client's address. Datagrams are lost and
    repeated as told, and counted."""
    port = server.getsockname()[1]
    passing = Relay(relay, [Ports(0, port, free_port())], 1)
    with ExitStack() as held:
        clients = [held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)]
        senders = []
        for client, source in zip(clients, ("127.0.0.5", "127.0.0.6"), strict=True):
            client.bind((source, 0))
            client.connect(("127.0.0.1", passing.ports[0].auth))
            client.settimeout(10)
            client.send(b"request")
            octets, sender = server.recvfrom(100)
            server.sendto(b"answer", sender)
            assert (octets, client.recv(100)) == (b"request", b"answer")
            senders.append(sender)
        assert [sender[0] for sender in senders] == ["127.0.0.5", "127.0.0.6"]
        passing.disturb(loss=1000)
        clients[0].send(b"lost")
        assert passing.disturb(repeat=1000, delay=1000).lost == 1
        clients[0].send(b"twice")
        assert [server.recv(100), server.recv(100)] == [b"twice", b"twice"]
    passed = passing.close()
    assert (passed.received, passed.lost, passed.repeated, passed.delayed) == (6, 1, 1, 1)


@needs_mounts
def test_a_full_disk(tmp_path: Path) -> None:
    """A full disk has room for so many octets, and afterwards for all."""
    with small_disk(tmp_path, 8) as small:
        disk = MountedDisk(small.holder, small.inside)
        (disk.outside / "file").write_bytes(bytes(100_000))
        disk.fill(4096)
        assert disk.free() == 4096
        with pytest.raises(OSError, match="No space left"):
            (disk.outside / "other").write_bytes(bytes(8192))
        disk.clear()
        assert disk.free() > 100_000_000


# --- a NAS --------------------------------------------------------------------------------------------------------


def test_a_nas_reads_late_and_forged_answers(tmp_path: Path, server: socket.socket) -> None:
    """A NAS counts each different Accept that it receives, also after the first one, and answers without a request
    of its own. With one node, its second packet comes from another port."""
    port = server.getsockname()[1]
    site = SimpleNamespace(history=History(), relay=SimpleNamespace(ports=[Ports(0, port, 0)]))
    plan = Round(0, 1, False, 5, ())
    senders = set()

    def answer() -> None:
        for number in range(2):
            request, sender = server.recvfrom(4096)
            senders.add(sender)
            if number == 1:
                opened = decode(request, SharedSecret(SECRET.encode()))
                for text in (b"first", b"second"):
                    extra = push_attribute(REPLY_MESSAGE, text)
                    server.sendto(encode_reply(ACCESS_ACCEPT, opened, SharedSecret(SECRET.encode()), extra), sender)
                server.sendto(encode_reply(ACCESS_ACCEPT, opened, SharedSecret(b"another secret")), sender)

    answering = Thread(target=answer)
    answering.start()
    with Nas(cast("Turn", SimpleNamespace(site=site, round=plan)), "push") as nas:
        login = nas.log_in(Login("push", "ann", "02-50-00-00-00-01"), "hello", tries=1)
    answering.join()
    assert (login.decision, login.accepts, len(login.packets), len(senders)) == ("accept", 2, 2, 2)
    assert site.history.forged == 1


# --- a round ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory, relay: Path) -> Tools:
    """Return the tools of a round. Their disk is that of the machine."""
    directory = tmp_path_factory.mktemp("campaign")
    (directory / "disk").mkdir()
    return Tools(relay, compile_radload(directory), directory, directory / "disk")


@pytest.fixture(scope="module")
def site(tools: Tools) -> Iterator[Site]:
    """Yield an installation on SQLite."""
    (tools.directory / "site").mkdir()
    disk = SmallDisk(os.getpid(), tools.disk)
    with running_site(tools.directory / "site", disk, tools.relay, 1, engine="sqlite") as site:
        yield site


@pytest.mark.system
def test_a_round_finds_what_is_planted(site: Site, tools: Tools) -> None:
    """A round with a storm of kills has no finding. After a stored login is deleted, its missing answer is found."""
    figures = Figures()
    plan = Round(0, 1, False, 5, (Step(0.5, 0.1, "storm", 1), Step(1.5, 0.5, "datagrams", 2)))
    assert run_round(site, plan, tools, figures, 3.0) == []
    assert figures.kills >= 4
    assert figures.logins > 0
    site.nodes[0].execute("delete from events where station like '02-50-%'")
    assert any("stored []" in each for each in check(site, plan, Figures(), []))
