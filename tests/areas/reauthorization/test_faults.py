"""Re-authorizations while the store fails, an admin stops them, or their domain is removed."""

import trio

from sallyport.areas.domains.domain import Mode
from tests.areas import allow, refuse
from tests.areas.reauthorization.conftest import Office
from tests.waiting import until


async def several(office: Office, *users: str) -> int:
    """Let users have sessions, change their attributes, and start a run. Return its id."""
    rule = await office.rule("staff", "allow", users=[*users], vlan="20")
    for user in users:
        await office.log_in(user)
    await office.change(rule, vlan="30")
    return await office.service.start(office.areas.domain)


async def test_a_failure_of_the_store(office: Office) -> None:
    """If the answers of devices cannot be stored, the run continues later. The task of the leader does not end."""
    run_id = await several(office, "ann", "bob")
    await refuse(office.areas.store, "before update on reauthorized_sessions", "new.outcome <> ''")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(office.service.run)

        async def has_tried_again() -> bool:
            return len(office.nas.requests) > 2

        await until(has_tried_again)
        await allow(office.areas.store, "reauthorized_sessions")
        nursery.cancel_scope.cancel()
    run = await office.carried_out(run_id)
    assert (run.state, run.changed, run.done) == ("done", 2, 2)


async def test_a_stop_while_a_request_waits(office: Office) -> None:
    """A request that has waited for the turn of its device is not sent after a stop."""
    run_id = await several(office, "ann")
    run, found = await office.found(run_id), await office.service.preview(office.areas.domain)
    await office.service.stop(office.areas.domain, run_id)
    domain = office.areas.domains.table.present(office.areas.domain)
    await office.service._ask(run, domain, found.changes[0])  # as if it had waited since before the stop
    assert office.nas.requests == []


async def test_a_removed_domain(office: Office) -> None:
    """If the rows of a run are erased while it runs, the run ends, and no request is sent any more."""
    run_id = await several(office, "ann")
    run = await office.found(run_id)
    await office.areas.store.write(lambda tx: tx.execute("delete from reauthorizations"))
    await office.service._carry_out(run)  # as if it had begun before
    assert office.nas.requests == []


async def test_a_change_of_the_mode_during_a_run(office: Office) -> None:
    """Sessions that are decided after a change of the domain are decided by the changed domain."""
    rule = await office.rule("staff", "allow", users=["ann"])
    await office.log_in("ann")
    await office.change(rule, action="block")
    domain = office.areas.domain
    slices = office.service._slices(office.areas.domains.table.present(domain), 0, 0, by_disconnect=False)
    await office.areas.domains.set_mode([domain], Mode.MONITOR)
    assert [list(changes) async for _, _, changes in slices] == [[]]
