"""The search by parts of texts, under all lists that have one. Whether it finds what it should:
`tests/inventory/devices/test_search.py`."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest

from sallyport.base.secret import Secret
from sallyport.did.dids import repo as dids
from sallyport.did.dids.model import Kind, NewDid
from sallyport.did.wallets import repo as wallets
from sallyport.did.wallets.model import NewWallet
from sallyport.directory.entries import groups as directory_groups
from sallyport.directory.entries import people
from sallyport.directory.entries.model import Run
from sallyport.directory.mappings.model import FieldMapping
from sallyport.endpoints.groups import repo as groups
from sallyport.endpoints.groups.model import NewGroup
from sallyport.endpoints.instances import repo as instances
from sallyport.endpoints.instances.model import NewInstance
from sallyport.endpoints.users import repo as users
from sallyport.endpoints.users.model import Said
from sallyport.inventory.devices import repo as devices
from sallyport.inventory.devices.model import Device
from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.migrate import migrate
from sallyport.store.model import Tx
from sallyport.store.search import SearchIndex, cut
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault

TENANT, DOMAIN = 1, 3
COUNT = 200
RUN = Run(DOMAIN, 1, 1, cloud=False, marks=False, mapping=FieldMapping({}), mapped=frozenset(), started_at=1)


class NobodyLeaves:
    """Ends no sessions."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Nobody has any."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """None does."""
        return False


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An empty store, where rows may refer to others that are not there."""
    path = tmp_path / "s.db"
    with closing(open_connection(path)) as connection:
        migrate(connection, path)
        connection.execute("pragma foreign_keys = off")
        yield connection


def add_some_of_all(tx: Tx, form: Literal["NFC", "NFD"] = "NFC") -> None:
    """Two rows or more in each list that is searched, all columns different; and a DID that is deleted. form: in which
    names are written."""
    unfound: people.Unfound = []
    for number, name in enumerate((normalize(form, "Ärzte-Größe.1"), "web 2")):
        device = Device(DOMAIN, f"192.0.2.{number}", "2001:db8::1", name, at=1)
        device.device_type = "Cisco ISE"
        devices.register(tx, device)
        groups.add(tx, DOMAIN, NewGroup(name), 1)
        instances.add(tx, DOMAIN, NewInstance(name, 1, "192.0.2.9", f"10.0.0.{number}", "Host.Domain"), 1)
        users.add(tx, Vault(Secret(bytes(32))), DOMAIN, Said(name), 1)
        wallets.add(tx, NewWallet(DOMAIN, name, f"{number}@Example.org", ""), "wk_x", number, 1)
        for kind in Kind:
            new = NewDid(DOMAIN, "key", f"{name}{kind}", "", "Ed25519")
            dids.add(tx, TENANT, new, kind, f"did:key:{number}{kind}", 1, wallet_id=None, issuer_id=None)
        attributes = {"cn": [f"Shown {name}"], "mail": [f"{name}@Mail.example"], "userprincipalname": [f"{name}@UPN"]}
        person = people.NewPerson(name, name, b"%d" % number, b"", name, (), "ACTIVE", (), attributes, b"")
        people.put(tx, RUN, person, NobodyLeaves(), 1, unfound)
        directory_groups.put_group(tx, RUN, directory_groups.NewNamed(name, name, b"", name, b""), None, 1)
    people.make_found(tx, unfound)
    record = dids.by_id(tx, 1)
    assert record is not None
    dids.delete(tx, record, 2)


def known(connection: sqlite3.Connection, table: str) -> list[tuple[str, int]]:
    """Each part that a search keeps, with each row that has it."""
    connection.execute(f"create virtual table temp.known using fts5vocab (main, {table}, instance)")
    rows = connection.execute("select term, doc from temp.known order by term, doc").fetchall()
    connection.execute("drop table temp.known")
    return rows


def test_a_row_leaves_nothing_behind(connection: sqlite3.Connection) -> None:
    """Of neither table, whatever its texts are."""
    tx, index = SqliteTx(connection), SearchIndex("devices_search")
    texts = ("", "a", "aa", "a@b@@" + 99 * "c", "@example@", "aaaaaaa", "größe \U0001f512", "größe \U0001f512", '"*"')
    index.add(tx, DOMAIN, 1, texts)
    index.add(tx, DOMAIN, 2, ("a",))
    before = [known(connection, table) for table in ("devices_search", "devices_search_short")]
    assert all(len(each) > 20 for each in before)
    index.remove(tx, DOMAIN, 1, texts)
    for table in ("devices_search", "devices_search_short"):
        assert known(connection, table) == [(f"{DOMAIN}\u0556a", 2)]
        connection.execute(f"insert into {table} ({table}) values ('integrity-check')")  # noqa: S608


@pytest.mark.parametrize("text", ["a", "ab", "abc", "abcd", "@example.org", "@" + 64 * "a"])
def test_a_short_text_is_one_part(connection: sqlite3.Connection, text: str) -> None:
    """So is a mail domain. However many different texts have it: its first row is found without a look at the others,
    since no rows of different pieces are merged."""
    ids, parameters = SearchIndex("devices_search").find(DOMAIN, text)
    assert "devices_search_short" in ids
    assert not str(parameters["match"]).endswith("*")


async def test_an_index_is_merged_by_its_writers(sqlite: SqliteStore) -> None:
    """One that does not merge by itself has few parts nevertheless, and finds everything."""
    index = SearchIndex("directory_users_search")

    def add(tx: Tx, number: int) -> None:
        index.add_all(tx, [cut(1, number, [f"person {number:05}"])])
        index.merge(tx)

    for number in range(1, COUNT + 1):
        await sqlite.write(lambda tx, number=number: add(tx, number))
    for name in ("directory_users_search", "directory_users_search_short"):
        segments = f"select count(distinct segid) from {name}_idx"  # noqa: S608
        parts = await sqlite.read(lambda tx, segments=segments: tx.value(int, segments))
        assert parts is not None and parts < 12
    for text, found in (("person", COUNT), ("00123", 1), ("00", COUNT), ("r", COUNT)):
        ids, match = index.find(1, text)
        rows = await sqlite.read(lambda tx, ids=ids, match=match: tx.rows(ids, **match))
        assert len(rows) == found
