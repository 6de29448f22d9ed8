"""Texts that are shorter than a piece are searched in tables of their own (`store.search`), which `m0043_search_parts`
fills."""

from sqlite_utils import Database

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
    """Make them."""
    for name in SEARCHED:
        db.execute(f"create virtual table {name}_search_short using fts5 (pieces, {OPTIONS})")
    merged = "directory_users_search_short"  # in small parts, as in `m0038_directory_search`
    db.execute(f"insert into {merged} ({merged}, rank) values ('automerge', 0)")  # noqa: S608
