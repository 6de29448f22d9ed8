"""The statements that some work runs in SQLite, and their query plans.

assert not [plan for plan in plans(areas.store.path, lambda tx: repo.page(tx, stretch)) if "SCAN" in plan]
"""

from contextlib import closing
from pathlib import Path

from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.model import Work


def statements(path: Path, work: Work[object]) -> list[str]:
    """Return the different statements that the work runs. The statements of triggers are not returned."""
    traced: list[str] = []
    with closing(open_connection(path)) as connection:
        connection.set_trace_callback(traced.append)
        work(SqliteTx(connection))
        connection.set_trace_callback(None)
    # SQLite traces the statements of a trigger as comments, and the statement that fired it once more for each row.
    return list(dict.fromkeys(each for each in traced if not each.startswith("--")))


def plans(path: Path, work: Work[object]) -> list[str]:
    """Return the lines of EXPLAIN QUERY PLAN of each statement."""
    with closing(open_connection(path)) as connection:
        return [row[3] for each in statements(path, work) for row in connection.execute(f"explain query plan {each}")]
