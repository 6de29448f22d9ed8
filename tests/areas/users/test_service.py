"""Tests of endpoint users: their passwords and their cache."""

import pytest
import trio

from sallyport.areas.users.accounts.account import Removal
from sallyport.areas.users.accounts.service import Users
from sallyport.areas.users.service import MAX_DROPPED, EndpointUsers, Missing
from sallyport.areas.users.user import User
from sallyport.base.errors import Conflict, NotFound, SecretError
from sallyport.base.secret import Secret
from sallyport.store.model import Store, T, Work
from sallyport.store.vault import Vault
from tests.areas import Areas, stored

MISSING = Missing.MISSING


def passwords(user: User | Missing | None) -> tuple[bytes, ...]:
    """Return the passwords of an existing user."""
    assert isinstance(user, User)
    return user.passwords


async def test_a_user_is_loaded_once(areas: Areas) -> None:
    """A user is not in memory until it is loaded. After that, its name in any case finds it in memory, with its
    password."""
    user_id = await areas.add_user(areas.domain, "Ann", b"hello")
    assert areas.users.cached(areas.domain, "ann") is MISSING
    loaded = await areas.users.load(areas.domain, "ANN")
    assert loaded is not None
    assert (loaded.id, loaded.name, loaded.passwords) == (user_id, "Ann", (b"hello",))
    for name in ("ann", "Ann", "aNN"):
        assert areas.users.cached(areas.domain, name) is loaded


async def test_an_unknown_name_is_cached(areas: Areas) -> None:
    """An unknown name is cached for its domain until the user is added."""
    other = await areas.domains.add(areas.tenant, "branch")
    assert await areas.users.load(areas.domain, "ann") is None
    assert areas.users.cached(areas.domain, "ann") is None
    assert areas.users.cached(other, "ann") is MISSING
    await areas.add_user(areas.domain, "Ann", b"hello")
    assert areas.users.cached(areas.domain, "ann") is MISSING
    assert passwords(await areas.users.load(areas.domain, "ann")) == (b"hello",)


async def test_a_removed_user_is_forgotten_at_once(areas: Areas) -> None:
    """A removed user is no longer cached when `remove` returns. A second removal raises NotFound, and so does a removal
    in another domain."""
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.add_user(areas.domain, "ann", b"hello")
    await areas.users.load(areas.domain, "ann")
    with pytest.raises(NotFound):
        await areas.remove_user(other, "ann")
    await areas.remove_user(areas.domain, "ANN")
    assert areas.users.cached(areas.domain, "ann") is MISSING
    assert await areas.users.load(areas.domain, "ann") is None
    with pytest.raises(NotFound):
        await areas.remove_user(areas.domain, "ann")


async def test_many_changed_names_drop_their_whole_domain(areas: Areas) -> None:
    """If more than MAX_DROPPED names change, no user of the domain stays cached. Other domains keep their cached
    users."""
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.add_user(areas.domain, "ann", b"hello")
    for domain in (areas.domain, other):
        await areas.users.load(domain, "ann")
        await areas.users.load(domain, "bob")
    areas.users.drop(areas.domain, *(f"user{number}" for number in range(MAX_DROPPED + 1)))
    assert [areas.users.cached(areas.domain, name) for name in ("ann", "bob")] == [MISSING, MISSING]
    assert [areas.users.cached(other, name) for name in ("ann", "bob")] == [None, None]


async def test_a_name_is_taken_once_in_a_domain(areas: Areas) -> None:
    """Names are unique regardless of case, in every script and Unicode form.

    If a name is refused, the first user keeps its password.
    """
    await areas.add_user(areas.domain, "Zoë", b"first")
    for name in ("ZOË", "Zoe\u0308"):
        with pytest.raises(Conflict):
            await areas.add_user(areas.domain, name, b"second")
    assert passwords(await areas.users.load(areas.domain, "zoë")) == (b"first",)
    await areas.add_user(await areas.domains.add(areas.tenant, "branch"), "zoë", b"other")


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (b"plain", (b"plain",)),
        ("Zürich".encode(), ("Zürich".encode(), "Zürich".encode("latin-1"))),
        ("Zürich".encode("latin-1"), ("Zürich".encode("latin-1"),)),
        ("5 €".encode(), ("5 €".encode(), b"5 \x80")),
        ("上海".encode(), ("上海".encode(),)),
        (b"x" * 128, (b"x" * 128,)),
        (b"\xff\xfe", (b"\xff\xfe",)),
    ],
)
async def test_a_password_in_either_encoding(areas: Areas, given: bytes, right: tuple[bytes, ...]) -> None:
    """A password is accepted as the user typed it. If it is UTF-8 text, its Windows-1252 form is accepted too, because
    devices send either form."""
    await areas.add_user(areas.domain, "ann", given)
    assert passwords(await areas.users.load(areas.domain, "ann")) == right


async def test_the_store_holds_no_password(areas: Areas) -> None:
    """No file of the store contains a password in plain text. Opening a value with another key, or in another row,
    raises SecretError."""
    await areas.add_user(areas.domain, "ann", b"a password of mine")
    await areas.add_user(areas.domain, "bob", b"another of mine")
    assert b"of mine" not in stored(areas.store)
    other = EndpointUsers(areas.store, Vault(Secret(b"1" * 32)), areas.clock)
    with pytest.raises(SecretError):
        await other.load(areas.domain, "ann")
    assert other.cached(areas.domain, "ann") is MISSING
    await areas.store.write(
        lambda tx: tx.execute("update endpoint_users set password = (select password from endpoint_users where id = 1)")
    )
    with pytest.raises(SecretError):
        await areas.users.load(areas.domain, "bob")


async def test_a_user_without_a_password(areas: Areas) -> None:
    """For a user without a password, no password is valid."""
    await areas.add_user(areas.domain, "ann", b"hello")
    await areas.store.write(lambda tx: tx.execute("update endpoint_users set password = null"))
    assert passwords(await areas.users.load(areas.domain, "ann")) == ()


async def test_the_cache_is_bounded(areas: Areas) -> None:
    """The cached user that was used least recently is evicted, and is loaded again when needed. Unknown names evict no
    user."""
    users = EndpointUsers(areas.store, areas.vault, areas.clock, max_cached=10)
    for number in range(12):
        await areas.add_user(areas.domain, f"user{number}", b"hello")
        users.drop(areas.domain, f"user{number}")
        await users.load(areas.domain, f"user{number}")
    for number in range(35):
        await users.load(areas.domain, f"guess{number}")
    in_memory = [number for number in range(12) if users.cached(areas.domain, f"user{number}") is not MISSING]
    guessed = [number for number in range(35) if users.cached(areas.domain, f"guess{number}") is None]
    assert (in_memory, guessed) == (list(range(2, 12)), list(range(25, 35)))
    assert passwords(await users.load(areas.domain, "user0")) == (b"hello",)


async def test_each_tenant_has_a_share_of_the_cache(areas: Areas) -> None:
    """Users and unknown names of another tenant evict no entry of this tenant."""
    tenant = await areas.tenancy.ensure_tenant(2, 1)
    other = await areas.domains.add(tenant, "other")
    users = EndpointUsers(areas.store, areas.vault, areas.clock, max_cached=6)
    await areas.add_user(areas.domain, "ann", b"hello")
    for name in ("ann", "nobody"):
        await users.load(areas.domain, name)
    for number in range(10):
        await areas.add_user(other, f"user{number}", b"hello")
        users.drop(other, f"user{number}")
        await users.load(other, f"user{number}")
        await users.load(other, f"guess{number}")
    assert users.cached(areas.domain, "ann") is not MISSING
    assert users.cached(areas.domain, "nobody") is None
    assert users.cached(other, "user0") is MISSING
    users.forget_domain(areas.domain)
    assert users.cached(areas.domain, "nobody") is MISSING


class SlowStore:
    """A store whose reads return their result only after an event."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.has_read, self.release = trio.Event(), trio.Event()

    async def read(self, work: Work[T]) -> T:
        return await self.store.read(work)

    async def read_now(self, work: Work[T]) -> T:
        result = await self.store.read_now(work)
        self.has_read.set()
        await self.release.wait()
        return result

    async def search(self, work: Work[T]) -> T:
        return await self.store.search(work)

    async def write(self, work: Work[T]) -> T:
        return await self.store.write(work)

    def submit(self, work: object, done: object) -> None:
        raise NotImplementedError


async def test_a_change_overtakes_a_load(areas: Areas) -> None:
    """A user that was read before its removal is not cached after the removal."""
    slow = SlowStore(areas.store)
    users = EndpointUsers(slow, areas.vault, areas.clock)
    await areas.add_user(areas.domain, "ann", b"hello")
    accounts = Users(areas.store, areas.vault, users, areas.policies, areas.did.users, areas.clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(users.load, areas.domain, "ann")
        await slow.has_read.wait()
        await accounts.remove(areas.domain, [Removal(0, "ann", 0)])
        slow.release.set()
    assert users.cached(areas.domain, "ann") is MISSING
    assert await users.load(areas.domain, "ann") is None


async def test_a_restore_empties_the_cache(areas: Areas) -> None:
    """`forget` empties the cache, and a load that is in progress adds nothing to it."""
    slow = SlowStore(areas.store)
    users = EndpointUsers(slow, areas.vault, areas.clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(users.load, areas.domain, "ann")
        await slow.has_read.wait()
        users.forget()
        slow.release.set()
    assert users.cached(areas.domain, "ann") is MISSING
