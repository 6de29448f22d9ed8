"""The operations of MAC bypass, tested with real logins, and rules that have `kinds`."""

from typing import Any

import pytest

from tests.api.world import Tenant
from tests.waiting import eventually

ADD, LIST, DELETE = "/ad/AddBypassStation", "/ad/ListBypassStations", "/ad/DeleteBypassStation"
IMPORT, UNKNOWN = "/ad/ImportBypassStations", "/ad/ListUnknownStations"
ACCEPT, REJECT = 2, 3
MAC, STATION = "02000000000a", b"02-00-00-00-00-0A"


def test_a_printer_comes_and_goes(tenant: Tenant) -> None:
    """A listed printer is accepted, and after its removal it is rejected.

    The login log shows that the bypass decided, and the audit trail names the admin.
    """
    with tenant.nas() as nas:
        assert nas.login(MAC, MAC, CALLING_STATION_ID=STATION) == REJECT
        given = {"station": "0200.0000.000A", "name": "printer, hall"}
        assert tenant.ask(ADD, domainId=tenant.domain, **given)["message"] == "1 station added"
        assert nas.login(MAC, MAC, CALLING_STATION_ID=STATION) == ACCEPT
        (event,) = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain, pageSize=1)["events"]
        assert (event["method"], event["factor"], event["user"]) == ("mab", "mac", MAC)
        answer = tenant.ask(LIST, domainId=tenant.domain, search="hall")
        assert answer["totalCount"] == 1
        assert answer["stations"][0]["station"] == "02:00:00:00:00:0a"
        assert tenant.ask(DELETE, domainId=tenant.domain, station=[MAC])["message"] == "1 station deleted"
        assert nas.login(MAC, MAC, CALLING_STATION_ID=STATION) == REJECT
    entries = tenant.ask("/api/v1/audit/list", domainId=tenant.domain, search="1 station")["entries"]
    assert [each["action"] for each in entries] == ["bypass.delete", "bypass.add"]


def test_new_keys_are_in_one_answer(tenant: Tenant) -> None:
    """Each station gets a key of its own, in the order of the request; a list does not have it."""
    given = {"domainId": tenant.domain, "station": [MAC, "0200.0000.000b", MAC]}
    answer = tenant.ask(ADD, **given, generatePsk=True)
    assert [each["station"] for each in answer["keys"]] == ["02:00:00:00:00:0a", "02:00:00:00:00:0b"]
    first, second = (each["psk"] for each in answer["keys"])
    assert first != second
    assert all(len(each) == 20 and each.isalnum() for each in (first, second))
    listed = tenant.ask(LIST, domainId=tenant.domain)
    assert [each["hasPsk"] for each in listed["stations"]] == [True, True]
    assert first not in str(listed)
    assert first not in str(tenant.ask("/api/v1/audit/list", domainId=tenant.domain))
    assert tenant.ask(ADD, **given)["keys"] == []
    assert tenant.refused(ADD, **given, generatePsk=True, psk="correct horse")[0] == 400


@pytest.mark.parametrize(
    "station",
    [
        pytest.param("printer", id="a name"),
        pytest.param("", id="empty"),
        pytest.param([], id="none"),
        pytest.param(["020000000001", "x"], id="one of two"),
        pytest.param(["020000000001"] * 1001, id="too many"),
        pytest.param(5, id="a number"),
        pytest.param(None, id="null"),
        pytest.param({"a": 1}, id="an object"),
        pytest.param("02" * 7, id="too long"),
    ],
)
def test_invalid_station_addresses(tenant: Tenant, station: object) -> None:
    """A request that contains an invalid address is refused and stores nothing."""
    assert tenant.refused(ADD, domainId=tenant.domain, station=station)[0] == 400
    assert tenant.ask(LIST, domainId=tenant.domain) == {"stations": [], "totalCount": 0}


def test_a_station_that_is_not_listed(tenant: Tenant) -> None:
    """Removing a station that is not listed is answered with 404."""
    assert tenant.refused(DELETE, domainId=tenant.domain, station=MAC) == (404, "station not found")


@pytest.mark.parametrize("path", [ADD, LIST, DELETE, IMPORT, UNKNOWN])
def test_another_tenants_list(tenant: Tenant, path: str) -> None:
    """A tenant can neither read nor change the list of another tenant."""
    other, fields = tenant.world.tenant(), {} if path in (LIST, UNKNOWN) else {"station": MAC}
    if path == IMPORT:
        fields = {"stations": [fields]}
    assert other.refused(path, domainId=tenant.domain, **fields) == (403, "domain not in tenant")


def test_rules_by_kind(tenant: Tenant) -> None:
    """A rule stores its kinds, which are accepted in any letter case. An unknown kind is refused, and the error names
    the field.
    """
    tenant.ask("/ad/AddLoginRule", domainId=tenant.domain, name="pcs", action="allow", kinds=["Machine", "user"])
    (rule,) = tenant.ask("/ad/ListLoginRules", domainId=tenant.domain)["rules"]
    assert rule["kinds"] == ["machine", "user"]
    refused = tenant.refused("/ad/AddLoginRule", domainId=tenant.domain, name="x", action="allow", kinds=["robot"])
    assert refused[0] == 400


def test_an_unknown_station_is_listed(tenant: Tenant) -> None:
    """A station that is not on the list is shown with its port, until it is added."""
    with tenant.nas() as nas:
        assert nas.login(MAC, MAC, CALLING_STATION_ID=STATION, NAS_PORT_ID=b"Gi1/0/7") == REJECT

    def unknown() -> list[dict[str, Any]]:
        stations: list[dict[str, Any]] = tenant.ask(UNKNOWN, domainId=tenant.domain)["stations"]
        return stations

    eventually(lambda: bool(unknown()))
    (found,) = unknown()
    assert (found["station"], found["port"], found["randomised"]) == ("02:00:00:00:00:0a", "Gi1/0/7", True)
    tenant.ask(ADD, domainId=tenant.domain, station=MAC)
    assert unknown() == []


def test_an_import_is_complete_or_nothing(tenant: Tenant) -> None:
    """Each station of an import has its own values. One invalid station refuses all."""
    stations = [{"station": MAC, "name": "printer", "vlan": "20"}, {"station": "02000000000b", "name": "camera"}]
    bad = [*stations, {"station": "02000000000c", "vlan": "5000"}]
    assert tenant.refused(IMPORT, domainId=tenant.domain, stations=bad)[0] == 400
    assert tenant.ask(LIST, domainId=tenant.domain)["totalCount"] == 0
    assert tenant.ask(IMPORT, domainId=tenant.domain, stations=stations)["message"] == "2 stations imported"
    listed = tenant.ask(LIST, domainId=tenant.domain)["stations"]
    assert {each["name"]: each["vlan"] for each in listed} == {"printer": "20", "camera": ""}
