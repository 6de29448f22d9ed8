"""The networks of RADIUS clients as bits."""

from ipaddress import ip_network

from sqlite_utils import Database

from sallyport.base.addresses import network_bits
from sallyport.store.schema import NETWORK_BITS, statements_of
from sallyport.store.schema.dialect import SqliteDialect


def apply(db: Database) -> None:
    """Add the column and its index, and fill the column."""
    for statement in statements_of(NETWORK_BITS, SqliteDialect()):
        db.execute(statement)
    for number, network in db.execute("select id, network from radius_clients").fetchall():
        bits = network_bits(ip_network(network))
        db.execute("update radius_clients set network_bits = ? where id = ?", (bits, number))
