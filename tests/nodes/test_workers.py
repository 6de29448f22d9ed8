"""A service with several workers, as an operator runs it."""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.nodes.cluster import Cluster, running_cluster
from tests.peers.postgres import needs_postgres, runs
from tests.ports import free_port
from tests.radius_client import RadiusClient
from tests.running_service import RunningService
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_postgres]
ACCEPT = 2
SECRET = "xyzzy5461"
PAGES = free_port()
SENDERS = 16
"""With so many, the odds that the kernel gives all to one worker are 1 to 32,768."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield a service with two workers, a RADIUS client and a user."""
    settings = {
        "SALLYPORT_REJECT_DELAY_S": "0",
        "SALLYPORT_WORKERS": "2",
        "SALLYPORT_PEOPLE_BIND": f"127.0.0.1:{PAGES}",
        "SALLYPORT_PUBLIC_URL": "https://login.example.org",
    }
    with running_cluster(("one",), settings) as cluster:
        service = cluster.nodes[0]
        service.add_client("vpn", "127.0.0.1", SECRET)
        service.add_user("ann", "correct horse")
        yield cluster


@pytest.fixture
def service(cluster: Cluster) -> RunningService:
    """Return the service."""
    return cluster.nodes[0]


def lines(service: RunningService, event: str) -> list[dict[str, object]]:
    """Return the log lines of an event."""
    found = [json.loads(line) for line in service.log().splitlines() if line.startswith("{")]
    return [line for line in found if line["event"] == event]


def workers(service: RunningService) -> list[int]:
    """Return the process IDs of the workers."""
    children = Path(f"/proc/{service.process_id}/task/{service.process_id}/children").read_text().split()
    return [int(each) for each in children]


def metrics(service: RunningService) -> str:
    """Return the metrics."""
    return httpx.get(f"http://127.0.0.1:{service.ports.http}/metrics", trust_env=False, timeout=30).text


def test_the_workers_share_the_pages_of_people(service: RunningService) -> None:
    """The pages answer, and their address has no metrics."""
    base = f"http://127.0.0.1:{PAGES}"
    statuses = [httpx.get(f"{base}{path}", trust_env=False, timeout=30).status_code for path in ("/mfa", "/metrics")]
    assert statuses == [200, 404]


def accepted_by(service: RunningService) -> dict[str, float]:
    """Return the number of accepts that each worker has sent."""
    name = r'sallyport_radius_responses_total\{worker="(\d)",listener="auth",type="Access-Accept"\} (\S+)'
    return {worker: float(value) for worker, value in re.findall(name, metrics(service))}


def log_in_from_many(service: RunningService, stack: ExitStack) -> list[RadiusClient]:
    """Log in once from each of many sockets, and return them."""
    clients = [stack.enter_context(service.radius(SECRET)) for _ in range(SENDERS)]
    assert [each.login("ann", "correct horse") for each in clients] == [ACCEPT] * SENDERS
    return clients


def test_both_workers_take_part(service: RunningService) -> None:
    """Many senders are divided between the workers, each of which is a node, and one address has the metrics of all."""
    before = accepted_by(service)
    with ExitStack() as stack:
        log_in_from_many(service, stack)
    after = accepted_by(service)
    gained = {worker: after[worker] - before.get(worker, 0.0) for worker in after}
    assert set(gained) == {"1", "2"}
    assert all(gained.values())
    assert sum(gained.values()) == SENDERS
    assert metrics(service).count("sallyport_build_info{") == 1
    assert {name for (name,) in service.rows("select name from nodes")} == {"one/1", "one/2"}


def test_a_worker_is_started_again(service: RunningService) -> None:
    """After kill -9 of a worker, its senders are answered again by the next one, and a retransmission of a request that
    it had answered gets the same octets."""
    with ExitStack() as stack:
        clients = log_in_from_many(service, stack)
        requests = [each.packet("ann", "correct horse") for each in clients]
        answers = []
        for client, request in zip(clients, requests, strict=True):
            client.sock.settimeout(30)
            client.send(request)
            answers.append(client.sock.recv(4096))
        killed = workers(service)[0]
        os.kill(killed, signal.SIGKILL)
        for client, request, answer in zip(clients, requests, answers, strict=True):
            client.send(request)
            assert client.sock.recv(4096) == answer
        assert killed not in workers(service)
    (ended,) = lines(service, "worker_ended")
    assert (ended["status"], ended["restart_in_s"]) == (-signal.SIGKILL, 0.2)
    eventually(lambda: service.cli("log", "level").returncode == 0)


def test_a_reload_reaches_every_worker(service: RunningService) -> None:
    """SIGHUP to the service reloads the settings of all workers."""
    before = len(lines(service, "settings_reloaded"))
    os.kill(service.process_id, signal.SIGHUP)
    eventually(lambda: len(lines(service, "settings_reloaded")) == before + 2)
    assert {each["worker"] for each in lines(service, "settings_reloaded")} == {1, 2}
    assert service.call("settings.reload") == []
    assert len(lines(service, "settings_reloaded")) == before + 4


def test_a_command_about_memory_asks_every_worker(service: RunningService) -> None:
    """Senders without an answer are listed with the packets that all workers have dropped, and a log level holds on
    all."""
    with ExitStack() as stack:
        for _ in range(SENDERS):
            client = stack.enter_context(service.radius("wrong", source="127.0.0.9"))
            client.send(client.packet("ann", "correct horse"))
        eventually(lambda: [each["packets"] for each in service.call("listen.senders")] == [SENDERS])
    service.call("log.level", level="debug")
    assert [service.call("log.level") for _ in range(10)] == ["debug"] * 10
    service.call("log.level", level="info")


def test_workers_end_with_their_parent(service: RunningService) -> None:
    """SIGTERM ends all workers with status 0. If the process that started them is killed, they end too."""
    process_ids = workers(service)
    assert service.stop() == 0
    assert not any(map(runs, process_ids))
    service.start()
    process_ids = workers(service)
    service.kill()
    eventually(lambda: not any(map(runs, process_ids)))
    service.start()
    with service.radius(SECRET) as client:
        assert client.login("ann", "correct horse") == ACCEPT


def test_sqlite_has_one_worker(tmp_path: Path) -> None:
    """Several workers on SQLite are refused with the setting to change."""
    service = RunningService(tmp_path, {"SALLYPORT_WORKERS": "2", "SALLYPORT_DATABASE": None})
    done = service.cli("serve")
    assert done.returncode == 1
    assert "workers: 2 need a PostgreSQL database: set SALLYPORT_DATABASE" in done.stderr
