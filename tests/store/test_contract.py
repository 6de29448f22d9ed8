"""The contract of every store engine. The fixtures `store` and `database` run it on each."""

import gc
import math
import threading
import weakref
from dataclasses import dataclass
from functools import partial

import pytest
import trio
import trio.testing

from sallyport.base.errors import Contradiction, NotFound, StoreError
from sallyport.store import counters
from sallyport.store.model import NewRows, Store, Tx, Value
from tests.store.conftest import Database, names, put


@dataclass(frozen=True)
class Number:
    """A row with the shape that a test uses."""

    name: str
    value: int


class Gate:
    """A stop in the middle of the writer's transaction, until it is opened."""

    def __init__(self) -> None:
        self.entered = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        self._let = threading.Event()

    def work(self, tx: Tx) -> bool:
        """Wait in the writer for the gate."""
        self._token.run_sync_soon(self.entered.set)
        return self._let.wait(10)

    def open(self) -> None:
        """Open the gate."""
        self._let.set()


async def test_a_write_is_seen_by_the_next_read(store: Store) -> None:
    """A read that begins after a write has returned sees it."""
    for number in range(20):
        await store.write(partial(put, name=f"n{number}", value=number))
        look = (store.read, store.search, store.read_now)[number % 3]
        assert len(await look(names)) == number + 1


async def test_each_commit_is_a_change(store: Store) -> None:
    """`changes` grows with each commit and stays the same after a read, so that a reader of others' writes can wait for
    it.
    """
    seen = [store.changes]
    await store.write(partial(put, name="one"))
    seen.append(store.changes)
    done = trio.Event()
    store.submit(partial(put, name="two"), lambda _result, _error: done.set())
    await done.wait()
    seen.append(store.changes)
    assert sorted(set(seen)) == seen
    await store.read(names)
    assert store.changes == seen[-1]


async def test_a_write_outlives_the_store(database: Database) -> None:
    """A write is there after the database is opened again."""
    async with database.opened() as store:
        await store.write(partial(put, name="kept"))
    async with database.opened() as store:
        assert await store.read(names) == ["kept"]


async def test_rows_have_a_shape(store: Store) -> None:
    """one and all call the shape with the columns by name; value returns the first column; no row gives None."""
    await store.write(lambda tx: [put(tx, "a", 1), put(tx, "b", 2)])
    select = "select name, value from counters where domain_id = 0 and value >= :least order by value"
    first, rows, value, none, no_row = await store.read(
        lambda tx: (
            tx.one(Number, select, least=0),
            tx.all(Number, select, least=0),
            tx.value(int, "select value from counters where name = :name", name="b"),
            tx.one(Number, select, least=9),
            tx.value(int, "select value from counters where name = :name", name="none"),
        )
    )
    assert first == Number("a", 1)
    assert rows == [Number("a", 1), Number("b", 2)]
    assert (value, none, no_row) == (2, None, None)


async def test_null_is_no_value(store: Store) -> None:
    """A null of a table is None for any type."""
    assert await store.read(lambda tx: tx.value(int, "select max(value) from counters where domain_id = -1")) is None


async def test_fold(store: Store) -> None:
    """fold ignores case in every script, also of octets. Null stays null."""
    for value, folded in (("ÄB", "äb"), ("Ä".encode(), "ä"), (b"\xffA", "�a"), (7, "7"), (None, None)):
        sql = "select fold(:value)"
        assert await store.read(lambda tx, sql=sql, value=value: tx.rows(sql, value=value)) == [(folded,)]


async def test_octets_and_text_come_back_as_they_were(store: Store) -> None:
    """NUL and every octet in a blob, every character in a text, and the bounds of 63 bits are stored unchanged."""
    octets, text = bytes(range(256)), "Zürich 上海 🚪 '\"\\ %_"

    def work(tx: Tx) -> tuple[bytes | None, str | None, list[int]]:
        tx.insert("answers", ("at", "packed"), [(-(2**63), octets), (2**63 - 1, b"")])
        put(tx, text)
        return (
            tx.value(bytes, "select packed from answers order by at"),
            tx.value(str, "select name from counters where domain_id = 0"),
            tx.all(lambda at: at, "select at from answers order by at"),
        )

    assert await store.write(work) == (octets, text, [-(2**63), 2**63 - 1])


async def test_statements_return_the_number_of_changed_rows(store: Store) -> None:
    """execute returns the number of changed rows: none for an insert that did nothing."""
    await store.write(lambda tx: [put(tx, "a", 1), put(tx, "b", 1), put(tx, "c", 2)])
    again = "insert into counters (domain_id, name, value) values (0, 'a', 9) on conflict do nothing"
    changed = await store.write(
        lambda tx: (tx.execute(again), tx.execute("update counters set value = 5 where value = :v", v=1))
    )
    assert changed == (0, 2)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 100, 1000])
async def test_many_rows_are_inserted_in_order(store: Store, count: int) -> None:
    """insert takes any number of rows, also none, and numbers them in the given order."""
    rows = [(number, b"%d" % number) for number in range(count)]

    def work(tx: Tx) -> list[int]:
        tx.insert("answers", ("at", "packed"), iter(rows))
        return tx.all(lambda at: at, "select at from answers order by id")

    assert await store.write(work) == list(range(count))


@pytest.mark.parametrize("count", [1, 64, 65, 130])
async def test_shared_values_of_rows_are_given_once(store: Store, count: int) -> None:
    """insert adds the values that all rows share to each row, in every statement that it makes."""

    def work(tx: Tx) -> list[tuple[Value, ...]]:
        rows = [(f"name {number:03}",) for number in range(count)]
        tx.insert("counters", ("name",), rows, same={"value": 7, "domain_id": 0})
        return tx.rows("select domain_id, name, value from counters order by name")

    assert await store.write(work) == [(0, f"name {number:03}", 7) for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 3, 200], ids=["none", "one", "three", "many"])
async def test_rows_are_inserted_into_several_tables(store: Store, count: int) -> None:
    """insert_all adds all rows of each table, and applies `on_conflict` to its own table only."""
    answers = [(number, b"\0\\" * number) for number in range(count)]

    def work(tx: Tx) -> tuple[list[tuple[Value, ...]], int]:
        for _ in range(2):
            tx.insert_all([NewRows("answers", ("at", "packed"), answers), counters.shared(tx, {(0, "a"): count})])
        return tx.rows("select at, packed from answers order by id"), counters.total(tx, 0, "a")

    assert await store.write(work) == (answers * 2, count * 2)


TEXTS = ("", "null", "NULL", "{a,b}", 'a "quoted" name', "back\\slash", "line\nbreak", "\u4e2d \U0001f600")


async def test_every_text_is_inserted_as_it_was(store: Store) -> None:
    """Texts with characters of the engine's own syntax come back as they were."""

    def work(tx: Tx) -> list[tuple[Value, ...]]:
        tx.insert("counters", ("domain_id", "name", "value"), [(0, text, at) for at, text in enumerate(TEXTS)])
        return tx.rows("select name from counters order by value")

    assert await store.write(work) == [(text,) for text in TEXTS]


async def test_a_table_of_given_numbers_changes_many_rows(store: Store) -> None:
    """`table` gives a statement the numbers of many rows: also negative ones, and those of 64 bits."""
    given = {"key": [3, 1, 2], "plus": [-5, 2**62, 0]}

    def work(tx: Tx) -> list[tuple[Value, ...]]:
        tx.insert("counters", ("domain_id", "name", "value"), [(number, "a", 10) for number in range(5)])
        table, parameters = tx.table(given)
        sql = f"update counters set value = value + given.plus from {table} where domain_id = given.key"  # noqa: S608
        changed = tx.execute(sql, **parameters)
        assert changed == 3
        return tx.rows("select domain_id, value from counters order by domain_id")

    assert await store.write(work) == [(0, 10), (1, 10 + 2**62), (2, 10), (3, 5), (4, 10)]


async def test_rows_are_locked_while_they_are_read(store: Store) -> None:
    """`lock` ends a select statement on each engine."""
    await store.write(partial(put, name="a", value=7))
    sql = "select value from counters where name = 'a'"
    assert await store.write(lambda tx: tx.rows(sql + tx.lock("counters"))) == [(7,)]


async def test_a_read_does_not_write(store: Store) -> None:
    """A write inside a read or a search raises StoreError and changes nothing."""
    for look in (store.read, store.read_now, store.search):
        with pytest.raises(StoreError):
            await look(partial(put, name="never"))
        assert await look(names) == []


async def test_a_read_sees_one_state(store: Store) -> None:
    """A write that is committed between two statements of a read is visible to neither."""
    gate = Gate()
    seen: list[int] = []

    def work(tx: Tx) -> None:
        seen.append(len(names(tx)))
        gate.work(tx)
        seen.append(len(names(tx)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.read, work)
        await gate.entered.wait()
        await store.write(partial(put, name="between"))
        gate.open()
    assert seen == [0, 0]
    assert await store.read(names) == ["between"]


async def test_a_short_read_that_fails_leaves_the_next_ones_alone(store: Store) -> None:
    """An error in a short read reaches its caller, and the next short read sees later writes."""

    def fails(tx: Tx) -> None:
        names(tx)
        raise NotFound("x")

    with pytest.raises(NotFound):
        await store.read_now(fails)
    await store.write(partial(put, name="later"))
    assert await store.read_now(names) == ["later"]


async def test_reads_run_beside_a_write(store: Store) -> None:
    """During a transaction reads see the committed state, and do not wait."""
    gate = Gate()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.write, lambda tx: [put(tx, "open"), gate.work(tx)])
        await gate.entered.wait()
        with trio.fail_after(30):
            for _ in range(20):
                assert await store.read(names) == []
        gate.open()
    assert await store.read(names) == ["open"]


async def test_writes_that_wait_share_a_transaction(database: Database, store: Store) -> None:
    """Writes that wait for one transaction share the next ones, and each caller has its own result."""
    gate = Gate()
    before = database.transactions()
    results: dict[int, int] = {}

    async def write(number: int) -> None:
        results[number] = await store.write(lambda tx: put(tx, f"n{number}", number) * number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.write, gate.work)
        await gate.entered.wait()
        for number in range(300):
            nursery.start_soon(write, number)
        await trio.testing.wait_all_tasks_blocked()
        gate.open()
    assert results == {number: number for number in range(300)}
    assert database.transactions() - before == 1 + math.ceil(300 / database.most)
    assert await store.read(names) == [f"n{number}" for number in range(300)]


async def test_a_failing_item_is_undone_alone(database: Database, store: Store) -> None:
    """If the second of three items in a transaction raises, its rows are undone and the others' are kept."""
    gate, error = Gate(), NotFound("no such thing")
    caught: list[Exception] = []

    def fails(tx: Tx) -> None:
        put(tx, "undone")
        raise error

    async def failing() -> None:
        try:
            await store.write(fails)
        except NotFound as raised:
            caught.append(raised)

    before = database.transactions()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.write, gate.work)
        await gate.entered.wait()
        for name in ("before", "", "after"):
            if name:
                nursery.start_soon(store.write, partial(put, name=name))
            else:
                nursery.start_soon(failing)
            await trio.testing.wait_all_tasks_blocked()
        gate.open()
    assert caught == [error]
    assert database.transactions() - before == 2
    assert await store.read(names) == ["after", "before"]


@pytest.mark.parametrize("error", [NotFound("x"), ZeroDivisionError(), LookupError("x"), OverflowError()])
async def test_an_exception_of_the_work_reaches_its_caller(store: Store, error: Exception) -> None:
    """If the work raises an exception, the caller gets it unchanged. The rows that the work wrote are undone, and the
    store continues."""

    def fails(tx: Tx) -> None:
        put(tx, "undone")
        raise error

    for call in (store.write, store.read):
        with pytest.raises(type(error)) as raised:
            await call(fails if call == store.write else partial(_raise, error))
        assert raised.value is error
    assert await store.read(names) == []


def _raise(error: Exception, tx: Tx) -> None:
    raise error


@pytest.mark.parametrize(
    "sql",
    [
        "insert into counters (domain_id, name, value) values (0, 'taken', 1)",
        "insert into counters (domain_id, name, value) values (0, 'null', null)",
        "insert into domains (tenant_id) values (99)",
        "insert into no_such_table values (1)",
        "no sql",
    ],
)
async def test_what_the_engine_refuses_is_a_store_error(store: Store, sql: str) -> None:
    """A violated constraint or a wrong statement raises StoreError for its caller alone."""
    await store.write(partial(put, name="taken"))
    with pytest.raises(StoreError):
        await store.write(lambda tx: (put(tx, "undone"), tx.execute(sql)))
    await store.write(partial(put, name="then", value=1))
    assert await store.read(names) == ["taken", "then"]


async def test_a_reference_must_exist(store: Store) -> None:
    """A missing foreign key raises Contradiction, which means that a retry would fail too."""
    token = "insert into access_tokens (tenant_id, name, role, hash, created_at) values (:tenant, 'n', 'admin', 'h', 0)"
    with pytest.raises(Contradiction):
        await store.write(lambda tx: tx.execute(token, tenant=77))


async def test_submitted_work_is_reported_in_order(store: Store) -> None:
    """submit calls `done` on the event loop, in the order of submission, with a result or an error."""
    outcomes: list[object] = []
    finished = trio.Event()
    loop = threading.get_ident()
    error = NotFound("x")

    def done(result: int | None, raised: BaseException | None) -> None:
        assert threading.get_ident() == loop
        outcomes.append(raised or result)
        if len(outcomes) == 101:
            finished.set()

    def numbered(number: int, tx: Tx) -> int:
        put(tx, f"n{number}", number)
        if number == 50:
            raise error
        return number

    for number in range(101):
        store.submit(partial(numbered, number), done)
    with trio.fail_after(30):
        await finished.wait()
    assert outcomes == [*range(50), error, *range(51, 101)]
    assert len(await store.read(names)) == 100


async def test_done_may_submit_more(store: Store) -> None:
    """Work that `done` submits is done as well. A `done` that raises stops no other."""
    finished = trio.Event()

    def second(_result: int | None, raised: BaseException | None) -> None:
        assert raised is None
        finished.set()

    def first(_result: int | None, _raised: BaseException | None) -> None:
        store.submit(partial(put, name="second", value=2), second)
        raise RuntimeError("raised by done")

    store.submit(partial(put, name="first", value=1), first)
    with trio.fail_after(30):
        await finished.wait()
    assert await store.read(names) == ["first", "second"]


async def test_a_cancel_waits_for_the_commit(store: Store) -> None:
    """A cancelled writer gets the result of its commit first, and is cancelled after that."""
    gate = Gate()
    kept: list[int] = []
    went_on = False

    async def write(scope: trio.CancelScope) -> None:
        nonlocal went_on
        with scope:
            kept.append(await store.write(partial(put, name="row")))
            await trio.lowlevel.checkpoint()
            went_on = True

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.write, gate.work)
        await gate.entered.wait()
        nursery.start_soon(write, scope)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert kept == []
        gate.open()
    assert (kept, went_on, scope.cancelled_caught) == ([1], False, True)
    assert await store.read(names) == ["row"]


async def test_what_is_queued_is_done_at_the_end(database: Database) -> None:
    """Work that was submitted before the stop is committed and reported."""
    outcomes = []
    async with database.opened() as store:
        for number in range(50):
            store.submit(partial(put, name=f"n{number}"), lambda result, error: outcomes.append((result, error)))
    async with database.opened() as store:
        assert len(await store.read(names)) == 50
    assert outcomes == [(1, None)] * 50


async def test_a_closed_store_refuses(database: Database) -> None:
    """Reading, writing and submitting to a closed store raise StoreError, and no caller is left waiting."""
    async with database.opened() as store:
        pass
    with trio.fail_after(30):
        with pytest.raises(StoreError):
            await store.write(partial(put, name="late"))
        with pytest.raises(StoreError):
            store.submit(partial(put, name="late"), lambda result, error: None)
        for look in (store.read, store.read_now, store.search):
            with pytest.raises(StoreError):
                await look(names)


async def test_reads_are_not_held_up_by_searches(store: Store) -> None:
    """A read has its connection, however many searches run."""
    gate = Gate()
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(store.search, gate.work)
        await gate.entered.wait()
        with trio.fail_after(30):
            assert await store.read(names) == []
        gate.open()


@pytest.mark.parametrize("is_submitted", [False, True])
async def test_a_finished_write_is_freed_at_once(store: Store, is_submitted: bool) -> None:
    """An idle writer keeps nothing of its last transaction: the function may hold a password."""
    gate, done = Gate(), trio.Event()
    held = Gate()
    freed = weakref.ref(held)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.write, gate.work)  # the next item waits in the thread's queue
        await gate.entered.wait()
        gc.disable()
        try:
            if is_submitted:
                store.submit(lambda tx, held=held: put(tx, repr(held)), lambda _result, _error: done.set())
                gate.open()
                await done.wait()
            else:
                gate.open()
                await store.write(lambda tx, held=held: put(tx, repr(held)))
            del held
            await trio.testing.wait_all_tasks_blocked()
            assert freed() is None
        finally:
            gc.enable()


async def test_totals_are_kept_by_domain_and_name(store: Store) -> None:
    """A counter begins at 0, is undone with its transaction, and belongs to one domain."""

    def undone(tx: Tx) -> None:
        counters.add(tx, 1, "devices", 100)
        raise NotFound("x")

    for change in (3, 4, -2):
        await store.write(partial(counters.add, domain_id=1, name="devices", change=change))
    await store.write(lambda tx: counters.add(tx, 2, "devices", 1))
    with pytest.raises(NotFound):
        await store.write(undone)
    totals = await store.read(
        lambda tx: [counters.total(tx, domain, name) for domain, name in ((1, "devices"), (2, "devices"), (1, "x"))]
    )
    assert totals == [5, 1, 0]
