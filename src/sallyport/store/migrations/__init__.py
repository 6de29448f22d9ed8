"""The migrations of the SQLite schema: the baseline, and one module for each later step. A released step is never
changed.

`migrate` upgrades a database to the schema of this program with sqlite-utils, or raises SchemaError.
"""

import sqlite3
from collections.abc import Set as AbstractSet
from pathlib import Path

from sqlite_utils import Database, Migrations

from sallyport.base.errors import SchemaError
from sallyport.store.connections import add_fold
from sallyport.store.migrations import (
    m0001_baseline,
    m0002_signin,
    m0003_identities,
    m0004_login_steps,
    m0005_request_list,
    m0006_login_attributes,
    m0007_answers_by_id,
    m0008_did_kinds,
    m0009_domain_realms,
    m0010_network_bits,
    m0011_references,
    m0012_group_keys,
    m0013_learned_values,
    m0014_mac_forms,
    m0015_bounded_writes,
    m0016_sign_in_attempts,
)

BASELINE = "m0001_baseline"
ALL = Migrations("sallyport")
ALL(name=BASELINE)(m0001_baseline.apply)
ALL(name="m0002_signin")(m0002_signin.apply)
ALL(name="m0003_identities")(m0003_identities.apply)
ALL(name="m0004_login_steps")(m0004_login_steps.apply)
ALL(name="m0005_request_list")(m0005_request_list.apply)
ALL(name="m0006_login_attributes")(m0006_login_attributes.apply)
ALL(name="m0007_answers_by_id")(m0007_answers_by_id.apply)
ALL(name="m0008_did_kinds")(m0008_did_kinds.apply)
ALL(name="m0009_domain_realms")(m0009_domain_realms.apply)
ALL(name="m0010_network_bits")(m0010_network_bits.apply)
ALL(name="m0011_references")(m0011_references.apply)
ALL(name="m0012_group_keys")(m0012_group_keys.apply)
ALL(name="m0013_learned_values")(m0013_learned_values.apply)
ALL(name="m0014_mac_forms")(m0014_mac_forms.apply)
ALL(name="m0015_bounded_writes")(m0015_bounded_writes.apply)
ALL(name="m0016_sign_in_attempts")(m0016_sign_in_attempts.apply)
_TABLES = "select 1 from sqlite_master where type = 'table' and name not in ('_sqlite_migrations', 'sqlite_sequence')"


def migrate(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Apply the pending migrations, and return their names.

    Raises SchemaError if the file is not a database, or if this program cannot use the database. The lock of the data
    directory prevents two processes from migrating at the same time.
    """
    try:
        add_fold(connection)
        database = Database(connection, execute_plugins=False)
        applied = {each.name for each in ALL.applied(database)}
        if not applied and connection.execute(_TABLES).fetchone() is not None:
            raise SchemaError(f"{path} is a database of another program")
        if reason := incompatibility(path, applied):
            raise SchemaError(reason)
        pending = [each.name for each in ALL.pending(database)]
        ALL.apply(database)
    except sqlite3.DatabaseError as error:
        raise SchemaError(f"{path}: {error}") from error
    return pending


def incompatibility(path: Path, applied: AbstractSet[str]) -> str:
    """Return the reason why this program cannot use a database, as text for a message. Return "" if the program can use
    the database.

    applied: the names of the migrations that were applied to the database.
    """
    newer = applied - {each.name for each in ALL._migrations}
    if newer and BASELINE in applied:
        return f"{path} was written by a newer version of Sallyport (migration {', '.join(sorted(newer))})"
    if newer:
        return (
            f"{path} was written before the first release, and its schema cannot be upgraded: "
            "choose another data directory, or move the database away"
        )
    return ""
