"""The service behind a real PgBouncer, as an operator runs it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT
from tests.nodes.cluster import MASTER_KEY, readiness
from tests.nodes.pooler import needs_pgbouncer, pooled
from tests.nodes.test_server import place
from tests.peers.postgres import database_in, needs_postgres
from tests.running_service import RunningService, ServiceError
from tests.waiting import eventually

__all__ = ["place"]

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_postgres, needs_pgbouncer]
SECRET = "xyzzy5461"
REFUSAL = (
    "the database is behind a pooler in transaction mode, such as PgBouncer, where announcements and locks do not "
    "work: connect to PostgreSQL itself, or set pool_mode = session and ignore_startup_parameters = options in "
    "PgBouncer"
)


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Return the address of a database without tables."""
    return database_in(tmp_path, is_empty=True)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_transaction_mode_is_refused(tmp_path: Path, place: Path, database: str, workers: str) -> None:
    """The service does not start behind PgBouncer in transaction mode, and a command fails. Both print one message with
    the remedy, and no table is made."""
    with pooled(place, database, mode="transaction") as address:
        service = RunningService(tmp_path, {"SALLYPORT_DATABASE": address, "SALLYPORT_WORKERS": workers})
        with pytest.raises(ServiceError, match="exit status 1") as refused:
            service.start()
        assert REFUSAL in str(refused.value)
        assert "Traceback" not in service.log()
        migrated = service.cli("db", "migrate")
        assert (migrated.returncode, migrated.stderr.strip()) == (1, f"sallyport: {REFUSAL}")
    direct = RunningService(tmp_path / "direct", {"SALLYPORT_DATABASE": database})
    assert direct.rows("select count(*) from pg_tables where schemaname = 'public'") == [(0,)]


@pytest.fixture
def nodes(tmp_path: Path, place: Path, database: str) -> Iterator[list[RunningService]]:
    """Yield two nodes behind a PgBouncer in session mode. Afterwards both must stop without an error."""
    with pooled(place, database, mode="session") as address:
        nodes = []
        try:
            for name in ("one", "two"):
                (tmp_path / name).mkdir()
                settings = {
                    "SALLYPORT_DATABASE": address,
                    "SALLYPORT_NODE_NAME": name,
                    "SALLYPORT_MASTER_KEY": MASTER_KEY,
                }
                nodes.append(RunningService(tmp_path / name, settings))
                nodes[-1].start()
            yield nodes
            for node in nodes:
                assert node.stop() == 0
                assert "Traceback" not in node.log()
        finally:
            for node in nodes:
                node.kill()


def test_session_mode_works(nodes: list[RunningService]) -> None:
    """Behind PgBouncer in session mode, nodes start, answer logins, and get the announcements of each other: a RADIUS
    client and a user that one node adds can log in at the other within seconds."""
    one, two = nodes
    one.add_user("ann", "correct horse")
    one.add_client("vpn", "127.0.0.1", SECRET)
    with one.radius(SECRET) as first, two.radius(SECRET) as second:
        second.sock.settimeout(0.1)

        def is_accepted() -> bool:
            with suppress(TimeoutError):
                return second.login("ann", "correct horse") == ACCESS_ACCEPT
            return False

        eventually(is_accepted, seconds=5)
        assert first.login("ann", "correct horse") == ACCESS_ACCEPT
    assert [readiness(node) for node in nodes] == [200, 200]
    assert [answered for (answered,) in one.rows("select node_id from events order by id")] == [2, 1]
