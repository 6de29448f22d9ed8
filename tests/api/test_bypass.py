"""/ad/...BypassStation(s) over real logins, and what a rule of `kinds` sends."""

from tests.api.world import Tenant

ADD, LIST, DELETE = "/ad/AddBypassStation", "/ad/ListBypassStations", "/ad/DeleteBypassStation"
ACCEPT, REJECT = 2, 3
MAC, STATION = "02000000000a", b"02-00-00-00-00-0A"


def test_a_printer_comes_and_goes(tenant: Tenant) -> None:
    """It is let in once it is listed, and no more once it is not; the log says how, the audit trail who listed it."""
    with tenant.nas() as nas:
        assert nas.login(MAC, MAC, CALLING_STATION_ID=STATION) == REJECT
        given = {"station": "0200.0000.000A", "name": "printer, hall"}
        assert tenant.ask(ADD, domainId=tenant.domain, **given)["message"] == "1 station(s) added"
        assert nas.login(MAC, MAC, CALLING_STATION_ID=STATION) == ACCEPT
        (event,) = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain, pageSize=1)["events"]
        assert (event["method"], event["factor"], event["user"]) == ("mab", "mac", MAC)
        answer = tenant.ask(LIST, domainId=tenant.domain, search="hall")
        assert answer["totalCount"] == 1
        assert answer["stations"][0]["station"] == "02:00:00:00:00:0a"
        assert tenant.ask(DELETE, domainId=tenant.domain, station=[MAC])["message"] == "1 station(s) deleted"
        assert nas.login(MAC, MAC, CALLING_STATION_ID=STATION) == REJECT
    entries = tenant.ask("/api/v1/audit/list", domainId=tenant.domain, search="station")["entries"]
    assert [each["action"] for each in entries] == ["bypass.delete", "bypass.add"]


def test_what_is_refused(tenant: Tenant) -> None:
    """No address, too many, none, one that is not there: told, and nothing of the call is kept."""
    for station in ("printer", "", [], ["020000000001", "x"], ["020000000001"] * 1001, 5, None, {"a": 1}, "02" * 7):
        assert tenant.refused(ADD, domainId=tenant.domain, station=station)[0] == 400, station
    assert tenant.refused(DELETE, domainId=tenant.domain, station=MAC) == (404, "station not found")
    assert tenant.ask(LIST, domainId=tenant.domain) == {"stations": [], "totalCount": 0}


def test_another_tenant_s(tenant: Tenant) -> None:
    """Nobody sees, adds to or takes from another tenant's list."""
    other = tenant.world.tenant()
    for path in (ADD, LIST, DELETE):
        assert other.refused(path, domainId=tenant.domain, station=MAC) == (403, "domain not in tenant")


def test_rules_by_kind(tenant: Tenant) -> None:
    """A rule keeps the kinds that it is given, in any case; another word is refused by the field's name."""
    tenant.ask("/ad/AddLoginRule", domainId=tenant.domain, name="pcs", action="allow", kinds=["Machine", "user"])
    (rule,) = tenant.ask("/ad/ListLoginRules", domainId=tenant.domain)["rules"]
    assert rule["kinds"] == ["machine", "user"]
    refused = tenant.refused("/ad/AddLoginRule", domainId=tenant.domain, name="x", action="allow", kinds=["robot"])
    assert refused[0] == 400
