"""Tests of a crash while a domain is removed: after the restart all of the domain exists, or all of it is deleted.

strace kills the service at a chosen write of the store: within the transaction that marks the domain, at its
synchronization, or between two of the transactions that delete the rows.
"""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sallyport.areas.domains.removal import GRACE_S
from sallyport.base.clock import SECOND, now_us
from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.schema.limits import COUNTED, CountedTable
from sallyport.store.search import ROW_BITS, IndexEntry, SearchIndex
from tests.areas import declared
from tests.running_service import PROGRAM, RunningService
from tests.store.test_limits import Rows
from tests.torture.test_failing_disk import injected
from tests.torture.test_full_disk import eventually
from tests.torture.trace import needs_attached_strace

pytestmark = [pytest.mark.torture, pytest.mark.system, needs_attached_strace]

MANY = ("devices", "directory_users", "endpoint_users", "events", "sessions")
FEW = ("device_history", "directory_groups", "directory_units", "lockouts", "stations")
EACH = 2000
BRANCH, STAYS = 2, 3
"""The ids of the domain that is removed and of another domain."""
ROWS, _ = declared()
SEARCHED = {each.table for each in ROWS if each.searched}

State = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningService]:
    """Yield a service that has two domains with many rows, `branch` and `stays`."""
    service = RunningService(tmp_path)
    try:
        service.start()
        for name, domain_id in (("branch", BRANCH), ("stays", STAYS)):
            assert service.add_domain(name, realms=[f"{name}.example"]) == domain_id
            service.add_rule(name, name="printers", action="block", users=["printer"])
            service.run("/ad/SetMFAProvider", {"provider": "totp"}, domain=name)
        service.add_client("gate", "192.0.2.1", None, "stays", "branch")
        assert service.stop() == 0
        fill(service)
        service.start()
        yield service
    finally:
        service.kill()


def fill(service: RunningService) -> None:
    """Add rows to both domains while the service is not running. Their texts are added to the search."""
    numbers, now = dict[str, int](), now_us()
    with closing(open_connection(service.data_dir / "sallyport.db")) as connection:
        connection.execute("begin")
        for domain_id in (BRANCH, STAYS):
            rows = Rows(connection, numbers, {("domains", 1): domain_id})
            for table, times in (*dict.fromkeys(FEW, 1).items(), *dict.fromkeys(MANY, EACH).items()):
                own = {"at": now} if table == "events" else {}
                ids = [rows.add(table, 1, **own) for _ in range(times)]
                if table in SEARCHED:
                    texts = [IndexEntry(domain_id, each, [f"{table} {each}"]) for each in ids]
                    SearchIndex(f"{table}_search").add_all(SqliteTx(connection), texts)
        connection.execute("commit")


@pytest.mark.parametrize(
    ("call", "step"),
    [("pwrite64", 1), ("pwrite64", 5), ("fdatasync", 1), ("fdatasync", 2), ("fdatasync", 3), ("fdatasync", 5)],
    ids=str,
)
def test_a_kill_of_the_service(service: RunningService, tmp_path: Path, call: str, step: int) -> None:
    """If the domain is listed after the restart, it has all its rows.

    Otherwise its rows are deleted, and its name and its realms can be used again. The other domain keeps its rows. A
    command that gets no answer reports that it does not know whether the change was made.
    """
    before, other = rows_of(service, BRANCH), rows_of(service, STAYS)
    assert min(len(before[table]) for table in MANY) == EACH
    with injected(service, tmp_path / "trace", f"{call}:signal=KILL:when={step}") as strace:
        command = service.cli("domain", "remove", str(BRANCH), "--yes")
        strace.wait(30)  # until the service has ended
    service.kill()
    left = rows_of(service, BRANCH)
    assert any(left.values()), "the kill came after the last deletion"
    service.start()
    is_whole = "branch" in service.domains()
    if command.returncode == 0:
        assert not is_whole
    else:
        assert "check whether the change was made" in command.stderr
    if is_whole:
        assert rows_of(service, BRANCH) == left == before
        service.ok("domain", "remove", str(BRANCH), "--yes")
    check_gone(service, other)


def test_a_kill_of_the_command(service: RunningService) -> None:
    """If the service is not running, the command deletes the rows.

    If the command is killed, the service deletes them at its next start.
    """
    other = rows_of(service, STAYS)
    assert service.stop() == 0
    fault = ("-e", "trace=fdatasync", "-e", "inject=fdatasync:signal=KILL:when=4")
    command = ["strace", "-f", "-qq", *fault, "-o", "/dev/null", str(PROGRAM), "domain", "remove", str(BRANCH), "--yes"]
    done = subprocess.run(command, env=service.environ, cwd=service.directory, timeout=60, check=False)
    assert done.returncode != 0
    assert any(rows_of(service, BRANCH).values())
    service.start()
    assert "branch" not in service.domains()
    check_gone(service, other)


def check_gone(service: RunningService, other: State) -> None:
    """Wait until all rows of the removed domain are deleted and, after the grace period, its own row too.

    Check that the other domain keeps its rows, that the stored counts are right, and that the store passes its
    integrity check.
    """
    eventually(lambda: not any(rows_of(service, BRANCH).values()), 30)
    again = service.add_domain("branch", realms=["branch.example"])
    assert {table for table, rows in rows_of(service, again).items() if rows} == {"domain_realms"}  # its own names
    assert rows_of(service, STAYS) == other
    assert service.stop() == 0
    with closing(open_connection(service.data_dir / "sallyport.db")) as connection:
        connection.execute("update domains set removed_at = removed_at - ?", (int(GRACE_S * SECOND),))
    service.start()
    eventually(lambda: service.rows("select id from domains where removed_at is not null") == [], 30)
    assert service.rows("pragma integrity_check") == [("ok",)]
    assert service.rows("pragma foreign_key_check") == []
    for limit in {each.limit for each in COUNTED}:
        kept = service.rows("select coalesce(sum(value), 0) from tenant_rows where tenant_id = 1 and name = ?", limit)
        assert kept == [(sum(count(service, each) for each in COUNTED if each.limit == limit),)], limit


def count(service: RunningService, counted: CountedTable) -> int:
    """Return the number of rows that count towards a limit of the first tenant."""
    tenant, only = (condition.format(row="t") for condition in (counted.tenant, counted.only))
    found = service.rows(f"select count(*) from {counted.table} t where {tenant} = 1 and {only}")  # noqa: S608
    return int(found[0][0])


def rows_of(service: RunningService, domain_id: int) -> State:
    """Return all rows of a domain, including those of the search."""
    sqls = {each.table: f"select * from {each.table} where domain_id = ?" for each in ROWS}  # noqa: S608
    for table in SEARCHED:
        sqls[f"{table}_search"] = f"select * from {table}_search where rowid >> {ROW_BITS} = ?"  # noqa: S608
    return {name: service.rows(sql, domain_id) for name, sql in sqls.items()}
