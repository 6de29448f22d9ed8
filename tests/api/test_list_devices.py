"""/network_device/ListDevices: devices that send real packets, and their entries in the inventory."""

import ipaddress
import re
from typing import Any

import pytest

from sallyport.areas.devices.bodies import DeviceEntry, DeviceList
from tests.api.world import LIST_DEVICES, PASSWORD, Tenant, World

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
WIRELESS, ETHERNET = (number.to_bytes(4) for number in (19, 15))
NAS = bytes((10, 1, 2, 3))


def test_the_fields_of_a_device(tenant: Tenant) -> None:
    """A device has the fields of the interface in its spelling, and the additional fields, with their types."""
    with tenant.nas(product="Cisco ISE") as nas:
        address = nas.sock.getsockname()[0]
        for _ in range(3):
            nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"wlc-1", NAS_IP_ADDRESS=NAS, NAS_PORT_TYPE=WIRELESS)
    answer = tenant.ask(LIST_DEVICES, domainId=tenant.domain)
    (device,) = answer["network_devices"]
    times = [device.pop(name) for name in ("first_seen", "last_seen")]
    device_id = device.pop("device_id")
    assert answer == {"network_devices": [device], "totalCount": 1}
    assert device == {
        "ip_address": address, "client_ip": "10.1.2.3", "device_type": "Cisco ISE", "nas_port_type": "Wireless",
        "device_name": "wlc-1", "nas_identifier": "wlc-1", "device_type_certainty": "certain",
        "nas_device_type": "Cisco ISE", "request_count": 3, "registrations": 1,
        "signed_share": 1.0, "unsigned_proxy_state": 0, "last_unsigned": "", "safe_to_require": True,
        "retransmit_seconds": None, "give_up_seconds": None, "challenge_support": "unknown",
        "tags": {}, "note": "", "ssids": [], "methods": ["pap"], "transports": ["udp"], "silent_since": "",
        "model": "", "firmware": "",
    }  # fmt: skip
    assert isinstance(device_id, int)
    assert all(TIME.fullmatch(time) for time in times)
    assert times == sorted(times)


def test_the_list_matches_its_model(tenant: Tenant) -> None:
    """Each entry has the fields of `DeviceEntry` in the same order, with values of the declared types."""
    tenant.device("a")
    answer = tenant.ask(LIST_DEVICES, domainId=tenant.domain)
    assert DeviceList.model_validate(answer, strict=True).model_dump() == answer
    (device,) = answer["network_devices"]
    assert list(device) == list(DeviceEntry.model_fields)


def test_the_posture_of_a_device_that_does_not_sign(tenant: Tenant) -> None:
    """A device has the share of its signed logins, the time of the last one, and whether a proxy has sent unsigned
    ones.
    """
    with tenant.nas() as nas:
        nas.login("ann", PASSWORD, signed=False, PROXY_STATE=b"1")
        nas.login("ann", PASSWORD)
    (device,) = tenant.devices()
    assert (device["signed_share"], device["unsigned_proxy_state"], device["safe_to_require"]) == (0.5, 1, False)
    assert TIME.fullmatch(device["last_unsigned"])


def test_a_device_without_a_name_or_an_address(tenant: Tenant) -> None:
    """A device without a name is named after its product, and its client_ip is the sender. Unknown values are shown as
    Unknown.
    """
    with tenant.nas() as nas:
        address = nas.sock.getsockname()[0]
        nas.login("ann", PASSWORD)
    (device,) = tenant.devices()
    assert (device["ip_address"], device["client_ip"], device["nas_identifier"]) == (address, address, "")
    assert (device["device_name"], device["device_type"], device["nas_port_type"]) == ("Unknown",) * 3


def test_an_ipv6_client(tenant: Tenant) -> None:
    """NAS-IPv6-Address is shown in text form."""
    tenant.device("a", NAS_IPV6_ADDRESS=ipaddress.ip_address("2001:db8::7").packed)
    assert [device["client_ip"] for device in tenant.devices()] == ["2001:db8::7"]


@pytest.mark.parametrize("form", ["2001:db8::7", "2001:DB8::7", "2001:0db8:0:0:0:0:0:7"])
def test_any_form_of_an_ipv6_address_finds_a_device(tenant: Tenant, form: str) -> None:
    """The CLIENT_IP filter, the search for devices and the search for logins accept any form of an address."""
    tenant.device("a", NAS_IPV6_ADDRESS=ipaddress.ip_address("2001:db8::7").packed)
    tenant.device("b", NAS_IPV6_ADDRESS=ipaddress.ip_address("2001:db8::8").packed)
    assert tenant.names(filter={"filterBy": "CLIENT_IP", "value": form}) == ["a"]
    assert tenant.names(search=form) == ["a"]
    events = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain, search=form)["events"]
    assert [each["device_name"] for each in events] == ["a"]


def test_a_mapped_address_is_an_ipv4_address(tenant: Tenant) -> None:
    """An IPv4-mapped NAS-IPv6-Address is listed as IPv4 and found in both forms."""
    tenant.device("a", NAS_IPV6_ADDRESS=ipaddress.ip_address("::ffff:192.0.2.7").packed)
    assert [device["client_ip"] for device in tenant.devices()] == ["192.0.2.7"]
    for form in ("192.0.2.7", "::ffff:192.0.2.7", "::FFFF:C000:0207"):
        assert tenant.names(filter={"filterBy": "client_ip", "value": form}) == ["a"]


@pytest.mark.parametrize("column", ["NAS_IDENTIFIER", "DEVICE_NAME"])
def test_a_name_is_no_address(tenant: Tenant, column: str) -> None:
    """A filter by name compares text, even if the text looks like an address."""
    tenant.device("2001:DB8:0::7")
    assert tenant.names(filter={"filterBy": column, "value": "2001:db8:0::7"}) == ["2001:DB8:0::7"]


def test_a_list_begins_empty(tenant: Tenant) -> None:
    """A new domain has an empty list of devices."""
    assert tenant.ask(LIST_DEVICES, domainId=tenant.domain) == {"network_devices": [], "totalCount": 0}


def test_other_tenants_see_nothing(world: World, tenant: Tenant) -> None:
    """A tenant sees only the devices of the domain that it names, and none of another tenant."""
    tenant.device("mine")
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    other = world.tenant()
    other.device("theirs")
    assert tenant.names() == ["mine"]
    assert tenant.devices(domain=branch) == []
    assert other.names() == ["theirs"]
    assert other.names(search="mine") == []


# --- pages ------------------------------------------------------------------------------------------------------


def test_pages(tenant: Tenant) -> None:
    """A page has 10 devices by default, ordered by id.

    Each device is on one page, and a page past the end is empty. A device that registers meanwhile comes last.
    """
    with tenant.nas() as nas:
        for number in range(12):
            nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"d%d" % number)
        default = tenant.ask(LIST_DEVICES, domainId=tenant.domain)
        assert [len(default["network_devices"]), default["totalCount"]] == [10, 12]
        pages: list[list[dict[str, Any]]] = []
        for page in range(1, 6):
            answer = tenant.ask(LIST_DEVICES, domainId=tenant.domain, pageId=page, pageSize=4)
            pages.append(answer["network_devices"])
            assert answer["totalCount"] == 11 + page
            nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"new%d" % page)
    listed = [device["device_id"] for page in pages for device in page]
    assert [len(page) for page in pages] == [4, 4, 4, 3, 0]
    assert listed == sorted(set(listed))
    assert pages[0][0]["device_name"] == "d0"


@pytest.mark.parametrize("path", [LIST_DEVICES, "/ad/GetAllDomains"])
@pytest.mark.parametrize("page", [{"pageId": value} for value in (0, -1, "x", "", 1.5, True, [1], 2**70)])
def test_malformed_page_numbers(tenant: Tenant, path: str, page: dict[str, object]) -> None:
    """The first pageId is 1. Values below 1 are refused."""
    assert tenant.refused(path, domainId=tenant.domain, **page) == (400, "invalid pageId")


@pytest.mark.parametrize("path", [LIST_DEVICES, "/ad/GetAllDomains"])
@pytest.mark.parametrize("size", [0, -1, 101, "101", "x", "", 1.5, True])
def test_malformed_page_sizes(tenant: Tenant, path: str, size: object) -> None:
    """pageSize must be 1 to 100."""
    assert tenant.refused(path, domainId=tenant.domain, pageSize=size) == (400, "invalid pageSize")


def test_limits_of_pages(tenant: Tenant) -> None:
    """The page sizes 1 and 100 are valid, also as strings. Null selects the default, and a page far past the end is
    empty.
    """
    tenant.device("a")
    for page in ({"pageSize": 1}, {"pageSize": "100"}, {"pageId": "1"}, {"pageId": None, "pageSize": None}):
        assert len(tenant.ask(LIST_DEVICES, domainId=tenant.domain, **page)["network_devices"]) == 1
    far = tenant.ask(LIST_DEVICES, domainId=tenant.domain, pageId=10**15, pageSize=100)
    assert far == {"network_devices": [], "totalCount": 1}


# --- filter, search, class --------------------------------------------------------------------------------------


def test_filters(tenant: Tenant) -> None:
    """Devices are filtered by each column, whose name is accepted in any letter case.

    DEVICE_NAME matches the name or, as in the interface's example, the product.
    """
    address = tenant.device("Switch-1", NAS_IP_ADDRESS=NAS, NAS_PORT_TYPE=ETHERNET)
    with tenant.nas(product="Microsoft NPS") as nas:
        nas.login("ann", PASSWORD, NAS_IDENTIFIER=b"nps")
    found = {
        ("DEVICE_NAME", "switch-1"): ["Switch-1"],
        ("device_name", "Microsoft NPS"): ["nps"],
        ("Device_Type", "microsoft nps"): ["nps"],
        ("IP_ADDRESS", address): ["Switch-1"],
        ("CLIENT_IP", "10.1.2.3"): ["Switch-1"],
        ("NAS_PORT_TYPE", "ethernet"): ["Switch-1"],
        ("NAS_IDENTIFIER", "NPS"): ["nps"],
        ("DEVICE_NAME", "switch"): [],
        ("DEVICE_NAME", "' or ''='"): [],
        ("", "switch-1"): ["Switch-1", "nps"],
        ("DEVICE_NAME", ""): ["Switch-1", "nps"],
        ("", ""): ["Switch-1", "nps"],
    }
    for (column, value), names in found.items():
        assert tenant.names(filter={"filterBy": column, "value": value}) == names, (column, value)
    for nothing in (None, {}, {"filterBy": ""}, {"value": "x"}):
        assert len(tenant.names(filter=nothing)) == 2
    assert tenant.names(filter={"filterBy": "NAS_PORT_TYPE", "value": "Ethernet"}, search="switch") == ["Switch-1"]
    assert tenant.names(filter={"filterBy": "NAS_PORT_TYPE", "value": "Ethernet"}, search="nps") == []


@pytest.mark.parametrize("column", ["NAME", "id", "DEVICE_NAME ", "evidence", "1=1; drop table devices", 7])
def test_a_column_that_does_not_exist(tenant: Tenant, column: object) -> None:
    """For an unknown column the answer is 400 with the exact words of the interface, whatever the other fields
    contain.
    """
    for value in ("x", ""):
        wanted = {"filterBy": column, "value": value}
        assert tenant.refused(LIST_DEVICES, domainId=tenant.domain, filter=wanted) == (400, "invalid filterBy")
    refused = tenant.refused(
        LIST_DEVICES, domainId=tenant.domain, filter={"filterBy": column, "value": "x"}, MachineType="other"
    )
    assert refused == (400, "invalid filterBy")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"filter": "hunter2"}, "invalid filter"),
        ({"filter": {"filterBy": ["DEVICE_NAME"]}}, "invalid filterBy"),
        ({"filter": {"filterBy": "x" * 256}}, "invalid filterBy"),
        ({"filter": {"value": "a\0"}}, "invalid value"),
        ({"search": ["hunter2"]}, "invalid search"),
        ({"search": "a\nb"}, "invalid search"),
        ({"search": "x" * 256}, "invalid search"),
        ({"MachineType": {}}, "invalid MachineType"),
    ],
)
def test_malformed_fields_are_named(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """The error for a malformed field names it but not its value."""
    assert tenant.refused(LIST_DEVICES, domainId=tenant.domain, **fields) == (400, text)


def test_searches(tenant: Tenant) -> None:
    """A case-insensitive search matches parts of any length of name, product and addresses.

    Quotes, wildcards and other scripts are searched as plain text.
    """
    names = ("core-switch", 'a"b', "100%", "Zürich", "上海-1", "it's")
    with tenant.nas(product="FreeRADIUS") as nas:
        address = nas.sock.getsockname()[0]
        for name in names:
            nas.login("ann", PASSWORD, NAS_IDENTIFIER=name.encode(), NAS_IP_ADDRESS=NAS)
    found = {
        "": names, "k": (), "c": names, "co": names[:1], "CORE-S": names[:1], '"': names[1:2], 'a"b': names[1:2],
        "%": names[2:3], "00%": names[2:3], "ü": names[3:4], "Ü": names[3:4], "züRICH": names[3:4],
        "上": names[4:5], "上海": names[4:5], "上海-1": names[4:5], "'": names[5:], "t's": names[5:],
        "freeradius": names, "FR": names, "10.1.2.3": names, ".2": names, address: names, "_": (), "xyz": (),
        "* OR *": (), "core*": (), "device_name:core": (), "x" * 255: (),
    }  # fmt: skip
    found["c"] = tuple(name for name in names if "c" in name.lower())
    assert {search: tuple(tenant.names(search=search)) for search in found} == found
    paged = tenant.ask(LIST_DEVICES, domainId=tenant.domain, search="free", pageSize=4, pageId=2)
    assert (len(paged["network_devices"]), paged["totalCount"]) == (2, 6)


def test_classes_of_machines(tenant: Tenant) -> None:
    """The class is radius or none. For any other class the list is empty."""
    tenant.device("a")
    for kind in ("radius", "RADIUS", "", "Radius"):
        assert tenant.names(MachineType=kind) == ["a"]
    for kind in ("windows", "linux", "radius ", "x"):
        answer = tenant.ask(LIST_DEVICES, domainId=tenant.domain, MachineType=kind)
        assert answer == {"network_devices": [], "totalCount": 0}
