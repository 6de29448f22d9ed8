"""Nodes whose clocks differ by as much as the documentation allows."""

from sallyport.areas.users import repo
from sallyport.base.clock import SECOND
from sallyport.base.totp import SLACK, step_at
from sallyport.store.foreign import CLOCKS_US
from sallyport.store.model import Tx
from tests.areas import SetClock
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres
SEED = "JBSWY3DPEHPK3PXP"


async def test_a_restore_voids_the_codes_of_a_node_that_is_ahead(pair: Pair, clock: SetClock) -> None:
    """After a restore, no node accepts a code that any node has accepted before."""
    areas = pair.one
    ann = await areas.add_user(areas.domain, "ann", b"hello")

    def restore(tx: Tx) -> None:
        repo.set_seed(tx, areas.vault, ann, SEED, 0, clock())
        areas.app.areas.void(tx, False)

    await areas.store.write(restore)
    clock.pass_by(CLOCKS_US / SECOND)
    newest = step_at(clock()) + max(SLACK)
    assert await areas.store.read(lambda tx: tx.value(int, "select max(motp_step) from endpoint_users")) == newest
