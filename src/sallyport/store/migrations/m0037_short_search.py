"""Texts of up to three letters are searched in tables of their own (`store.search`)."""

from sqlite_utils import Database

from sallyport.store.search import short_parts

OPTIONS = "content = '', tokenize = 'ascii', columnsize = 0, detail = none"
SEARCHED = {
    "devices": "select id, domain_id, nas_identifier, device_type, ip_address, client_ip from devices",
    "directory_groups": "select id, domain_id, name from directory_groups",
    "directory_users": "select id, domain_id, name, display_name, email, upn from directory_users",
    "dids": "select id, tenant_id, name from dids where deleted_at is null",
    "endpoint_groups": "select id, domain_id, name from endpoint_groups",
    "endpoint_instances": "select id, domain_id, name, public_ip, private_ip, host_name from endpoint_instances",
    "endpoint_users": "select id, domain_id, name from endpoint_users",
    "wallets": "select id, domain_id, username, email from wallets",
}
"""What is in each search: a row's id, the number that it is kept under, and its texts."""


def apply(db: Database) -> None:
    """Make them, and let the rows that are there be found."""
    for name, select in SEARCHED.items():
        table = f"{name}_search_short"
        db.execute(f"create virtual table {table} using fts5 (pieces, {OPTIONS})")
        db.conn.executemany(
            f"insert into {table} (rowid, pieces) values (?, ?)",  # noqa: S608
            (
                (row_id, short_parts(number, [*map(str.casefold, texts)]))
                for row_id, number, *texts in db.execute(f"{select} order by id")
            ),
        )
    merged = "directory_users_search_short"  # in small parts, as in `m0038_directory_search`
    db.execute(f"insert into {merged} ({merged}, rank) values ('automerge', 0)")  # noqa: S608
