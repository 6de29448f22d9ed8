"""The service over a real PostgreSQL that synchronizes its disk, while either of them is killed."""

import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import httpx
import pytest

from sallyport.radius.packet import ACCOUNTING_RESPONSE
from sallyport.store.postgres.engine import HUNG_S
from tests.areas import SECRET
from tests.packets import accounting, attributes
from tests.peers.postgres import Server, made, needs_postgres, postgres_rows
from tests.radius_client import RadiusClient
from tests.running_service import RunningService
from tests.torture.load import Load, check_stored, populate
from tests.waiting import eventually

ROUNDS = 5
ENOUGH = 50
SETTINGS = {"SALLYPORT_REJECT_DELAY_S": "0.1", "SALLYPORT_DUPLICATE_WINDOW_S": "30"}
"""On a slow machine, requests are sent again long after the first time. They are retransmissions nevertheless."""

pytestmark = [pytest.mark.peer, needs_postgres]


@pytest.fixture
def server() -> Iterator[Server]:
    """Return a server with a database `sallyport`."""
    with tempfile.TemporaryDirectory(prefix="sallyport-postgres-") as directory:  # the server's user may enter it
        server = made(Path(directory), {"listen_addresses": "'127.0.0.1'"})
        try:
            server.execute("create database sallyport")
            yield server
        finally:
            with suppress(subprocess.CalledProcessError):  # a test may have killed it
                server.stop("immediate")


@pytest.fixture
def service(tmp_path: Path, server: Server) -> Iterator[RunningService]:
    """Return a service that runs over the database."""
    directory = tmp_path / "service"
    directory.mkdir()
    service = RunningService(directory, {**SETTINGS, "SALLYPORT_DATABASE": server.url("sallyport")})
    try:
        service.start()
        populate(service)
        yield service
        assert service.stop() == 0
        assert "Traceback" not in service.log()
    finally:
        service.kill()


def answered(load: Load) -> None:
    """Send until enough requests are answered."""
    load.run(0.25)
    while len(load.answered) < ENOUGH:
        load.run(0.1)


def test_answers_survive_a_kill_of_the_service(service: RunningService) -> None:
    """Each answer that a client received is stored, and its retransmission gets the same octets."""
    random = Random(23)
    for number in range(ROUNDS):
        with Load(service, f"r{number}", random) as load:
            answered(load)
            service.kill()
            load.drain()
            kept = load.answered
            service.start()
            check_stored(service, f"r{number}", kept)
            for each, reply in load.again(kept, seconds=20):
                assert reply == each.reply, f"another answer to the retransmit of {each.station}"


def test_answers_survive_a_kill_of_the_database(service: RunningService, server: Server) -> None:
    """Each answer that a client received is stored once the spool is empty. The service continues when the database is
    back."""
    random = Random(24)
    for number in range(ROUNDS):
        with Load(service, f"r{number}", random) as load:
            answered(load)
            server.kill()
            load.drain()
            kept = load.answered
            server.start()
            eventually(lambda: readiness(service) == 200)
            eventually(
                lambda: not spool(service).exists()
            )  # it has the accounting records that were answered meanwhile
            check_stored(service, f"r{number}", kept)
            unanswered = [each for each in load.sent if each.reply is None]
            load.again(unanswered, seconds=20)
            check_stored(service, f"r{number}", load.sent)


def spool(service: RunningService) -> Path:
    """Return the file of the accounting records that wait on local disk."""
    return service.data_dir / "accounting.spool"


def readiness(service: RunningService) -> int:
    """Return the status of /readyz."""
    return httpx.get(f"http://127.0.0.1:{service.ports.http}/readyz", trust_env=False).status_code


def test_a_hung_database_is_reported_within_a_second(service: RunningService, server: Server) -> None:
    """/readyz answers 503 while the server's processes stand still, and a stop of the service does not wait for them.
    The service works again when they go on."""
    eventually(lambda: readiness(service) == 200)
    with server.frozen():
        since = time.monotonic()
        eventually(lambda: readiness(service) == 503)
        assert time.monotonic() - since < 1.5  # the second, and the time of requests on a loaded machine
        time.sleep(HUNG_S + 1)  # until the connections are given up
    eventually(lambda: readiness(service) == 200)
    with service.radius("a secret of the tests") as client:
        eventually(lambda: client.login("user1", "password of 1") == 2)
    with server.frozen():
        assert service.stop() == 0
    service.start()


def test_accounting_is_spooled_and_stored_once(service: RunningService, server: Server) -> None:
    """Records that were answered while the database was away are each stored once, though the service was killed."""
    sent = [f"02-00-00-00-00-{number:02x}" for number in range(40)]
    eventually(lambda: readiness(service) == 200)
    account(service, sent[:10])
    server.kill()
    account(service, sent[10:30])
    service.kill()
    server.start()
    service.start()
    eventually(lambda: not spool(service).exists())
    account(service, sent[30:])
    rows = postgres_rows(server.url("sallyport"), "select station from accounting_records order by station", ())
    assert [station for (station,) in rows] == sent


def account(service: RunningService, stations: Sequence[str]) -> None:
    """Send a record of each station, and wait for its response."""
    with RadiusClient(service.ports.acct, SECRET, timeout=20) as client:
        for number, station in enumerate(stations):
            body = attributes(
                ACCT_STATUS_TYPE=(1).to_bytes(4), ACCT_SESSION_ID=station.encode(), CALLING_STATION_ID=station.encode()
            )
            code, _ = client.exchange(accounting(body, identifier=number))
            assert code == ACCOUNTING_RESPONSE


def test_a_missing_database_is_reported_within_two_seconds(service: RunningService, server: Server) -> None:
    """/readyz answers 503, a login gets no answer, and both end when the database is back."""
    assert readiness(service) == 200
    server.kill()
    since = time.monotonic()
    eventually(lambda: readiness(service) == 503)
    assert time.monotonic() - since < 2
    with service.radius("a secret of the tests") as client:
        with pytest.raises(TimeoutError):
            client.login("user1", "password of 1")
        server.start()
        eventually(lambda: readiness(service) == 200)
        eventually(lambda: is_accepted(client))


def is_accepted(client: RadiusClient) -> bool:
    """Return whether a login is accepted. During the last pause between connections, a login gets no answer."""
    with suppress(TimeoutError):
        return client.login("user1", "password of 1") == 2
    return False
