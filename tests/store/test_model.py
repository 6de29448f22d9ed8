"""The conditions of SQL that repositories share, with each engine."""

import pytest

from sallyport.store.model import LISTED, LISTED_TEXTS, Store, Tx, Value, among, containing, listed
from tests.store.conftest import put

ROWS = (("Ann", "00-1A-2B-3C-4D-5E"), ("Zo\u00eb", "001a.2b3c.4d5e"), ("100%", "10.0.0.7"), ("wp-001A2B3C4D5E", ""))
TABLE = " union all ".join(f"select '{name}' as name, '{station}' as station" for name, station in ROWS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ann", ["Ann"]),
        ("ZO\u00cb", ["Zo\u00eb"]),
        ("%", ["100%"]),
        ("0.7", ["100%"]),
        ("00:1a:2b:3c:4d:5e", ["Ann", "Zo\u00eb"]),
        ("001A2B3C4D5E", ["Ann", "Zo\u00eb", "wp-001A2B3C4D5E"]),
        ("1A-2B", ["Ann"]),
        ("carl", []),
    ],
)
async def test_a_text_is_found_in_several_columns(store: Store, text: str, found: list[str]) -> None:
    """The search ignores case, knows no wildcards, and finds a whole MAC address in any notation."""
    condition, parameters = containing(("name", "station"), text)
    sql = f"select name from ({TABLE}) as people where {condition}"  # noqa: S608
    rows = await store.read(lambda tx: tx.rows(sql, **parameters))
    assert sorted(str(name) for (name,) in rows) == found


async def test_a_mac_address_is_no_notation_of_a_name(store: Store) -> None:
    """Other columns than `station` are searched for the text alone."""
    condition, parameters = containing(("name",), "001a.2b3c.4d5e")
    sql = f"select name from ({TABLE}) as people where {condition}"  # noqa: S608
    assert await store.read(lambda tx: tx.rows(sql, **parameters)) == []


@pytest.mark.parametrize("wanted", [[], [2], [3, 1, 9]])
async def test_rows_of_a_set(store: Store, wanted: list[Value]) -> None:
    """A set of any size selects its rows, by numbers and by texts."""

    def numbers(tx: Tx) -> list[list[tuple[Value, ...]]]:
        for value in range(5):
            put(tx, f"n{value}", value)
        sql, texts = "select value from counters where {} order by value", [f"n{each}" for each in wanted]
        sets = [
            tx.rows(sql.format(f"value in {LISTED}"), ids=listed(wanted)),
            tx.rows(sql.format(f"name in {LISTED_TEXTS}"), ids=listed(texts)),
        ]
        if wanted:
            condition, parameters = among(wanted, 3)
            sets.append(tx.rows(sql.format(f"value in {condition}"), **parameters))
        return sets

    expected = [(each,) for each in sorted({*wanted} & {*range(5)}, key=str)]
    assert all(each == expected for each in await store.write(numbers))
