"""How SQLite does what some work asks of the store.

assert not [plan for plan in plans(areas.store.path, lambda tx: repo.page(tx, stretch)) if "SCAN" in plan]
"""

from contextlib import closing
from pathlib import Path

from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.model import Work


def plans(path: Path, work: Work[object]) -> list[str]:
    """The lines of EXPLAIN QUERY PLAN of each statement."""
    statements: list[str] = []
    with closing(open_connection(path)) as connection:
        connection.set_trace_callback(statements.append)
        work(SqliteTx(connection))
        connection.set_trace_callback(None)
        return [row[3] for each in statements for row in connection.execute(f"explain query plan {each}")]
