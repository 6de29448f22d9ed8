"""Tests of sallyport.areas.passwords. The machines are rows of a table that the tests create."""

from sallyport.store.model import Tx


class Machines:
    """The machines of a tenant, read from the table `machines`."""

    def exists(self, tx: Tx, tenant_id: int, instance_id: int) -> bool:
        sql = "select 1 from machines where id = :id and tenant_id = :tenant"
        return tx.value(int, sql, id=instance_id, tenant=tenant_id) is not None


def make_table(tx: Tx) -> None:
    """Create the empty table."""
    tx.execute("create table machines (id integer primary key, tenant_id integer not null)")
