"""How a migration runs its SQL."""

from sqlite_utils import Database


def execute_all(db: Database, script: str) -> None:
    """Statement by statement: a script would commit the transaction that the migration runs in."""
    for statement in script.split(";\n"):
        if statement.strip():
            db.execute(statement)
