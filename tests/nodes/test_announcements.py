"""Changes by one node, and the caches of another."""

from functools import partial
from pathlib import Path
from typing import cast

import pytest
import trio

from sallyport.areas.users.accounts.account import UserChange
from sallyport.base.errors import StoreError
from sallyport.store.foreign import CONFIGURATION, PRINCIPALS, PROMPTS, TOKENS, USERS, ForeignChange
from sallyport.store.model import Tx
from sallyport.store.postgres import listener
from sallyport.store.postgres.connection import Connection
from sallyport.store.postgres.engine import PostgresStore
from sallyport.store.postgres.listener import EVERYTHING, Listener, change_of
from sallyport.web.scope import Role
from tests.nodes.conftest import Pair, until
from tests.nodes.proxy import Proxy
from tests.peers.postgres import database_in, needs_postgres, server

pytestmark = needs_postgres


@pytest.fixture
def changes(other: PostgresStore) -> list[ForeignChange]:
    """Return the changes that the other node learns of."""
    found: list[ForeignChange] = []
    other.on_foreign_change(found.append)
    return found


async def test_a_change_of_the_configuration_is_announced(store: PostgresStore, changes: list[ForeignChange]) -> None:
    """Another node learns of a change within a second; the node that made it is not notified."""
    own: list[ForeignChange] = []
    store.on_foreign_change(own.append)
    await store.write(lambda tx: tx.execute("update config_version set version = version + 1"))
    await until(lambda: ForeignChange(CONFIGURATION, 0) in changes)
    assert own == []


async def test_a_change_that_is_undone_is_not_announced(store: PostgresStore, changes: list[ForeignChange]) -> None:
    """An announcement belongs to its transaction."""

    def fail(tx: Tx) -> None:
        tx.execute("update config_version set version = version + 1")
        raise ValueError

    with pytest.raises(ValueError):
        await store.write(fail)
    await store.write(lambda tx: tx.execute("update access_tokens set name = name"))
    await store.write(lambda tx: tx.execute("update config_version set version = version + 1"))
    await until(lambda: bool(changes))
    assert changes == [ForeignChange(CONFIGURATION, 0)]


def add_person(tx: Tx, domain_id: int) -> None:
    """Store a person of a directory."""
    tx.execute(
        "insert into directories (domain_id, name, name_key, kind, account_name, app_url, settings, created_at, "
        "updated_at) values (:d, 'n', 'n', 'okta', '', '', '{}', 0, 0)",
        d=domain_id,
    )
    tx.execute(
        "insert into directory_users (domain_id, directory_id, external_id, dn, dn_key, uid_key, login, name, "
        "display_name, email, upn, status, cloud, fields, mapping, digest, seen, created_at, updated_at) "
        "select domain_id, id, 'x', '', :none, :none, 'ann', 'ann', '', '', '', 'ACTIVE', 1, '{}', :none, :none, 1, "
        "0, 0 from directories",
        none=b"",
    )


async def test_the_mark_of_an_unchanged_person_is_not_announced(pair: Pair) -> None:
    """Each complete reading of a directory marks all people. Only a change that a login depends on is announced."""
    store, found, of_person = pair.one.store, list[ForeignChange](), ForeignChange(PRINCIPALS, pair.one.domain)
    cast(PostgresStore, pair.two.store).on_foreign_change(found.append)
    await store.write(partial(add_person, domain_id=pair.one.domain))
    await until(lambda: of_person in found)
    found.clear()
    await store.write(lambda tx: tx.execute("update directory_users set seen = 2"))
    await store.write(lambda tx: tx.execute("update config_version set version = version + 1"))
    await until(lambda: ForeignChange(CONFIGURATION, 0) in found)
    assert of_person not in found
    await store.write(lambda tx: tx.execute("update directory_users set status = 'DISABLED', seen = 3"))
    await until(lambda: of_person in found)


@pytest.mark.parametrize(
    "payload",
    ["", " ", "users x", "users -1", "users 1.5", "users \u0663", f"users {'9' * 5000}", "prompts 0 \u00e9", "\u00e9"],
    ids=["empty", "blank", "word", "negative", "fraction", "digit", "long number", "row", "kind"],
)
async def test_an_announcement_of_another_program_is_ignored(
    store: PostgresStore, changes: list[ForeignChange], payload: str
) -> None:
    """Every user of the database may send any text on the channel. The node ignores it, and hears the next change."""
    await store.write_aside(lambda tx: tx.rows("select pg_notify('sallyport', :payload)", payload=payload))
    await store.write(lambda tx: tx.execute("update config_version set version = version + 1"))
    await until(lambda: bool(changes))
    assert changes == [ForeignChange(CONFIGURATION, 0)]


@pytest.mark.parametrize(
    ("payload", "change"),
    [
        (b"configuration 0", ForeignChange(CONFIGURATION, 0)),
        (b"principals 7", ForeignChange(PRINCIPALS, 7)),
        (b"tokens 0", ForeignChange(TOKENS, 0)),
        (b"users 9223372036854775807", ForeignChange(USERS, 2**63 - 1)),
        (b"prompts 0 a1", ForeignChange(PROMPTS, 0, "a1")),
    ],
)
def test_an_announcement_keeps_its_form(payload: bytes, change: ForeignChange) -> None:
    """The triggers of existing databases, and nodes of the previous release, send these texts."""
    assert change_of(payload) == change


async def test_a_changed_password_holds_on_every_node(pair: Pair) -> None:
    """A user in the memory of one node is read again after another node has changed the password."""
    one, two = pair.one, pair.two
    user_id = await one.add_user(one.domain, "ann", b"first password")
    before = None
    while before is None or two.users.cached(one.domain, "ann") is not before:  # until the new user is announced
        before = await two.users.load(one.domain, "ann")
    await one.accounts.update(one.domain, user_id, UserChange("ann", password=b"second password"))
    await until(lambda: two.users.cached(one.domain, "ann") is not before)
    after = await two.users.load(one.domain, "ann")
    assert after is not None
    assert after.passwords[0] == b"second password"


async def test_a_revoked_token_is_refused_by_every_node(pair: Pair) -> None:
    """A token in the memory of one node is refused after another node has revoked it."""
    one, two = pair.one, pair.two
    record, token = await one.tenancy.create_token(1, 1, Role.ADMIN, "t", None)
    assert (await two.tenancy.authenticate(token)).token_id == record.id
    seen: list[ForeignChange] = []
    two.store.on_foreign_change(seen.append)
    await one.tenancy.revoke(record.id)
    await until(lambda: ForeignChange(TOKENS, 0) in seen)
    with pytest.raises(Exception, match="invalid token"):
        await two.tenancy.authenticate(token)


async def test_a_new_domain_is_known_on_every_node(pair: Pair) -> None:
    """A change of the configuration reaches the snapshots of another node within a second."""
    one, two = pair.one, pair.two
    async with trio.open_nursery() as nursery:
        nursery.start_soon(two.configuration.watch)
        domain_id = await one.domains.add(one.tenant, "branch")
        await until(lambda: domain_id in two.domains.table.by_id)
        nursery.cancel_scope.cancel()


class CountedListener(Listener):
    """A listener that counts its connections."""

    connections = 0

    def _connect(self) -> Connection:
        self.connections += 1
        return super()._connect()


async def test_a_database_that_ends_before_the_listener_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database ends between a new connection and its first command. At the start of a node, this is an error of the
    store. Later, the listener connects again."""
    connect, made, found = listener.connect, list[Connection](), list[ForeignChange]()

    def connected(url: str) -> Connection:
        made.append(connect(url))
        if len(made) == 2:
            made[-1].close()
        return made[-1]

    monkeypatch.setattr(listener, "connect", connected)
    monkeypatch.setattr(listener, "CHECK_S", 0.05)
    listening = Listener(database_in(tmp_path), list, found.append)
    async with trio.open_nursery() as nursery:
        await nursery.start(listening.run)
        end = f"select pg_terminate_backend({made[0].info.backend_pid})"
        server().execute(end)
        await until(lambda: EVERYTHING in found)
        assert len(made) == 3
        nursery.cancel_scope.cancel()
    made.clear()
    connected(database_in(tmp_path)).close()
    with pytest.raises(StoreError):
        await Listener(database_in(tmp_path), list, found.append).run()


async def test_a_server_that_hangs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node tests a quiet connection. After an outage, it counts everything as changed, because announcements may
    be missing."""
    monkeypatch.setattr(listener, "CHECK_S", 0.05)
    monkeypatch.setattr(listener, "ANSWER_S", 0.5)
    found: list[ForeignChange] = []
    with Proxy(server().port) as proxy:
        listening = CountedListener(proxy.url(database_in(tmp_path)), list, found.append)
        async with trio.open_nursery() as nursery:
            await nursery.start(listening.run)
            proxy.hold()
            await until(lambda: listening.connections > 1)
            proxy.release()
            await until(lambda: EVERYTHING in found)
            nursery.cancel_scope.cancel()
