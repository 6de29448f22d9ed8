"""The network in the console: devices, stations, sessions and RADIUS clients."""

import re
from dataclasses import asdict

from sallyport.areas.clients.client import SIGNED, Signatures
from sallyport.areas.devices.device import Posture
from sallyport.base.clock import SECOND
from sallyport.base.secret import Secret
from sallyport.radius.dynamic import RequestKind
from sallyport.web.scope import Role
from tests.areas.dynamic.nas import ack, nak, running_nas
from tests.areas.dynamic.world import STOP, device, session
from tests.console.visitor import Site, Visitor, text_of


async def test_sessions_are_filtered_in_the_address(site: Site, admin: Visitor) -> None:
    """Filters and columns are in the address, and the export has the same rows."""
    at = await device(site.areas, await site.areas.client(), "192.0.2.1", NAS_IDENTIFIER=b"ap-1")
    await session(site.areas, at, "s1", USER_NAME="alice")
    await session(site.areas, at, "s2", USER_NAME="bob")
    await session(site.areas, at, "s2", STOP, after_s=60, USER_NAME="bob", ACCT_SESSION_TIME=60)
    page = text_of(await admin.get("/sessions?live=true"))
    assert "alice" in page
    assert "bob" not in page
    assert "1 min" in text_of(await admin.get("/sessions?live=false"))
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


async def test_a_session_is_changed(site: Site, admin: Visitor) -> None:
    """The form sends the attributes to the device, and shows its answer in words. A wrong line is named."""
    async with running_nas(ack) as nas:
        client = await site.areas.client(f"{nas.address}/32", coa_port=nas.port)
        at = await device(site.areas, client, nas.address, NAS_IDENTIFIER=b"ap-1")
        number = await session(site.areas, at, "s1", USER_NAME="alice")
        form = f"/sessions/{number}/change"
        assert form in (await admin.get(f"/sessions/{number}")).text
        wrong = await admin.send(form, {"replies": "Filter-Id guests"})
        assert wrong.status_code == 400 and "write NAME=VALUE" in text_of(wrong)
        assert nas.requests == []
        answer = text_of(await admin.send(form, {"replies": "Filter-Id=guests\nSession-Timeout = 600"}))
        assert "1 of 1 session done" in answer and "the device has changed it" in answer
        assert [each[0] for each in nas.requests] == [RequestKind.CHANGE]
        assert b"guests" in nas.requests[0]


async def test_a_past_session_cannot_be_changed(site: Site, admin: Visitor) -> None:
    """The page says so instead of showing the form."""
    at = await device(site.areas, await site.areas.client(), "192.0.2.1", NAS_IDENTIFIER=b"ap-1")
    number = await session(site.areas, at, "s1", USER_NAME="alice")
    await session(site.areas, at, "s1", STOP, after_s=60, USER_NAME="alice", ACCT_SESSION_TIME=60)
    assert "cannot be changed" in text_of(await admin.get(f"/sessions/{number}/change"))


async def with_device(site: Site) -> int:
    """Add a device with a station and a session, and return its ID."""
    at = await device(site.areas, await site.areas.client(), "192.0.2.1", NAS_IDENTIFIER=b"ap-1")
    await session(site.areas, at, "s1", USER_NAME="alice", CALLING_STATION_ID="02-00-00-00-00-01")
    return at[1]


async def test_several_devices_are_deleted_at_once(site: Site, admin: Visitor) -> None:
    """The page lists every device with what is deleted. If one of them is gone, none is deleted."""
    client = await site.areas.client()
    numbers = [
        (await device(site.areas, client, f"192.0.2.{each}", NAS_IDENTIFIER=b"ap-%d" % each))[1] for each in (1, 2, 3)
    ]
    for each in numbers:
        assert f'form="choice" name="device" value="{each}"' in (await admin.get("/devices")).text
    page = f"/devices/delete?device={numbers[0]}&device={numbers[1]}"
    shown = text_of(await admin.get(page))
    assert "Delete 2 devices" in shown
    assert "These stay: their logins in the log, their history, and the RADIUS clients." in shown
    assert "the device ap-1" in shown and "the device ap-2" in shown and "ap-3" not in shown
    gone = await admin.send("/devices/delete?device=999&" + page.partition("?")[2], page=page)
    assert gone.status_code == 404
    await admin.send(page)
    left = text_of(await admin.get("/devices"))
    assert "2 devices deleted" in left
    assert "ap-3" in left and "ap-1" not in left and "ap-2" not in left


async def test_devices_are_deleted_only_by_an_operator_of_their_tenant(site: Site, admin: Visitor) -> None:
    """The button is one of danger. Without a choice, the page says what to do. An auditor has no checkboxes. Another
    tenant has no such devices."""
    number = await with_device(site)
    assert '<button class="danger" data-needs-choice>Delete the chosen devices' in (await admin.get("/devices")).text
    assert "choose devices in the list first" in text_of(await admin.get("/devices/delete"))
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        assert 'name="device"' not in (await auditor.get("/devices")).text
        assert (await auditor.get(f"/devices/delete?device={number}")).status_code == 403
    await site.areas.domains.add(await site.areas.tenancy.ensure_tenant(2, 1), "other")
    async with site.visitor() as stranger:
        await stranger.sign_in(await site.token(org=2))
        assert (await stranger.get(f"/devices/delete?device={number}")).status_code == 404
        assert (await stranger.get(f"/devices/delete?device={number}&domain=1")).status_code == 404


async def test_devices_are_found_by_filters_in_the_address(site: Site, admin: Visitor) -> None:
    """The filters, the columns and the export are in the address."""
    number = await with_device(site)
    assert f'href="/devices/{number}?domain={site.areas.domain}"' in (await admin.get("/devices?search=AP-")).text
    by_name = "/devices?by=DEVICE_NAME&is=ap-1"
    assert "ap-1" in text_of(await admin.get(by_name))
    assert "Nothing matches these filters" in text_of(await admin.get("/devices?by=DEVICE_NAME&is=ap-2"))
    for half in ("by=DEVICE_NAME", "by=DEVICE_NAME&is=", "by=&is=ap-2"):  # a person chooses one after the other
        assert "ap-1" in text_of(await admin.get(f"/devices?{half}"))
    lines = (await admin.get(f"{by_name}&column=device_name&column=ip_address&format=csv")).text.split("\r\n")
    assert lines[:2] == ["Device,Source address", "ap-1,192.0.2.1"]
    refused = await admin.get("/devices?by=NOTHING&is=x")
    assert refused.status_code == 400
    assert "invalid filterBy" in text_of(refused)


async def test_the_page_of_a_device_has_its_posture_and_sessions(site: Site, admin: Visitor) -> None:
    """The page joins what the inventory, the sessions and the history know of a device."""
    number = await with_device(site)
    page = text_of(await admin.get(f"/devices/{number}"))
    assert "NAS-Identifier ap-1" in page
    assert "Signed logins no login yet" in page
    assert "Shows challenges unknown Challenges 0, 0 answered" in page
    assert "alice live" in page
    assert "registered" in page
    assert (await admin.get("/devices/999")).status_code == 404
    assert (await admin.get("/devices/x")).status_code == 404


async def test_tags_and_notes_are_changed(site: Site, admin: Visitor) -> None:
    """A line that is removed removes its tag. The device's own value of a key replaces the one of its client. A wrong
    line is named; an operator changes the note only."""
    number = await with_device(site)
    (client,) = site.areas.clients.of_tenant(site.areas.tenant)
    wrong = await admin.send(f"/clients/{client.id}/tags", {"tags": "Berlin", "note": ""})
    assert wrong.status_code == 400 and "must be KEY=VALUE" in text_of(wrong)
    await admin.send(f"/clients/{client.id}/tags", {"tags": "site=Berlin\nowner=net\n", "note": "at the gate"})
    await admin.send(f"/clients/{client.id}/tags", {"tags": "site=Berlin/Floor 2", "note": "at the gate"})
    page = text_of(await admin.get(f"/clients/{client.id}"))
    assert "site Berlin/Floor 2 Note at the gate" in page and "owner" not in page
    await admin.send(f"/devices/{number}/tags", {"tags": "role=core", "note": "spare"})
    page = text_of(await admin.get(f"/devices/{number}"))
    assert "role core" in page and "Note spare" in page
    assert "ap-1" in text_of(await admin.get("/devices?tag=role=core"))
    assert "Nothing matches these filters" in text_of(await admin.get("/devices?tag=role=edge"))
    assert (await admin.get("/devices?tag=role")).status_code == 400
    async with site.visitor() as operator:
        await operator.sign_in(await site.token(Role.OPERATOR))
        form = f"/devices/{number}/tags"
        assert "<textarea" not in (await operator.get(form)).text
        assert (await operator.send(form, {"tags": "role=edge", "note": ""})).status_code == 403
        await operator.send(form, {"note": "in use"})
    page = text_of(await admin.get(f"/devices/{number}"))
    assert "role core" in page and "Note in use" in page


async def test_the_inventory_is_compared_with_a_list(site: Site, admin: Visitor) -> None:
    """The page has both differences, and the list again. A wrong list is named."""
    await with_device(site)
    assert "Compare with a list" in text_of(await admin.get("/devices"))
    page = text_of(await admin.send("/devices/compare", {"file": "name,ip\nspare,198.51.100.7\n", "days": "30"}))
    assert "In the list, and silent here: 1 of 1" in page and "198.51.100.7" in page
    assert "Seen here, and not in the list: 1" in page and "ap-1" in page
    wrong = await admin.send("/devices/compare", {"file": "colour\nred", "days": "30"})
    assert wrong.status_code == 400 and "must have a line with titles" in text_of(wrong)


async def test_a_deletion_lists_what_it_deletes_and_what_stays(site: Site, admin: Visitor) -> None:
    """The page before it deletes nothing. Afterwards the device is gone."""
    number = await with_device(site)
    shown = text_of(await admin.get(f"/devices/{number}/delete"))
    assert "the device ap-1" in shown
    assert "0 stations behind it" in shown
    assert "1 live session" in shown
    assert (await admin.get(f"/devices/{number}")).status_code == 200
    answer = await admin.send(f"/devices/{number}/delete")
    assert "1 device deleted" in text_of(await admin.get(answer.headers["location"]))
    assert (await admin.get(f"/devices/{number}")).status_code == 404


async def test_what_a_device_has_taught_is_forgotten(site: Site, admin: Visitor) -> None:
    """The page before it lists the learned values with evidence and age, and forgets nothing."""
    number = await with_device(site)
    taught = Posture(
        signed=3,
        challenges=4,
        challenge_answers=1,
        unanswered=3,
        challenged_at=SECOND,
        measured_at=SECOND,
        retransmit_ms=5000,
    )
    values = {"device_id": number, **asdict(taught)}
    await site.areas.store.write(lambda tx: tx.insert("device_posture", tuple(values), [tuple(values.values())]))
    assert f"/devices/{number}/reset" in (await admin.get(f"/devices/{number}")).text
    learned = "Challenges 4, 1 answered, the last 3 unanswered Last challenge or reset 1970-01-01 00:00:01 UTC"
    shown = text_of(await admin.get(f"/devices/{number}/reset"))
    age = "Last change of timeouts 1970-01-01 00:00:01 UTC"
    assert learned in shown and age in shown and "Retransmits after 5.0 s" in shown and "Signed logins 100 %" in shown
    assert learned in text_of(await admin.get(f"/devices/{number}"))
    answer = await admin.send(f"/devices/{number}/reset")
    fresh = text_of(await admin.get(answer.headers["location"]))
    assert "What was learned is forgotten" in fresh and "Challenges 0, 0 answered" in fresh
    assert "Retransmits after not measured" in fresh and "Signed logins no login yet" in fresh
    assert await site.audited("device.reset")


async def test_an_empty_inventory_says_what_to_do(admin: Visitor) -> None:
    """Lists without rows name the next step."""
    assert "Add a RADIUS client" in text_of(await admin.get("/devices"))
    assert "A station appears with the first login" in text_of(await admin.get("/stations"))
    assert "Switch on accounting" in text_of(await admin.get("/sessions"))
    assert "only known addresses are answered" in text_of(await admin.get("/clients"))


async def test_a_client_is_added_and_its_secret_is_shown_once(site: Site, admin: Visitor) -> None:
    """The answer of the form has the secret, and no other page."""
    fields = {"name": "vpn", "address": "192.0.2.9", "port": "3799", "domain": str(site.areas.domain)}
    made = await admin.send("/clients/add", fields)
    (secret,) = re.findall(r'<code class="secret">(\w{32})</code>', made.text)
    (where,) = re.findall(r'href="(/clients/\d+)"', made.text)
    added = site.areas.client_named("vpn")
    assert added.secret.octets.decode() == secret
    assert added.domain_ids == (site.areas.domain,)
    for path in ("/clients", where, f"{where}/settings", f"{where}/trust", f"{where}/secret"):
        assert secret not in (await admin.get(path)).text
    again = await admin.send("/clients/add", fields)
    assert again.status_code == 409
    assert 'value="192.0.2.9"' in again.text


async def test_a_new_secret_replaces_the_former_one(site: Site, admin: Visitor) -> None:
    """A secret of one's own is accepted, with a warning if it is weak; without one, a strong secret is made."""
    client = await site.areas.client()
    weak = text_of(await admin.send(f"/clients/{client.id}/secret", {"secret": "short"}))
    assert "is shorter than 16 octets" in weak
    assert "is shorter than 16 octets" in text_of(await admin.get(f"/clients/{client.id}"))
    made = await admin.send(f"/clients/{client.id}/secret", {"secret": ""})
    (secret,) = re.findall(r'<code class="secret">(\w{32})</code>', made.text)
    assert site.areas.clients.table.present(client.id).secret.octets.decode() == secret


async def test_the_settings_of_a_client_are_changed(site: Site, admin: Visitor) -> None:
    """Name and address are one form, domains and signatures another."""
    client = await site.areas.client()
    changed = {"name": "switch", "address": "192.0.2.0/24", "product": "Cisco ASA", "port": "0"}
    await admin.send(f"/clients/{client.id}/settings", changed)
    trust = {"domain": "all", "signatures": "yes", "proxies": "no", "vouches": "yes"}
    await admin.send(f"/clients/{client.id}/trust", trust)
    now = site.areas.clients.table.present(client.id)
    assert (now.name, now.address, now.product, now.coa_port) == ("switch", "192.0.2.0/24", "Cisco ASA", 0)
    assert (now.all_domains, now.require_message_authenticator, now.password_verified) == (True, Signatures.YES, True)
    refused = await admin.send(f"/clients/{client.id}/settings", {**changed, "address": "nonsense"})
    assert refused.status_code == 400
    assert 'id="address-wrong"' in refused.text


async def test_the_forms_of_mac_authentication_of_a_client(site: Site, admin: Visitor) -> None:
    """The form sets and removes forms. An empty password keeps the present one, and no page shows it."""
    client = await site.areas.client("192.0.2.7/32")
    page = f"/clients/{client.id}"
    forms = {"domain": "all", "mac_forms": ["no-station", "password"]}
    refused = await admin.send(f"{page}/trust", forms)
    assert refused.status_code == 400 and "is required for the form `password`" in text_of(refused)
    assert refused.text.count(" checked>") == 2
    await admin.send(f"{page}/trust", {**forms, "mac_password": "blue-heron"})
    await admin.send(f"{page}/trust", {**forms, "mac_password": ""})
    now = site.areas.clients.table.present(client.id)
    assert now.mac_forms == {"no-station", "password"}
    assert now.mac_password == Secret(b"blue-heron")
    shown = await admin.get(page)
    assert "MAC authentication no-station: no Calling-Station-Id; password: one for all stations" in text_of(shown)
    for text in (shown.text, (await admin.get(f"{page}/trust")).text, (await admin.get("/audit")).text):
        assert "blue-heron" not in text
    await admin.send(f"{page}/trust", {"domain": "all", "mac_forms": "no-station"})
    now = site.areas.clients.table.present(client.id)
    assert now.mac_forms == {"no-station"} and now.mac_password is None
    await admin.send(f"{page}/trust", {"domain": "all"})
    assert "MAC authentication the usual form" in text_of(await admin.get(page))


async def test_a_client_is_unlatched(site: Site, admin: Visitor) -> None:
    """The page says what a client has learned, and forgets it on demand."""
    client = await site.areas.client()
    page = f"/clients/{client.id}"
    assert "The first signed request makes signatures required" in text_of(await admin.get(page))
    site.areas.clients.latches.latch(client, SIGNED)
    await site.areas.clients.latches.store()
    latched = await admin.get(page)
    assert "The client has signed a request" in text_of(latched)
    assert f"{page}/unlatch" in latched.text
    await admin.send(f"{page}/unlatch")
    assert "Signatures: not required" in text_of(await admin.get(page))


async def test_a_client_is_deleted(site: Site, admin: Visitor) -> None:
    """The page before it lists the losses, and the rows that stay."""
    client = await site.areas.client(name="vpn")
    assert "stay in the inventory" in text_of(await admin.get(f"/clients/{client.id}/delete"))
    await admin.send(f"/clients/{client.id}/delete")
    assert (await admin.get(f"/clients/{client.id}")).status_code == 404


async def test_an_operator_does_not_change_trust(site: Site) -> None:
    """An operator changes names and addresses, but not secrets, domains and signatures."""
    client = await site.areas.client()
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(Role.OPERATOR))
        page = await visitor.get(f"/clients/{client.id}")
        assert "/settings" in page.text
        assert "/trust" not in page.text
        for path in ("/trust", "/secret", "/unlatch"):
            assert (await visitor.get(f"/clients/{client.id}{path}")).status_code == 403, path
