"""The network in the console: devices, stations, sessions and RADIUS clients."""

from tests.console.visitor import Site, Visitor, text_of
from tests.dynamic.nas import nak, running_nas
from tests.dynamic.world import STOP, device, session


async def test_sessions_are_filtered_in_the_address(site: Site, admin: Visitor) -> None:
    """Filters and columns are in the address, and the export has the same rows."""
    at = await device(site.areas, await site.areas.client(), "192.0.2.1", NAS_IDENTIFIER=b"ap-1")
    await session(site.areas, at, "s1", USER_NAME="alice")
    await session(site.areas, at, "s2", USER_NAME="bob")
    await session(site.areas, at, "s2", STOP, after_s=60, USER_NAME="bob", ACCT_SESSION_TIME=60)
    page = text_of(await admin.get("/sessions?live=true"))
    assert "alice" in page
    assert "bob" not in page
    lines = (await admin.get("/sessions?live=false&column=userName&column=state&format=csv")).text.split()
    assert lines == ["User,State", "bob,stopped"]


async def test_a_session_is_ended(site: Site, admin: Visitor) -> None:
    """The form shows the session, and the answer of the device in words."""
    async with running_nas(nak(503)) as nas:
        client = await site.areas.client(f"{nas.address}/32", coa_port=nas.port)
        at = await device(site.areas, client, nas.address, NAS_IDENTIFIER=b"ap-1")
        number = await session(site.areas, at, "s1", USER_NAME="alice")
        page = await admin.get(f"/sessions/{number}")
        assert "Session of alice" in text_of(page)
        form = f"/sessions/{number}/disconnect"
        assert form in page.text
        assert nas.requests == []
        answer = text_of(await admin.send(form))
    assert "the device refuses (Session-Context-Not-Found)" in answer
    assert (await admin.get("/sessions/999")).status_code == 404
