"""The audit trail: the tenant of an entry, and the stored number of entries."""

import pytest

from sallyport.base.errors import NotFound
from sallyport.store import audit
from sallyport.store.connections import SqliteTx
from tests.store.test_limits import Rows, rows

__all__ = ["rows"]
ENTRIES = "select tenant_id, domain_id, target from audit_trail order by id"
TOTALS = "select tenant_id, domain_id, value from audit_totals order by tenant_id, domain_id"


def test_an_entry_belongs_to_the_tenant_of_its_domain(rows: Rows) -> None:
    """The tenant is found by the domain. In a domain that was removed meanwhile, nothing can be changed."""
    tx, theirs = SqliteTx(rows.connection), rows.add("domains", 1)
    ours, removed = rows.add("domains", 2), rows.add("domains", 2, removed_at=1)
    audit.record_in(tx, "group.update", ours, "group 3 ops", at=5)
    audit.record_all_in(tx, "user.delete", theirs, ["user 1 ann", "user 2 bob"], at=6)
    entries = [(2, ours, "group 3 ops"), (1, theirs, "user 1 ann"), (1, theirs, "user 2 bob")]
    assert tx.rows(ENTRIES) == entries
    for domain_id in (removed, removed + 1):
        with pytest.raises(NotFound):
            audit.record_in(tx, "group.update", domain_id, "group 3 ops", at=7)
    assert tx.rows(ENTRIES) == entries
    assert [audit.share_of(tx, each) for each in (theirs, removed, removed + 1)] == [1, 2, 0]


def test_entries_are_counted_by_tenant_and_domain(rows: Rows) -> None:
    """The number of entries of one domain, or of no domain, changes with these entries alone."""
    tx, first, second = SqliteTx(rows.connection), rows.add("domains", 1), rows.add("domains", 1)
    for domain_id in (first, first, second, None, None):
        audit.record(tx, "x.add", at=domain_id or 1, tenant_id=1, target="x", domain_id=domain_id)
    audit.record(tx, "x.add", at=1, tenant_id=2, target="x")
    assert tx.rows(TOTALS) == [(1, 0, 2), (1, first, 2), (1, second, 1), (2, 0, 1)]
    tx.execute("delete from audit_trail where domain_id = :d", d=second)
    tx.execute("delete from audit_trail where id = (select min(id) from audit_trail where domain_id is null)")
    assert tx.rows(TOTALS) == [(1, 0, 1), (1, first, 2), (1, second, 0), (2, 0, 1)]
