"""/ad/ListLockouts and /ad/Unlock, tested with real logins."""

import pytest

from tests.api.world import PASSWORD, Tenant
from tests.radius_client import RadiusClient

LIST, UNLOCK = "/ad/ListLockouts", "/ad/Unlock"
ACCEPT, REJECT = 2, 3
PHONE, TABLET = b"02-00-00-00-00-01", b"02-00-00-00-00-02"


def fail(nas: RadiusClient, user: str = "ann", station: bytes = PHONE) -> None:
    """Send ten logins with wrong passwords."""
    for number in range(10):
        assert nas.login(user, f"wrong {number}", CALLING_STATION_ID=station) == REJECT


def test_locked_out_and_unlocked(tenant: Tenant) -> None:
    """A locked-out user and a locked-out station are listed with their times. After the unlock of the user,
    the user can log in at both stations at once.
    """
    with tenant.nas() as nas:
        assert nas.login("ann", PASSWORD, CALLING_STATION_ID=TABLET) == ACCEPT
        fail(nas)
        assert nas.login("ann", PASSWORD, CALLING_STATION_ID=TABLET) == REJECT
        answer = tenant.ask(LIST, domainId=tenant.domain, pageSize=1)
        assert answer["totalCount"] == 2
        (user,) = answer["lockouts"]
        (station,) = tenant.ask(LIST, domainId=tenant.domain, pageSize=1, pageId=2)["lockouts"]
        assert (user["kind"], user["name"], user["failures"]) == ("user", "ann", 10)
        assert (station["kind"], station["name"]) == ("station", PHONE.decode())
        assert user["since"] < user["until"]
        answer = tenant.ask(UNLOCK, domainId=tenant.domain, userName="ANN")
        assert (answer["message"], answer["stations"]) == ("unlocked", [PHONE.decode()])
        assert nas.login("ann", PASSWORD, CALLING_STATION_ID=TABLET) == ACCEPT
        assert nas.login("ann", PASSWORD, CALLING_STATION_ID=PHONE) == ACCEPT
        assert tenant.ask(LIST, domainId=tenant.domain) == {"lockouts": [], "totalCount": 0}
    assert (
        tenant.ask(UNLOCK, domainId=tenant.domain, userName="ann")["message"]
        == "the user or station was not locked out"
    )


def test_the_records_of_a_lockout(tenant: Tenant) -> None:
    """The login log has the tenth failure and the refusals after it. The audit trail has the lock-out and the actor
    that removed it.
    """
    with tenant.nas() as nas:
        fail(nas)
        assert nas.login("ann", PASSWORD) == REJECT
    events = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain, pageSize=2)["events"]
    assert [each["reason"] for each in events] == ["locked out after failures", "wrong password"]
    assert (events[0]["decision"], events[0]["appliedDecision"]) == ("reject", "reject")
    tenant.ask(UNLOCK, domainId=tenant.domain, userName="ann", token=tenant.role("operator"))
    entries = tenant.ask("/api/v1/audit/list", domainId=tenant.domain, search="user ann")["entries"]
    actions = [(each["action"], each["actorKind"]) for each in entries if "locked" in each["action"]]
    assert actions == [("user.unlocked", "token"), ("user.locked", "service")]


def test_another_tenants_lockouts(tenant: Tenant) -> None:
    """A tenant can neither see nor remove a lock-out of another tenant. A user of the same name in another domain stays
    locked out.
    """
    with tenant.nas() as nas:
        fail(nas)
        other = tenant.world.tenant()
        assert other.refused(LIST, domainId=tenant.domain) == (403, "domain not in tenant")
        assert other.refused(UNLOCK, domainId=tenant.domain, userName="ann") == (403, "domain not in tenant")
        other.ask(UNLOCK, domainId=other.domain, userName="ann")
        assert nas.login("ann", PASSWORD) == REJECT


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="none"),
        pytest.param({"userName": "ann", "station": "x"}, id="both"),
        pytest.param({"userName": ""}, id="empty"),
    ],
)
def test_a_request_names_a_user_or_a_station(tenant: Tenant, fields: dict[str, str]) -> None:
    """A request must name either a user or a station."""
    assert tenant.refused(UNLOCK, domainId=tenant.domain, **fields) == (
        400,
        "either userName or station must be given, and not both",
    )
