"""/network_device/GetDevice, DeleteDevice, ListStations and DeviceHistory."""

import re
from ipaddress import ip_address
from typing import Any

import httpx
import pytest

from sallyport.radius.attributes import push_vendor_attribute
from tests.api.world import PASSWORD, Tenant, World

COMPARE = "/network_device/CompareDevices"
DELETE = "/network_device/DeleteDevice"
GET = "/network_device/GetDevice"
LIST = "/network_device/ListDevices"
RESET = "/network_device/ResetDevice"
STATIONS = "/network_device/ListStations"
SSIDS = "/network_device/ListSsids"
HISTORY = "/network_device/DeviceHistory"
UPDATE = "/network_device/UpdateDevice"
NOT_FOUND = (404, "device not found")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
NOTHING = "deviceId is required, or ip_address together with client_ip"
UNUSED = {"methods": [], "transports": []}
DELETED = {"code": 200, "status": "Success"}


def ids(tenant: Tenant) -> dict[str, int]:
    """Return the ids of the devices by device name."""
    return {device["device_name"]: device["device_id"] for device in tenant.devices()}


def many(tenant: Tenant, *names: str) -> dict[str, int]:
    """Register devices behind one RADIUS client and return their ids by name."""
    with tenant.nas() as nas:
        for name in names:
            nas.login("ann", PASSWORD, NAS_IDENTIFIER=name.encode())
    return ids(tenant)


# --- DeleteDevice -------------------------------------------------------------------------------------------------


def test_a_deleted_device_registers_again(tenant: Tenant) -> None:
    """A deleted device is not listed.

    Its next request registers it again with a new id, one more registration and a request count of 1.
    """
    with tenant.nas() as nas:
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"switch")
        (before,) = tenant.devices()
        answer = tenant.ask(DELETE, domainId=tenant.domain, deviceId=before["device_id"])
        assert answer == {**DELETED, "message": "1 device deleted"}
        assert tenant.devices() == tenant.devices(search="switch") == []
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"switch")
    (after,) = tenant.devices(search="switch")
    assert after["device_id"] > before["device_id"]
    assert (after["registrations"], after["request_count"]) == (2, 1)
    assert after["first_seen"] > before["first_seen"]


@pytest.mark.parametrize("name", ["deviceId", "device_id"])
@pytest.mark.parametrize("shape", ["one", "text", "array", "texts"])
def test_devices_are_named_one_or_many(tenant: Tenant, name: str, shape: str) -> None:
    """A deletion takes one id or an array of ids, as numbers or strings, under either field name."""
    known = many(tenant, "a", "b", "c")
    named: Any = {"one": known["a"], "text": str(known["a"]), "array": [known["a"], known["b"]]}.get(
        shape, [str(known["a"]), str(known["b"])]
    )
    tenant.ask(DELETE, domainId=tenant.domain, **{name: named})
    assert tenant.names() == (["b", "c"] if shape in {"one", "text"} else ["c"])


@pytest.mark.parametrize("form", ["2001:DB8::7", "2001:0db8:0:0:0:0:0:7"])
def test_a_device_is_deleted_by_any_form_of_its_address(tenant: Tenant, form: str) -> None:
    """client_ip may be given in any form of an IPv6 address."""
    address = tenant.device("a", NAS_IPV6_ADDRESS=ip_address("2001:db8::7").packed)
    tenant.ask(DELETE, domainId=tenant.domain, ip_address=f"::ffff:{address}", client_ip=form)
    assert tenant.names() == []


def test_devices_are_named_by_addresses(tenant: Tenant) -> None:
    """ip_address together with client_ip deletes all matching devices and no other device."""
    address = tenant.device("a")
    tenant.device("b")
    with tenant.world.service.radius("a secret of the tests", source=address) as nas:
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"c")
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"d", NAS_IP_ADDRESS=bytes((10, 0, 0, 1)))
    answer = tenant.ask(DELETE, domainId=tenant.domain, ip_address=address, client_ip=address)
    assert answer["message"] == "2 devices deleted"
    assert tenant.names() == ["b", "d"]
    again = tenant.refused(DELETE, domainId=tenant.domain, ip_address=address, client_ip=address)
    assert again == NOT_FOUND


def test_unknown_devices_are_not_deleted(world: World, tenant: Tenant) -> None:
    """If one of the ids is unknown, or belongs to another tenant or domain, the deletion is answered with 404 and
    deletes no device.
    """
    known = many(tenant, "a")
    theirs = many(world.tenant(), "b")
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    for named in (theirs["b"], 10**9, 0, -1, [known["a"], theirs["b"]], [known["a"], 10**9]):
        assert tenant.refused(DELETE, domainId=tenant.domain, deviceId=named) == NOT_FOUND
    assert tenant.refused(DELETE, domainId=branch, deviceId=known["a"]) == NOT_FOUND
    assert tenant.names() == ["a"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, NOTHING),
        ({"deviceId": []}, NOTHING),
        ({"ip_address": "192.0.2.1"}, NOTHING),
        ({"client_ip": "192.0.2.1"}, NOTHING),
        ({"deviceId": "hunter2"}, "invalid deviceId"),
        ({"deviceId": True}, "invalid deviceId"),
        ({"deviceId": [1, "hunter2"]}, "invalid deviceId"),
        ({"deviceId": None}, NOTHING),
        ({"deviceId": 2**63}, "invalid deviceId"),
        ({"deviceId": 1, "ip_address": ["192.0.2.1"]}, "invalid ip_address"),
    ],
)
def test_a_body_without_a_device(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """A body that has neither an id nor a pair of addresses is answered with 400, and so is a malformed body."""
    assert tenant.refused(DELETE, domainId=tenant.domain, **fields) == (400, text)


# --- ResetDevice --------------------------------------------------------------------------------------------------


def test_a_reset_device_keeps_its_id(world: World, tenant: Tenant) -> None:
    """A reset forgets the signatures of a device, and the device stays in the inventory. A device of another domain is
    not found."""
    with tenant.nas() as nas:
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"switch")
    (before,) = tenant.devices()
    assert before["signed_share"] == 1
    answer = tenant.ask(RESET, domainId=tenant.domain, deviceId=before["device_id"])
    assert answer == {**DELETED, "message": "1 device reset"}
    (after,) = tenant.devices()
    assert after == {**before, "signed_share": None, "safe_to_require": False, **UNUSED}
    stranger = world.tenant()
    assert stranger.refused(RESET, domainId=stranger.domain, deviceId=before["device_id"]) == NOT_FOUND


# --- GetDevice ----------------------------------------------------------------------------------------------------


def test_one_device(world: World, tenant: Tenant) -> None:
    """GetDevice returns the fields of the list, the number of stations, and the evidence for the product with attribute
    names. A device of another domain is not found.
    """
    with tenant.nas() as nas:
        fortinet = push_vendor_attribute(12356, 3, b"root")
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"fw", CALLING_STATION_ID=b"02-01", extra=fortinet)
    (listed,) = tenant.devices()
    found = tenant.ask(GET, domainId=tenant.domain, deviceId=listed["device_id"])
    evidence, behind = found.pop("evidence"), found.pop("station_count")
    learned = ("timeouts_learned", "challenges", "challenge_answers", "challenges_unanswered", "last_challenge")
    assert [found.pop(name) for name in learned] == ["", 0, 0, 0, ""]
    assert found.pop("own_tags") == {}
    (use,) = found.pop("uses")
    assert (use["method"], use["transport"], use["logins"], found.pop("ports")) == ("pap", "udp", 1, [])
    assert (found, behind) == (listed, 1)
    assert "12356/3 (Fortinet-Vdom-Name)" in evidence["nas"]["evidence"][0]
    assert tenant.refused(GET, domainId=tenant.domain, deviceId=10**9) == NOT_FOUND
    stranger = world.tenant()
    assert stranger.refused(GET, domainId=stranger.domain, deviceId=listed["device_id"]) == NOT_FOUND


# --- ListStations -------------------------------------------------------------------------------------------------


def test_the_stations_behind_a_device(tenant: Tenant) -> None:
    """Each station has its Calling-Station-Id, last user, times and count.

    The list shows the stations of one device or of all devices. A case-insensitive search matches a part of the station
    or the user.
    """
    tenant.user("Zoë")
    with tenant.nas() as nas:
        for name, station, user in (
            (b"a", b"02-00-00-00-00-01", "ann"), (b"a", b"02-00-00-00-00-01", "Zoë"),
            (b"a", b"02-00-00-00-00-02", "ann"), (b"b", b"02-00-00-00-00-01", "ann@corp"),
        ):  # fmt: skip
            assert nas.login(user, PASSWORD, NAS_IDENTIFIER=name, CALLING_STATION_ID=station) == 2
    known = ids(tenant)
    answer = tenant.ask(STATIONS, domainId=tenant.domain)
    assert answer["totalCount"] == 3
    first = answer["stations"][0]
    assert all(TIME.fullmatch(first.pop(name)) for name in ("first_seen", "last_seen"))
    device = {"device_id": known["a"], "device_name": "a", "device_type": "Unknown"}
    assert first == {
        "station": "02-00-00-00-00-01",
        **device,
        "user": "Zoë",
        "request_count": 2,
        "ssid": "",
        "port": "",
    }

    def found(**fields: Any) -> list[tuple[int, str]]:
        stations = tenant.ask(STATIONS, domainId=tenant.domain, **fields)["stations"]
        return [(each["device_id"], each["user"]) for each in stations]

    assert found(deviceId=known["a"]) == [(known["a"], "Zoë"), (known["a"], "ann")]
    assert found(deviceId=str(known["b"])) == [(known["b"], "ann")]
    assert found(search="ZOË") == found(search="Ë") == [(known["a"], "Zoë")]
    assert found(search="00-02") == [(known["a"], "ann")]
    assert found(pageSize=1, pageId=3) == [(known["b"], "ann")]
    assert found(deviceId=10**9) == found(search="%") == []


def test_stations_go_with_their_device(tenant: Tenant) -> None:
    """Stations are removed with their device. They are registered again when the device is."""
    with tenant.nas() as nas:
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"a", CALLING_STATION_ID=b"02-01")
        tenant.ask(DELETE, domainId=tenant.domain, deviceId=ids(tenant)["a"])
        assert tenant.ask(STATIONS, domainId=tenant.domain) == {"stations": [], "totalCount": 0}
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"a", CALLING_STATION_ID=b"02-01")
    (station,) = tenant.ask(STATIONS, domainId=tenant.domain)["stations"]
    assert (station["device_id"], station["request_count"]) == (ids(tenant)["a"], 1)


def test_other_tenants_see_no_stations_and_no_history(world: World, tenant: Tenant) -> None:
    """Another tenant sees neither stations nor history, even if it sends the id of the device."""
    with tenant.nas() as nas:
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"a", CALLING_STATION_ID=b"02-01")
    other, device = world.tenant(), ids(tenant)["a"]
    for fields in ({}, {"deviceId": device}):
        assert other.ask(STATIONS, domainId=other.domain, **fields) == {"stations": [], "totalCount": 0}
        assert other.ask(HISTORY, domainId=other.domain, **fields) == {"history": [], "totalCount": 0}


# --- DeviceHistory ------------------------------------------------------------------------------------------------


def test_the_history_of_a_device(tenant: Tenant) -> None:
    """The history of one device or of all devices lists the registration, the deletion with the name of the token, and
    the next registration, newest first.
    """
    with tenant.nas() as nas:
        address = nas.sock.getsockname()[0]
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"a")
        first = ids(tenant)["a"]
        tenant.ask(DELETE, token=tenant.role("operator"), domainId=tenant.domain, deviceId=first)
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"a")
    second = ids(tenant)["a"]
    answer = tenant.ask(HISTORY, domainId=tenant.domain)
    times = [line.pop("time") for line in answer["history"]]
    line = {"ip_address": address, "client_ip": address, "nas_identifier": "a"}
    assert answer == {
        "history": [
            {**line, "device_id": second, "event": "registered", "actor": ""},
            {**line, "device_id": first, "event": "deleted", "actor": "operator"},
            {**line, "device_id": first, "event": "registered", "actor": ""},
        ],
        "totalCount": 3,
    }
    assert all(TIME.fullmatch(time) for time in times)
    assert times == sorted(times, reverse=True)
    assert tenant.ask(HISTORY, domainId=tenant.domain, deviceId=first)["totalCount"] == 2
    page = tenant.ask(HISTORY, domainId=tenant.domain, pageSize=2, pageId=2)
    assert ([each["event"] for each in page["history"]], page["totalCount"]) == (["registered"], 3)


@pytest.mark.parametrize("path", [STATIONS, HISTORY, "/network_device/ListClients", "/ad/GetAuthLog"])
def test_pages_of_the_other_lists(tenant: Tenant, path: str) -> None:
    """A page has 1 to 1000 entries, and the first page has number 1."""
    where = {} if path.endswith("ListClients") else {"domainId": tenant.domain}
    for page in ({"pageId": 0}, {"pageId": "x"}):
        assert tenant.refused(path, **where, **page) == (400, "invalid pageId")
    for page in ({"pageSize": 0}, {"pageSize": 1001}, {"pageSize": "x"}):
        assert tenant.refused(path, **where, **page) == (400, "invalid pageSize")
    assert tenant.ask(path, **where, pageSize=1000, pageId=10**12)["totalCount"] == 0


# --- CompareDevices -----------------------------------------------------------------------------------------------


def test_the_inventory_is_compared_with_a_list(world: World, tenant: Tenant) -> None:
    """The answer has both differences. Another tenant cannot compare the domain."""
    many(tenant, "core", "edge")
    answer = tenant.ask(COMPARE, domainId=tenant.domain, file="name,ip\nCore.example.org,\nspare,198.51.100.7\n")
    assert (answer["listCount"], answer["silentCount"], answer["unknownCount"]) == (2, 1, 1)
    assert answer["silent"] == [{"name": "spare", "addresses": ["198.51.100.7"], "last_seen": ""}]
    assert [each["device_name"] for each in answer["unknown"]] == ["edge"]
    assert tenant.refused(COMPARE, domainId=tenant.domain, file="x")[0] == 400
    assert tenant.refused(COMPARE, domainId=tenant.domain, file="x" * 900_001) == (400, "invalid file")
    assert world.tenant().refused(COMPARE, domainId=tenant.domain, file="name\nx\n")[0] == 403


# --- targets ------------------------------------------------------------------------------------------------------


def test_the_targets_of_prometheus(world: World, tenant: Tenant) -> None:
    """A target has the address of its device and its tags as labels. The token is a bearer, as Prometheus sends it."""
    known = many(tenant, "core", "edge")
    tenant.ask(UPDATE, domainId=tenant.domain, deviceId=known["core"], tags=["site=Berlin", "rack-no=7"])

    def answer(query: str = "", token: str = tenant.token, domain: int = tenant.domain) -> httpx.Response:
        path = f"/api/v1/network_device/targets/{domain}{query}"
        return world.http.get(path, headers={"authorization": f"Bearer {token}"})

    (target,) = answer("?tag=site=berlin").json()
    labels = target["labels"]
    assert target["targets"] == [labels["__meta_sallyport_source"]]
    assert (labels["tag_site"], labels["tag_rack_no"], labels["__meta_sallyport_device"]) == ("Berlin", "7", "core")
    assert all(isinstance(value, str) for value in labels.values())
    assert len(answer().json()) == 2
    assert answer("?tag=site").status_code == 400
    assert answer(token="wrong").status_code == 401
    stranger = world.tenant()
    assert answer(token=stranger.token).status_code == 403
    assert answer(domain=10**9).status_code == 403


# --- ListSsids ----------------------------------------------------------------------------------------------------


def test_ssids_that_logins_have_named(world: World, tenant: Tenant) -> None:
    """Each has its logins, devices and methods. The device and the station have it too; another tenant has nothing of
    it."""
    with tenant.nas() as nas:
        for name in (b"ap-1", b"ap-2"):
            nas.login(
                "ann",
                PASSWORD,
                NAS_IDENTIFIER=name,
                CALLED_STATION_ID=b"02-00-00-00-00-01:corp: 5 GHz",
                CALLING_STATION_ID=b"02-00-00-00-00-09",
                NAS_PORT_ID=b"wlan0",
            )
    (found,) = tenant.ask(SSIDS, domainId=tenant.domain)["ssids"]
    assert TIME.fullmatch(found.pop("first_seen")) and TIME.fullmatch(found.pop("last_seen"))
    assert found == {"ssid": "corp: 5 GHz", "logins": 2, "devices": 2, "methods": ["pap"]}
    assert {tuple(device["ssids"]) for device in tenant.devices()} == {("corp: 5 GHz",)}
    (station, _) = tenant.ask(STATIONS, domainId=tenant.domain)["stations"]
    assert (station["ssid"], station["port"]) == ("corp: 5 GHz", "wlan0")
    device = tenant.ask(GET, domainId=tenant.domain, deviceId=ids(tenant)["ap-1"])
    assert [(port["port"], port["stations"]) for port in device["ports"]] == [("wlan0", 1)]
    assert tenant.ask(SSIDS, domainId=tenant.domain, search="guests") == {"ssids": [], "totalCount": 0}
    stranger = world.tenant()
    assert stranger.ask(SSIDS, domainId=stranger.domain)["totalCount"] == 0
    assert stranger.refused(SSIDS, domainId=tenant.domain) == (403, "domain not in tenant")


# --- UpdateDevice -------------------------------------------------------------------------------------------------


def test_tags_and_a_note_of_a_device(tenant: Tenant) -> None:
    """They are in the list behind the other fields, and the list can be filtered by a tag."""
    device = many(tenant, "core")["core"]
    answer = tenant.ask(UPDATE, domainId=tenant.domain, deviceId=device, tags="Site=Berlin/Floor 2", note=" spare ")
    assert answer == {"code": 200, "status": "Success", "message": "1 device updated"}
    (row,) = tenant.ask(LIST, domainId=tenant.domain, tag="site=berlin")["network_devices"]
    assert (row["tags"], row["note"]) == ({"site": "Berlin/Floor 2"}, "spare")
    assert list(row)[:4] == ["ip_address", "client_ip", "device_type", "nas_port_type"]
    assert tenant.ask(LIST, domainId=tenant.domain, tag="site=Hamburg")["totalCount"] == 0


def test_tags_may_be_an_object(tenant: Tenant) -> None:
    """Tags in a request have the form of those in answers, and an empty value removes the tag of a key."""
    device = many(tenant, "core")["core"]
    given = {"site": "Berlin/Floor 2", "owner": "network"}
    tenant.ask(UPDATE, domainId=tenant.domain, deviceId=device, tags=given)
    (row,) = tenant.ask(LIST, domainId=tenant.domain)["network_devices"]
    assert row["tags"] == given
    tenant.ask(UPDATE, domainId=tenant.domain, deviceId=device, tags={"owner": ""})
    found = tenant.ask(GET, domainId=tenant.domain, deviceId=device)
    assert found["tags"] == found["own_tags"] == {"site": "Berlin/Floor 2"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tags": ["x"]},
        {"tags": ["k=" + "/" * 99]},
        {"tags": {"k": 1}},
        {"tags": {"my key": "x"}},
        {"note": "x" * 1001},
    ],
)
def test_wrong_tags_are_refused(tenant: Tenant, fields: dict[str, object]) -> None:
    """The error names the field. Nothing is changed."""
    device = many(tenant, "core")["core"]
    refused = tenant.refused(UPDATE, domainId=tenant.domain, deviceId=device, **fields)
    assert refused == (400, f"invalid {next(iter(fields))}" if fields else "tags or note is required")
