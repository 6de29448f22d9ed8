"""Names are compared in normalization form C (`base.text`): keys, and what is searched, of names in another form.

Where both forms of a name are taken, each stays what it is, and logins find the one in form C.
"""

from unicodedata import is_normalized, normalize

from sqlite_utils import Database

from sallyport.base.text import fold
from sallyport.store.connections import SqliteTx
from sallyport.store.migrations.m0037_short_search import SEARCHED
from sallyport.store.search import SearchIndex

KEYS = {
    "credential_users": "name_key",
    "devices": "nas_identifier_key",
    "directories": "name_key",
    "directory_names": "name_key",
    "domains": "name_key",
    "endpoint_groups": "name_key",
    "endpoint_instances": "name_key",
    "endpoint_users": "name_key",
    "radius_clients": "name_key",
    "wallets": "email_key",
}


def apply(db: Database) -> None:
    """Write them anew."""
    db.conn.create_function("composed", 1, lambda text: normalize("NFC", text), deterministic=True)
    for table, key in KEYS.items():
        db.execute(f"update or ignore {table} set {key} = composed({key}) where {key} <> composed({key})")  # noqa: S608
    tx = SqliteTx(db.conn)
    for name, select in SEARCHED.items():
        index = SearchIndex(f"{name}_search")
        others = [row for row in db.execute(select) if not all(is_normalized("NFC", text) for text in row[2:])]
        for row_id, number, *texts in others:
            index.remove(tx, number, row_id, [*map(str.casefold, texts)])
            index.add(tx, number, row_id, [*map(fold, texts)])
