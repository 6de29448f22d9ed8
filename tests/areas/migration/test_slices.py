"""The transactions of a large import."""

import pytest

from sallyport.areas.configuration.transactions import SLICE, WHOLE
from tests.areas import Areas, areas, clock
from tests.areas.configuration.test_apply import engine_of, items

__all__ = ["areas", "clock"]


@pytest.mark.parametrize("kind", ["client", "bypass"])
async def test_a_transaction_has_at_most_a_slice(areas: Areas, kind: str) -> None:
    """The writer is held for one slice at a time: 50 clients take 5 to 15 ms. Before the last slice, no login sees any
    of them."""
    fields = {
        "client": lambda n: {"name": f"c{n}", "address": f"10.0.{n // 250}.{n % 250}", "secret": {"hex": "61" * 16}},
        "bypass": lambda n: {"domain": "lab", "station": f"0200000{n:05}"},
    }[kind]
    number, engine = WHOLE + 10, engine_of(areas)
    table = {"client": "radius_clients", "bypass": "bypass_stations"}[kind]
    folder = [("domain", {"domainName": "lab"}), *((kind, fields(n)) for n in range(number))]
    plan = await engine.plan(areas.tenant, items(folder))
    sizes, before = list[int](), 0
    for part in engine.transactions.of(plan, "a run"):
        await areas.store.write(part.write)
        now = await areas.store.read(lambda tx: tx.value(int, f"select count(*) from {table}") or 0)  # noqa: S608
        sizes.append(now - before)
        before = now
        assert not areas.clients.of_tenant(areas.tenant)
    assert sum(sizes) == number and max(sizes) <= SLICE and len(sizes) > WHOLE // SLICE


async def test_a_usual_import_is_one_transaction(areas: Areas) -> None:
    """Up to 500 changes are written in one transaction, so that no part of them is ever seen."""
    clients = [("client", {"name": f"c{n}", "address": f"10.0.{n // 250}.{n % 250}"}) for n in range(WHOLE)]
    folder = [(kind, {**fields, "secret": {"hex": "61" * 16}}) for kind, fields in clients]
    engine = engine_of(areas)
    assert len(engine.transactions.of(await engine.plan(areas.tenant, items(folder)), "a run")) == 1
