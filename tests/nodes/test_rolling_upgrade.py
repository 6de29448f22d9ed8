"""Two real services of two program versions beside each other, under logins."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pytest

import sallyport
from sallyport.radius.dictionary import packaged
from sallyport.radius.packet import ACCESS_ACCEPT
from tests.nodes.cluster import Cluster, running_cluster
from tests.peers.postgres import needs_postgres
from tests.running_service import RunningService
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_postgres]
SECRET, PASSWORD = "xyzzy5461", "hello"
WAIT_S, ROUNDS = 2.0, 5
"""A NAS waits this long for an answer before it asks its other server, and asks each server so many times."""
ENOUGH = 50  # logins at each stage of the upgrade
NEXT_VERSION, NEXT_STEP = "99.0", "p9999_colours"
STEP = f'''


def _add_colours(connection: Connection) -> None:
    connection.execute("alter table events add column colour text not null default 'green'")


STEPS = (*STEPS, MigrationStep("{NEXT_STEP}", _add_colours, beside=STEPS[-1].name))
'''
BEFORE = "\n\n@dataclass(frozen=True, slots=True)\nclass Inspection:"


def next_release(directory: Path) -> Path:
    """Return a directory with the package of a made-up next release, which adds a column to the events."""
    package = directory / "sallyport"
    shutil.copytree(Path(sallyport.__file__).parent, package)
    shutil.copytree(packaged(), package / "dictionaries", dirs_exist_ok=True)
    (package / "__init__.py").write_text(f'"""The next release."""\n\n__version__ = "{NEXT_VERSION}"\n')
    migration = package / "store" / "postgres" / "migration.py"
    text = migration.read_text()
    assert text.count(BEFORE) == 1
    migration.write_text(text.replace(BEFORE, STEP + BEFORE))
    return directory


@dataclass
class Nas:
    """A NAS with two servers. It logs in again and again, and asks the other server if one does not answer.

    answered: the stations whose login got an answer. lost: the stations whose login got none. other: the number of
    answers that are no Access-Accept.
    """

    name: str
    servers: list[RunningService]
    answered: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    other: int = 0

    def log_in(self) -> None:
        """Log in once."""
        station = f"{self.name}-{len(self.answered) + len(self.lost)}"
        for server in self.servers * ROUNDS:
            with server.radius(SECRET) as client:
                client.sock.settimeout(WAIT_S)
                try:
                    code = client.login("ann", PASSWORD, CALLING_STATION_ID=station.encode())
                except ConnectionRefusedError:
                    time.sleep(0.1)  # the server restarts; a NAS would not even know
                    continue
                except TimeoutError:
                    continue
            self.other += code != ACCESS_ACCEPT
            return self.answered.append(station)
        return self.lost.append(station)


@contextmanager
def logging_in(cluster: Cluster) -> Iterator[list[Nas]]:
    """Let two NAS log in until the block ends. Each of them asks another node first."""
    one, two = cluster.nodes
    over = Event()
    devices = [Nas("first", [one, two]), Nas("second", [two, one])]

    def run(device: Nas) -> None:
        while not over.is_set():
            device.log_in()

    threads = [Thread(target=run, args=[device]) for device in devices]
    for each in threads:
        each.start()
    try:
        yield devices
    finally:
        over.set()
        for each in threads:
            each.join()


def more_logins(devices: list[Nas]) -> None:
    """Wait until each NAS has got further answers."""
    before = [len(each.answered) for each in devices]
    eventually(lambda: all(len(each.answered) > n + ENOUGH for each, n in zip(devices, before, strict=True)))


def programs(cluster: Cluster) -> set[tuple[str, str]]:
    """Return the name and the version of each node."""
    return {(name, version) for name, version in cluster.nodes[0].rows("select name, version from nodes")}


def test_no_login_is_lost(tmp_path: Path) -> None:
    """Two nodes are upgraded one after the other under logins. The first one migrates the database, and both versions
    work beside each other: a user that the new node adds logs in at the old one. Each login gets an answer, and each
    answer is stored."""
    release = next_release(tmp_path)
    settings = {"SALLYPORT_REJECT_DELAY_S": "0"}
    with running_cluster(settings=settings) as cluster:
        one, two = cluster.nodes
        one.add_client("vpn", "127.0.0.1", SECRET)
        one.add_user("ann", PASSWORD)
        for node in cluster.nodes:
            eventually(lambda node=node: logs_in(node, "ann"))  # type: ignore[misc]
        with logging_in(cluster) as devices:
            more_logins(devices)
            restart(one, release)
            assert programs(cluster) == {("one", NEXT_VERSION), ("two", sallyport.__version__)}
            one.add_user("bob", PASSWORD)
            eventually(lambda: logs_in(two, "bob"))
            more_logins(devices)
            restart(two, release)
            assert programs(cluster) == {("one", NEXT_VERSION), ("two", NEXT_VERSION)}
            more_logins(devices)
        for each in devices:
            assert each.lost == []
            assert each.other == 0
        stored = {station for (station,) in two.rows("select station from events where colour = 'green'")}
        assert {station for each in devices for station in each.answered} <= stored
        assert one.rows("select name from schema_steps order by name desc limit 1") == [(NEXT_STEP,)]


def restart(node: RunningService, release: Path) -> None:
    """Stop a node, and start it with a release."""
    assert node.stop() == 0
    node.upgrade(release)
    node.start()


def logs_in(node: RunningService, user: str) -> bool:
    """Return whether a user can log in at a node."""
    with node.radius(SECRET) as client:
        return client.login(user, PASSWORD) == ACCESS_ACCEPT
