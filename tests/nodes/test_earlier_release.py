"""A node of an earlier release, which does not write what later steps of the schema have added."""

import pytest

from sallyport.base.errors import Conflict
from sallyport.store.model import Tx
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres


async def test_realms_that_such_a_node_changes(pair: Pair) -> None:
    """A realm that it adds is taken, a realm that it removes is free, and it can delete a domain."""
    areas = pair.one
    changed, gone = [await areas.domains.add(areas.tenant, name, realms=[f"old.{name}"]) for name in ("one", "two")]
    added = (
        "insert into domains (tenant_id, name, name_key, directory_name, enforcement_mode, fallback_action, "
        "first_factor, status, realms, created_at) "
        "values (:t, 'Three', 'three', '', 'monitor', 'deny', 'local', 'active', '', 1)"
    )

    def change(tx: Tx) -> None:
        tx.execute("update domains set realms = :realms where id = :id", realms="NEW.one\nnew.ONE", id=changed)
        tx.execute("update domains set removed_at = 1, name_key = ' ', realms = '' where id = :id", id=gone)
        tx.execute("delete from domains where id = :id", id=gone)
        tx.execute(added, t=areas.tenant)

    await areas.store.write(change)
    for realm in ("new.one", "one", "three"):
        with pytest.raises(Conflict):
            await areas.domains.add(areas.tenant, "four", realms=[realm])
    assert await areas.domains.add(areas.tenant, "four", realms=["old.one", "old.two", "two"])
