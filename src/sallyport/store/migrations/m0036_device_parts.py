"""Devices are counted in parts, too (`m0034_list_parts`)."""

from sqlite_utils import Database

from sallyport.store.migrations.m0034_list_parts import COUNT
from sallyport.store.migrations.statements import execute_all


def apply(db: Database) -> None:
    """Count what is there."""
    execute_all(db, COUNT.format(table="devices"))
