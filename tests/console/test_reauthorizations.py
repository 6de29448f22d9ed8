"""The pages of re-authorizations."""

import re

from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.reauthorization.reauthorization import Reauthorization, SessionChange, SessionEffect
from sallyport.areas.reauthorization.repo import keep
from tests.areas.dynamic.world import device, session
from tests.console.visitor import Site, Visitor, text_of


async def test_a_run_is_started_and_stopped(site: Site, admin: Visitor) -> None:
    """The page names the sessions that differ, starts a run, and shows its sessions with the answers of the devices."""
    assert "No re-authorization yet" in text_of(await admin.get("/reauthorizations"))
    page = text_of(await admin.get("/reauthorizations/start"))
    assert "Of 0 live sessions, 0 would end" in page
    assert "No live session differs" in page
    answer = await admin.send("/reauthorizations/start", {"disconnect": "yes"})
    found = re.fullmatch(r"(/reauthorizations/(\d+))\?domain=1", answer.headers["location"])
    assert found is not None
    run_id, domain = int(found[2]), site.areas.domain
    station, effect = "02:00:00:00:00:01", SessionEffect.DISCONNECT
    change = SessionChange(7, "ann", "ap-1", station, effect, "blocked by rule", "A = 1\nB = 2", "")
    run = Reauthorization(run_id, domain, "running", 1, "admin", 0, None, 0, 7, 1, 0)
    await site.areas.store.write(lambda tx: keep(tx, run, [change]))
    page_of_run = await admin.get(found[1])
    assert "<li>A = 1</li><li>B = 2</li>" in page_of_run.text
    shown = text_of(page_of_run)
    assert "running; 1 request not sent yet" in shown
    assert "the session ends blocked by rule" in shown
    assert text_of(await admin.get("/reauthorizations")).count("running") == 1
    assert (await admin.send(f"{found[1]}/stop")).status_code == 303
    assert "stopped" in text_of(await admin.get(found[1]))
    assert (await admin.get("/reauthorizations/99")).status_code == 404


async def test_sessions_that_differ_are_listed(site: Site, admin: Visitor) -> None:
    """A session whose login is not recorded is undecided, and the page offers no start."""
    rule = RuleFields.model_validate({"name": "r", "action": "block", "users": ["ann"]})
    await site.areas.rules.add(site.areas.domain, rule)
    await live_session(site)
    page = await admin.get("/reauthorizations/start")
    assert "undecided, nothing is sent the login is not recorded" in text_of(page)
    assert "Apply to" not in page.text


async def live_session(site: Site) -> None:
    """Add a live session of ann at the device ap-1."""
    client = await site.areas.client("192.0.2.1/32", name="nas")
    place = await device(site.areas, client, "192.0.2.1", NAS_IDENTIFIER=b"ap-1")
    await session(site.areas, place, "1", USER_NAME="ann")
