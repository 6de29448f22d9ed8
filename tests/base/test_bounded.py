"""Bounded maps, compared with a simple model that searches a list."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.bounded import BoundedMap, ExpiringMap

KEYS = st.integers(0, 12)
OWNERS = st.tuples(st.integers(0, 3), st.integers(0, 2))
STEPS = st.lists(st.tuples(st.booleans(), KEYS, OWNERS), max_size=80)


class Model:
    """A list of entries (key, value, owners), with the oldest entry first."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, tuple[int, ...]]] = []

    def remove(self, key: int) -> None:
        self.entries = [entry for entry in self.entries if entry[0] != key]

    def candidates(self, depth: int) -> set[int]:
        """Return the keys that may be dropped. Such a key is the oldest in a largest part of a largest owner."""
        entries = self.entries
        groups = [entries]
        for level in range(1, depth + 1):
            found = []
            for group in groups:
                sizes = Counter(owners[:level] for _, _, owners in group)
                largest = max(sizes.values())
                found += [
                    [entry for entry in group if entry[2][:level] == name]
                    for name, size in sizes.items()
                    if size == largest
                ]
            groups = found
        return {group[0][0] for group in groups}


@given(STEPS, st.integers(1, 8), st.integers(0, 2))
def test_a_full_map_drops_the_oldest_entry_of_the_largest_owner(
    steps: list[tuple[bool, int, tuple[int, int]]], limit: int, depth: int
) -> None:
    """After any sequence of changes, the map has the entries of the model in the same order, and no more than its
    limit.
    """
    bounded, model = BoundedMap[int, int](limit), Model()
    for number, (is_put, key, owners) in enumerate(steps):
        model.remove(key)
        if not is_put:
            bounded.pop(key)
            assert key not in bounded
            continue
        dropped = bounded.put(key, number, *owners[:depth])
        model.entries.append((key, number, owners[:depth]))
        if len(model.entries) > limit:
            [gone] = [entry for entry in model.entries if entry[1] == dropped]
            assert gone[0] in model.candidates(depth)
            model.remove(gone[0])
        else:
            assert dropped is None
        assert len(bounded) == len(model.entries) <= limit
    assert list(bounded) == [key for key, _, _ in model.entries]
    assert bounded.values() == [value for _, value, _ in model.entries]
    assert all(bounded.get(key) == value for key, value, _ in model.entries)


def test_an_owner_that_fills_the_map_drops_its_own_entries() -> None:
    """When the map is full, a small owner keeps its entries, even if they are the oldest."""
    bounded = BoundedMap[str, int](100)
    for number in range(10):
        bounded.put(f"few {number}", number, "few")
    for number in range(1000):
        bounded.put(f"many {number}", number, "many")
    assert all(f"few {number}" in bounded for number in range(10))
    assert [key for key in bounded if key.startswith("many")] == [f"many {number}" for number in range(910, 1000)]


def test_a_part_that_fills_its_owners_share_drops_its_own_entries() -> None:
    """When the map is full, the largest part of the largest owner loses its oldest entry."""
    bounded = BoundedMap[str, int](100)
    bounded.put("quiet tenant", 0, 1, 1)
    bounded.put("quiet client", 0, 2, 1)
    for number in range(1000):
        bounded.put(f"{number}", number, 2, 2)
    assert "quiet tenant" in bounded
    assert "quiet client" in bounded


def test_many_owners_with_an_entry_each_are_dropped_oldest_first() -> None:
    """A map that has fewer places than owners keeps the newest entries."""
    bounded = BoundedMap[int, int](3)
    for number in range(10):
        bounded.put(number, number, number)
    assert list(bounded) == [7, 8, 9]


def test_the_oldest_matching_entries_are_removed() -> None:
    """The removal stops at the first entry that does not match, and the shares of the owners are updated."""
    bounded = BoundedMap[str, int](4)
    for key, value in (("a", 1), ("b", 2), ("c", 9), ("d", 3)):
        bounded.put(key, value, "owner")
    assert bounded.pop_oldest_while(lambda value: value < 5) == [1, 2]
    assert list(bounded) == ["c", "d"]
    bounded.clear()
    assert not bounded
    assert bounded.put("e", 5, "owner") is None


def test_a_renewed_entry_is_the_newest_of_its_owner() -> None:
    """A renewed entry has a new value and the same owners, and is dropped last."""
    bounded = BoundedMap[str, int](2)
    bounded.put("a", 1, "owner")
    bounded.put("b", 2, "owner")
    bounded.renew("a", 3)
    assert bounded.put("c", 4, "owner") == 2
    assert (bounded.values(), bounded.oldest()) == ([3, 4], 3)


def test_a_renewed_entry_expires_later() -> None:
    """The lifetime of a renewed entry begins again. The lifetimes of the other entries do not."""
    expiring = ExpiringMap[str, int](10, 7)
    for key, now in (("a", 0), ("b", 1)):
        expiring.put(key, now, now=now)
    expiring.renew("a", 5, now=6)
    assert expiring.expire(now=7) == []
    assert expiring.expire(now=8) == [1]
    assert expiring.get("a", now=12) == 5
    assert expiring.expire(now=13) == [5]


@given(st.lists(st.tuples(KEYS, st.integers(0, 5)), max_size=60), st.integers(1, 6))
def test_an_entry_expires_after_its_lifetime(steps: list[tuple[int, int]], limit: int) -> None:
    """An entry is found until `lifetime` has passed since it was put. Then it is removed."""
    expiring, model, now = ExpiringMap[int, int](limit, 7), dict[int, int](), 0
    for key, passes in steps:
        now += passes
        model = {each: at for each, at in model.items() if each != key and now < at + 7}
        model[key] = now
        expiring.put(key, now, now=now)
        if len(model) > limit:
            del model[next(iter(model))]
        for each in range(13):
            at = model.get(each)
            assert expiring.get(each, now=now) == (at if at is not None and now < at + 7 else None)
        assert len(expiring) == len(model)
    now += 4
    over = [at for at in model.values() if at + 7 <= now]
    assert all(expiring.get(key, now=now) is None for key, at in model.items() if at in over)
    assert expiring.expire(now=now) == over
    assert len(expiring) == len(model) - len(over)
