"""The pages of endpoint agents."""

import trio

from sallyport.agentwire.report import Action as Done
from sallyport.agentwire.report import Drift, DriftKind, Outcome
from sallyport.agentwire.state import TriggerKind
from tests.areas.agents.hosts import Host, user
from tests.areas.agents.test_reports import account, discovery
from tests.console.visitor import Site, Visitor, text_of


async def test_an_agent_is_shown_with_its_drift_and_reports(site: Site, admin: Visitor) -> None:
    """The pages have the state of the agent, what changed on the machine, and what the agent did."""
    assert "No agent yet" in text_of(await admin.get("/agents"))
    host = await Host.register(site.areas, "web")
    await user(site.areas, "ann")
    await host.assign("ann")
    await host.fetch()
    found = (Drift(DriftKind.PRIVILEGE, "eve", "member of sudo"),)
    await host.report(drift=found, actions=(Done("create", "ann"), Done("delete", "bob", error="busy")))
    assert "1 lasting change" in text_of(await admin.get("/agents"))
    page = text_of(await admin.get(f"/agents/{host.id}"))
    assert "privilege eve member of sudo no" in page
    assert "create ann" in page and "delete bob: busy" in page
    assert "Accounts in it ann" in page
    assert "web privilege eve" in text_of(await admin.get("/agents/drift"))
    assert (await admin.get("/agents/999")).status_code == 404


async def test_an_order_is_given(site: Site, admin: Visitor) -> None:
    """The page says the outcome of an order if the agent answers in time, and lists the order in any case."""
    host = await Host.register(site.areas, "web")
    await host.fetch()
    assert (await admin.send(f"/agents/{host.id}/order", {"kind": "explode"})).status_code == 400
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_answer, host)
        answer = await admin.send(f"/agents/{host.id}/order", {"kind": TriggerKind.DISCOVER.value})
    page = text_of(await admin.get(answer.headers["location"]))
    assert "The order is done." in page
    assert "List the accounts of the machine" in page


async def _answer(host: Host) -> None:
    """Wait for an order as an agent does, and report that it is done."""
    state = None
    while state is None or not state.triggers:
        state = await host.poll(wait_s=5)
    await host.report(outcomes=tuple(Outcome(each.id) for each in state.triggers))


async def test_discovered_accounts_are_managed(site: Site, admin: Visitor) -> None:
    """The accounts of a machine are listed, and the agent can manage the chosen ones."""
    host = await Host.register(site.areas, "web")
    await host.fetch()
    assert "No account yet" in text_of(await admin.get(f"/agents/{host.id}/accounts"))
    await host.report(discovery=discovery(account("eve", 1001), account("bob")))
    assert "eve" in text_of(await admin.get(f"/agents/{host.id}/accounts"))
    await admin.send(f"/agents/{host.id}/take-over", {"account": "eve"})
    assert "eve Local" in text_of(await admin.get("/endpoint-users"))


async def test_the_settings_of_agents(site: Site, admin: Visitor) -> None:
    """The settings apply to a domain, or to one instance. A value out of range is named."""
    host = await Host.register(site.areas, "web")
    fields = {"removal": "lock", "putBackPrivileges": "yes", "rotateDays": "30", "privilegeSeconds": "60",
              "discoverSeconds": "3600"}  # fmt: skip
    await admin.send("/agents/settings", fields)
    assert 'name="rotateDays" type="number" value="30"' in (await admin.get("/agents/settings")).text
    await admin.send(f"/agents/settings?instance={host.id}", {**fields, "rotateDays": "7"})
    assert 'value="7"' in (await admin.get(f"/agents/settings?instance={host.id}")).text
    assert 'value="30"' in (await admin.get("/agents/settings")).text
    assert "from 0 to 3650" in text_of(await admin.send("/agents/settings", {**fields, "rotateDays": "9999"}))
