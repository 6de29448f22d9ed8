"""Re-authorizations while the store fails, an admin stops them, or their domain is removed."""

import pytest
import trio
import trio.testing

from sallyport.areas.domains.domain import Mode
from sallyport.areas.reauthorization import repo
from sallyport.areas.reauthorization.reauthorization import Reauthorization
from sallyport.areas.reauthorization.repo import Live
from sallyport.areas.reauthorization.service import RUNS_AT_ONCE
from sallyport.base.errors import TookTooLong
from sallyport.store.model import Tx
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


async def test_a_slice_that_takes_too_long(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that exceeds its time limit is repeated with half of its sessions. One session that takes too long is an
    error, so that the loop ends."""
    await office.rule("staff", "block", users=["ann", "bob"], priority=1, serviceTypes=["Framed"])
    await office.rule("rest", "allow", everyone=True)
    for user in ("cy", "cy", "cy"):
        await office.log_in(user)
    live, asked, most = repo.live, list[int](), [1]

    def slow(tx: Tx, place: int, after: int, limit: int) -> list[Live]:
        asked.append(limit)
        if limit > most[0]:
            raise TookTooLong(1)
        return live(tx, place, after, limit)

    monkeypatch.setattr(repo, "live", slow)
    found = await office.service.preview(office.areas.domain)
    assert found.examined == 3
    assert asked[:7] == [50, 25, 12, 6, 3, 1, 2]
    most[0] = 0
    with pytest.raises(TookTooLong):
        await office.service.preview(office.areas.domain)


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


async def test_a_tenant_with_many_domains(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few runs of a tenant proceed at the same time, and the runs of another tenant do not wait for them."""
    areas, proceeding = office.areas, list[int]()
    tenant = await areas.tenancy.ensure_tenant(1, 2)
    places = [areas.domain, *[await areas.domains.add(areas.tenant, f"branch-{number}") for number in range(3)]]
    other = await areas.domains.add(tenant, "other")
    await areas.configuration.reload()

    async def proceed(run: Reauthorization) -> None:
        proceeding.append(run.domain_id)
        await trio.sleep_forever()

    monkeypatch.setattr(office.service, "_proceed", proceed)
    for each in (*places, other):
        await office.service.start(each)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(office.service.run)
        await until(lambda: other in proceeding)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert len(proceeding) == RUNS_AT_ONCE + 1


async def test_a_change_of_the_mode_during_a_run(office: Office) -> None:
    """Sessions that are decided after a change of the domain are decided by the changed domain."""
    rule = await office.rule("staff", "allow", users=["ann"])
    await office.log_in("ann")
    await office.change(rule, action="block")
    domain = office.areas.domain
    slices = office.service._slices(office.areas.domains.table.present(domain), 0, 0, by_disconnect=False)
    await office.areas.domains.set_mode([domain], Mode.MONITOR)
    assert [list(changes) async for _, _, changes in slices] == [[]]
