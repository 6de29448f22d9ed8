"""Tenants and tokens."""

import pytest
import trio
import trio.testing

from sallyport.areas.tenancy.service import Tenancy
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, Invalid, NotFound, StoreError, Unauthenticated
from sallyport.base.secret import token_hash
from sallyport.store.model import Engine, T, Work
from sallyport.web.scope import Caller, Role
from tests.areas import SetClock, stored


async def test_a_token_identifies_its_tenant(store: Engine, clock: SetClock) -> None:
    """The caller has the organization, tenant, role and name of the token. The token begins with sp_."""
    tenancy = Tenancy(store, clock)
    record, token = await tenancy.create_token(5, 2, Role.AUDITOR, "reports", None)
    assert token.startswith("sp_") and len(token) == 46
    caller = await tenancy.authenticate(token)
    assert caller == Caller(record.id, 5, 2, record.tenant_id, Role.AUDITOR, "reports")
    assert record.tenant_id == await tenancy.ensure_tenant(5, 2)


async def test_a_tenant_is_created_once(store: Engine, clock: SetClock) -> None:
    """The same number always gives the same tenant. In another organization, it gives another tenant."""
    tenancy = Tenancy(store, clock)
    ids = [await tenancy.ensure_tenant(*scope) for scope in ((1, 1), (1, 1), (1, 2), (2, 1))]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("scope", [(0, 1), (1, 0), (-1, 1), (2**63, 1), (1, 2**63)])
async def test_tenant_numbers_start_with_one(store: Engine, clock: SetClock, scope: tuple[int, int]) -> None:
    """Zero, negative numbers and very large numbers are refused before the store is used."""
    tenancy = Tenancy(store, clock)
    with pytest.raises(Invalid, match=r"invalid (org|tenant)"):
        await tenancy.ensure_tenant(*scope)
    with pytest.raises(Invalid, match=r"invalid (org|tenant)"):
        await tenancy.create_token(*scope, Role.ADMIN, "n", None)


async def test_the_store_contains_no_token(store: Engine, clock: SetClock) -> None:
    """The store contains only the SHA-256 hash of a token."""
    _, token = await Tenancy(store, clock).create_token(1, 1, Role.ADMIN, "n", None)
    kept = await store.read(lambda tx: tx.value(str, "select hash from access_tokens"))
    assert kept == token_hash(token)
    assert token.encode() not in stored(store)


@pytest.mark.parametrize("token", ["", "sp_", "sp_" + "x" * 43, "x" * 46, "sp_" + "x" * 100_000, "sp_\0", "sp_é"])
async def test_an_unknown_token_is_refused(store: Engine, clock: SetClock, token: str) -> None:
    """Every wrong token gets the same message."""
    with pytest.raises(Unauthenticated, match=r"^invalid token$"):
        await Tenancy(store, clock).authenticate(token)


async def test_a_revoked_token_is_refused_at_once(store: Engine, clock: SetClock) -> None:
    """A token that is cached or that was revoked by its ID is refused too. A second revocation changes nothing."""
    tenancy = Tenancy(store, clock)
    record, token = await tenancy.create_token(1, 1, Role.ADMIN, "n", None)
    await tenancy.authenticate(token)
    revoked = await tenancy.revoke("n")
    with pytest.raises(Unauthenticated):
        await tenancy.authenticate(token)
    clock.pass_by(60)
    again = await tenancy.revoke(record.id)
    assert revoked.revoked_at == again.revoked_at == record.created_at


async def test_a_token_expires(store: Engine, clock: SetClock) -> None:
    """A token is valid before its expiry and invalid afterwards, whether or not it is cached."""
    tenancy = Tenancy(store, clock)
    _, token = await tenancy.create_token(1, 1, Role.ADMIN, "n", clock() + 60 * SECOND)
    await tenancy.authenticate(token)
    clock.pass_by(59)
    await tenancy.authenticate(token)
    clock.pass_by(1)
    for service in (tenancy, Tenancy(store, clock)):
        with pytest.raises(Unauthenticated):
            await service.authenticate(token)
    with pytest.raises(Invalid, match="invalid expires"):
        await tenancy.create_token(1, 1, Role.ADMIN, "n", clock())


async def test_revoking_by_an_ambiguous_name_is_refused(store: Engine, clock: SetClock) -> None:
    """A name that several active tokens have raises Conflict. Together with a tenant it selects one of them."""
    tenancy = Tenancy(store, clock)
    first, _ = await tenancy.create_token(1, 1, Role.ADMIN, "n", None)
    second, _ = await tenancy.create_token(2, 1, Role.ADMIN, "n", None)
    with pytest.raises(Conflict, match=f"{first.id}, {second.id}"):
        await tenancy.revoke("n")
    assert (await tenancy.revoke("n", 2, 1)).id == second.id
    assert (await tenancy.revoke("n")).id == first.id
    for unknown in (("other",), (99,), (first.id, 2), ("n", 1, 9)):
        with pytest.raises(NotFound):
            await tenancy.revoke(*unknown)


async def test_tokens_are_listed_in_order_of_id(store: Engine, clock: SetClock) -> None:
    """A list contains all tokens, the tokens of an organization, or the tokens of a tenant."""
    tenancy = Tenancy(store, clock)
    for organization, tenant in ((2, 1), (1, 1), (1, 2)):
        await tenancy.create_token(organization, tenant, Role.ADMIN, "n", None)
    everything = await tenancy.list_tokens()
    assert [record.id for record in everything] == sorted(record.id for record in everything)
    assert len(everything) == 3
    assert len(await tenancy.list_tokens(1)) == 2
    assert [(record.organization, record.tenant_number) for record in await tenancy.list_tokens(1, 2)] == [(1, 2)]


@pytest.mark.parametrize("name", ["", "  ", "123", "a\nb", "x" * 65, "a\x7f"])
async def test_an_invalid_token_name_is_refused(store: Engine, clock: SetClock, name: str) -> None:
    """A name is printable and short, and must not look like an ID."""
    with pytest.raises(Invalid, match="invalid name"):
        await Tenancy(store, clock).create_token(1, 1, Role.ADMIN, name, None)


async def test_the_first_start_creates_a_tenant_and_a_token(store: Engine, clock: SetClock) -> None:
    """The first start creates organization 1, tenant 1 and an admin token. The second start creates nothing."""
    tenancy = Tenancy(store, clock)
    tokens: list[str] = []
    assert await tenancy.first_start(tokens.append)
    (token,) = tokens
    assert token is not None
    caller = await tenancy.authenticate(token)
    assert (caller.organization, caller.tenant_number, caller.role) == (1, 1, Role.ADMIN)
    assert not await tenancy.first_start(tokens.append)
    assert not await Tenancy(store, clock).first_start(tokens.append)
    assert len(tokens) == 1


async def test_the_first_start_adds_no_second_token(store: Engine, clock: SetClock) -> None:
    """If there is a token already, no token is added."""
    tenancy = Tenancy(store, clock)
    await tenancy.create_token(7, 1, Role.OPERATOR, "n", None)
    assert not await tenancy.first_start(pytest.fail)


class CountingStore:
    """A store that counts reads. It can delay a read, or fail."""

    def __init__(self, store: Engine) -> None:
        self.store = store
        self.reads = 0
        self.fails = False
        self.has_read = trio.Event()
        self.let: trio.Event | None = None

    async def read(self, work: Work[T]) -> T:
        self.reads += 1
        if self.fails:
            raise StoreError("disk")
        result = await self.store.read(work)
        self.has_read.set()
        if self.let is not None:
            await self.let.wait()
        return result

    async def write(self, work: Work[T]) -> T:
        return await self.store.write(work)


async def test_a_known_token_is_cached(store: Engine, clock: SetClock) -> None:
    """Many requests with one token read the store once.

    After `forget` there is another read. The number of cached tokens is limited.
    """
    counting = CountingStore(store)
    tenancy = Tenancy(counting, clock, cached=2)
    tokens = [(await tenancy.create_token(1, 1, Role.ADMIN, "n", None))[1] for _ in range(3)]
    for _ in range(5):
        await tenancy.authenticate(tokens[0])
    assert counting.reads == 1
    tenancy.forget()
    for token in tokens:
        await tenancy.authenticate(token)
    assert counting.reads == 4
    await tenancy.authenticate(tokens[2])
    assert counting.reads == 4
    await tenancy.authenticate(tokens[0])
    assert counting.reads == 5


async def test_each_tenant_has_a_share_of_the_cached_tokens(store: Engine, clock: SetClock) -> None:
    """A token stays cached, however many tokens of another tenant are used."""
    counting = CountingStore(store)
    tenancy = Tenancy(counting, clock, cached=2)
    own = (await tenancy.create_token(1, 1, Role.ADMIN, "n", None))[1]
    await tenancy.authenticate(own)
    for _ in range(5):
        await tenancy.authenticate((await tenancy.create_token(2, 1, Role.ADMIN, "n", None))[1])
    reads = counting.reads
    await tenancy.authenticate(own)
    assert counting.reads == reads


async def test_unknown_tokens_are_not_cached(store: Engine, clock: SetClock) -> None:
    """If a token was used before it existed, it is valid as soon as it is created."""
    tenancy = Tenancy(store, clock)
    with pytest.raises(Unauthenticated):
        await tenancy.authenticate("sp_guess")
    record, _ = await tenancy.create_token(1, 1, Role.ADMIN, "n", None)
    hashed = token_hash("sp_guess")
    await store.write(
        lambda tx: tx.execute("update access_tokens set hash = :h where id = :id", h=hashed, id=record.id)
    )
    assert (await tenancy.authenticate("sp_guess")).token_id == record.id


async def test_unknown_tokens_are_looked_up_in_turn(store: Engine, clock: SetClock) -> None:
    """A flood of unknown tokens uses only one reader of the store.

    A source with few tokens waits for at most one look-up of each other source. A cached token does not wait.
    """
    counting = CountingStore(store)
    tenancy = Tenancy(counting, clock)
    _, cached = await tenancy.create_token(1, 1, Role.ADMIN, "n", None)
    _, new = await tenancy.create_token(1, 1, Role.ADMIN, "m", None)
    await tenancy.authenticate(cached)
    counting.let = trio.Event()
    counting.reads = 0

    async def guess(number: int) -> None:
        with pytest.raises(Unauthenticated):
            await tenancy.authenticate(f"sp_{number}", "192.0.2.1")

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(guess, number)
        await trio.testing.wait_all_tasks_blocked()
        assert counting.reads == 1
        await tenancy.authenticate(cached, "192.0.2.1")
        counting.let.set()
        await tenancy.authenticate(new, "192.0.2.2")
        assert counting.reads <= 3


async def test_a_concurrent_revocation_is_not_lost(store: Engine, clock: SetClock) -> None:
    """A record that was read before a revocation is not cached after the revocation."""
    counting = CountingStore(store)
    tenancy = Tenancy(counting, clock)
    record, token = await tenancy.create_token(1, 1, Role.ADMIN, "n", None)
    counting.let = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tenancy.authenticate, token)
        await counting.has_read.wait()
        await tenancy.revoke(record.id)
        counting.let.set()
    with pytest.raises(Unauthenticated):
        await tenancy.authenticate(token)


async def test_a_failing_store_admits_no_caller(store: Engine, clock: SetClock) -> None:
    """If the state of a token cannot be read, the request fails with StoreError."""
    counting = CountingStore(store)
    tenancy = Tenancy(counting, clock)
    _, token = await tenancy.create_token(1, 1, Role.ADMIN, "n", None)
    counting.fails = True
    with pytest.raises(StoreError):
        await tenancy.authenticate(token)
