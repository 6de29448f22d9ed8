"""Long entries of the audit trail: their size is limited when they are written and when a page is read."""

import json

from sallyport.areas.audit.operations import MAX_CHARACTERS, _fair_share, shown
from sallyport.areas.audit.repo import AuditRow
from sallyport.store import audit


def row(number: int, changes: str) -> AuditRow:
    """Return an entry with these changes."""
    return AuditRow(number, 0, 1, None, "token", "admin", 1, "rule.update", "rule 1", changes, None)


def test_an_entry_with_many_long_values_is_truncated() -> None:
    """An entry has at most MAX_TOTAL_LENGTH characters of values, shared by all of them. Short values are kept."""
    changes = {f"field{number}": ["a" * 1900, "b" * 1900] for number in range(20)} | {"name": ["old", "new"]}
    kept = json.loads(audit.as_kept(changes))
    assert list(kept) == list(changes)
    assert kept["name"] == ["old", "new"]
    assert sum(len(text) for values in kept.values() for text in values) <= audit.MAX_TOTAL_LENGTH + 3 * 2 * len(
        changes
    )
    assert kept["field0"][0].endswith("a...")


async def test_a_page_of_long_entries_is_truncated() -> None:
    """The changes of a page have about MAX_CHARACTERS, however long its entries are. Entries that are shorter than
    their share are complete."""
    long = audit.as_kept({f"field{number}": [None, "x" * 1900] for number in range(8)})
    short = audit.as_kept({"name": ["old", "new"]})
    rows = [row(number, short if number % 10 == 0 else long) for number in range(1000)]
    found = await shown(rows)
    assert [entry["auditId"] for entry in found] == list(range(1000))
    assert all(entry["changes"] == {"name": ["old", "new"]} for entry in found[::10])
    assert 0.5 * MAX_CHARACTERS < len(json.dumps([entry["changes"] for entry in found])) < 1.2 * MAX_CHARACTERS


async def test_a_page_of_common_entries_is_complete() -> None:
    """A page of few long entries, or of many short ones, is not truncated."""
    changes = {f"field{number}": [None, "x" * 1900] for number in range(8)}
    (entry,) = await shown([row(1, audit.as_kept(changes))])
    assert entry["changes"] == changes
    assert await shown([]) == []


def test_lengths_share_a_total() -> None:
    """Texts that are shorter than their share leave the rest to the longer ones."""
    assert _fair_share([10, 10], 25) == 10
    assert _fair_share([1, 100, 100], 101) == 50
    assert _fair_share([5, 6, 7], 12) == 4
