"""Texts that come from packets and directories, on the pages of the console."""

import base64

import pytest

from sallyport.store.model import Tx
from tests.areas.directory.world import imported, person
from tests.areas.dynamic.world import device, session
from tests.areas.preview.conftest import Book
from tests.console.visitor import Site, Visitor

EVIL = "<img src=x onerror=alert(1)>\"'&"
"""A text that would become an element, or end an attribute."""
HARMLESS = ("/lockouts", "/domains", "/domains/1", "/domains/1/settings")
"""Pages on which no such name appears in this test."""
PAGES = (
    "/people", "/people?kind=directory", "/people/person?user={user}", "/people/person/enrol?user={user}",
    "/people/person/unlock?user={user}", "/people/person/disconnect?user={user}", "/lockouts",
    "/domains", "/domains/1", "/domains/1/preview", "/domains/1/mode?to=enforce", "/domains/1/settings",
    "/devices", "/devices/1", "/devices/1/delete", "/stations", "/sessions", "/sessions/1", "/sessions/1/disconnect",
    "/clients", "/clients/1", "/clients/1/settings", "/clients/1/trust", "/clients/1/delete", "/clients/1/tags",
    "/devices/1/tags", "/ssids", "/not-enrolled/mail?group={user}", "/people/person/enrolment-link?user={user}",
)  # fmt: skip


@pytest.fixture
async def hostile(site: Site) -> Site:
    """Return the console of a tenant in which each name that a stranger can choose is EVIL."""
    areas, book = site.areas, Book(site.areas)
    client = await areas.client(name=EVIL, product=EVIL)
    at = await device(areas, client, "192.0.2.1", NAS_IDENTIFIER=EVIL.encode())
    await session(areas, at, EVIL, USER_NAME=EVIL, CALLING_STATION_ID=EVIL, CALLED_STATION_ID=EVIL)
    await book.events([EVIL], device_name=EVIL, station=EVIL, device_id=at[1])
    await areas.add_user(areas.domain, "x", b"hello")

    def write(tx: Tx) -> None:
        tx.execute(
            "insert into stations (domain_id, device_id, station, user_name, first_seen, last_seen, request_count) "
            "values (:d, :device, :name, :name, 0, 0, 1)",
            d=at[0],
            device=at[1],
            name=EVIL,
        )
        tx.execute("update endpoint_users set name = :name", name=EVIL)
        tx.execute("update stations set ssid = :name, port = :name", name=EVIL)
        use = (at[1], at[0], EVIL, EVIL, "udp", 1, 0, 0)
        columns = ("device_id", "domain_id", "ssid", "method", "transport", "logins", "first_seen", "last_seen")
        tx.insert("device_usage", columns, [use])

    await areas.store.write(write)
    await areas.clients.update(areas.tenant, client.id, {"note": EVIL}, tags=[f"site={EVIL}"])
    await areas.devices.update(at[0], device_ids=[at[1]], addresses=None, tags=[f"role={EVIL}"], note=EVIL)
    encoded = base64.b64encode(EVIL.encode()).decode()
    await imported(areas, person("bob", f"displayName:: {encoded}"))
    return site


@pytest.mark.parametrize("path", PAGES)
async def test_a_foreign_text_is_only_ever_text(hostile: Site, admin: Visitor, path: str) -> None:
    """Whatever a packet or a directory calls a thing, the page has no element of that name."""
    page = await admin.http.get(path.replace("{user}", "%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%22%27%26"))
    assert page.status_code == 200
    assert "<img" not in page.text
    assert ("&lt;img" in page.text) is (path not in HARMLESS)
    assert "\"'&" not in page.text


async def test_a_list_to_compare_is_only_ever_text(hostile: Site, admin: Visitor) -> None:
    """So are the devices that the list does not have."""
    page = await admin.send("/devices/compare", {"file": f"name\n{EVIL}x\n", "days": "30"})
    assert page.status_code == 200
    assert "<img" not in page.text
    assert page.text.count("&lt;img") >= 2
