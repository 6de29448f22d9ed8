"""Reports, orders and password rotations of endpoint agents over HTTP."""

import threading
from typing import Any

import httpx
import pytest

from sallyport.base.clock import SECOND, from_iso, now_us
from sallyport.base.sha512crypt import matches, sha512_crypt
from tests.api.hosts import (
    ADD_USER,
    DISCOVERED,
    DRIFT,
    GET_PASSWORD,
    GET_SETTINGS,
    ORDER,
    PRIVILEGES,
    REPORT,
    REPORTS,
    ROTATION,
    SET_SETTINGS,
    STATUS,
    TAKE_OVER,
    USERS,
    Host,
    add_user,
    ask_about,
    assign,
    found_account,
)
from tests.api.world import Tenant, World


def test_reports(tenant: Tenant, host: Host) -> None:
    """Reports are listed newest first, with their errors. A repeated report is stored once, and twenty reports are
    kept.
    """
    host.poll()
    body = {"actions": [{"kind": "create", "name": "bob"}, {"kind": "keys", "name": "bob", "error": "disk full"}]}
    assert host.report(**body)["message"] == "report stored"
    host.sent -= 1
    assert host.report(**body)["message"] == "report known"
    (entry,) = ask_about(tenant, REPORTS, host)["reports"]
    assert (entry["reportId"], entry["outcome"], entry["version"]) == ("report-0001", "errors", host.version)
    assert entry["told"]["actions"][0]["error"] == "disk full"
    for _ in range(25):
        host.report()
    answer = ask_about(tenant, REPORTS, host, pageSize=1000)
    assert answer["totalCount"] == len(answer["reports"]) == 20
    assert answer["reports"][0]["reportId"] == "report-0026"


def test_drift(tenant: Tenant, host: Host) -> None:
    """A deviation is current until it is reverted or a status no longer contains it. The state has the setting that
    reverts it.
    """
    someone = {"kind": "privilege", "name": "eve", "detail": "group sudo"}
    for _ in range(2):
        host.ok(PRIVILEGES, at=1, version=1, privileged=[{"name": "eve", "via": ["group sudo"]}], drift=[someone])
    host.report(drift=[{"kind": "key", "name": "ann", "detail": "SHA256:x", "putBack": True}])
    (lasting,) = ask_about(tenant, DRIFT, host)["drift"]
    assert (lasting["kind"], lasting["name"], lasting["detail"], lasting["putBack"]) == (
        "privilege", "eve", "group sudo", False,
    )  # fmt: skip
    assert [each["kind"] for each in ask_about(tenant, DRIFT, host, lasting=False)["drift"]] == ["key", "privilege"]
    host.ok(PRIVILEGES, at=2, version=1)
    assert tenant.ask(DRIFT, domainId=tenant.domain)["totalCount"] == 0
    tenant.ask(SET_SETTINGS, domainId=tenant.domain, putBackPrivileges="yes")
    state = host.poll()
    assert state is not None
    assert state.settings.put_back_privileges
    assert ask_about(tenant, GET_SETTINGS, host)["putBackPrivileges"] is True


def test_the_last_privilege_status(tenant: Tenant, host: Host) -> None:
    """agentStatus has the privileged users of the last status, the time of that status, and the version of the
    state.
    """
    assert ask_about(tenant, STATUS, host)["privilegeStatus"] is None
    eve = {"name": "eve", "via": ["group sudo"], "managed": False, "wanted": False}
    ann = {"name": "ann", "via": ["/etc/sudoers.d/sallyport"], "managed": True, "wanted": True}
    for version, privileged in ((1, [eve]), (2, [ann, eve])):
        host.ok(PRIVILEGES, at=1, version=version, privileged=privileged)
    answer = ask_about(tenant, STATUS, host)
    assert answer["privilegeStatus"] == {
        "time": answer["lastPrivilegeStatus"], "version": 2, "privileged": [ann, eve], "more": False,
    }  # fmt: skip
    assert abs(from_iso(answer["lastPrivilegeStatus"]) - now_us()) < 60 * SECOND


def test_a_long_privilege_status(tenant: Tenant, host: Host) -> None:
    """If a status exceeds the limit, its first entries are kept, and a field shows that there are more."""
    many = [{"name": f"u{number}", "via": ["x" * 200] * 5} for number in range(200)]
    host.ok(PRIVILEGES, at=1, version=1, privileged=many)
    status = ask_about(tenant, STATUS, host)["privilegeStatus"]
    assert status["more"] is True
    assert 0 < len(status["privileged"]) < 200


def test_discovery_and_take_over(tenant: Tenant, host: Host) -> None:
    """Accounts of people become users with source `discovered`.

    They have their machines and no assignment. A taken-over account is in the state. A system account is listed and
    cannot be taken over. An account that was removed on the machine is removed from the list.
    """
    accounts = [
        found_account("root", 0),
        found_account("eve", 1000, sudo=["ALL"]),
        found_account("ann", 1001),
        found_account("old", 1002),
    ]
    groups = [{"name": "sudo", "gid": 27, "members": ["eve"]}]
    host.report(discovery={"at": 1, "accounts": accounts, "groups": groups})
    listing = {"domainId": tenant.domain, "filter": {"filterBy": "source", "value": "discovered"}}
    entries = tenant.ask(USERS, **listing)["epmUsers"]
    assert [(each["userName"], each["instanceIds"], each["assign"]) for each in entries] == [
        ("eve", [host.instance], False),
        ("old", [host.instance], False),
    ]
    names = [each["name"] for each in ask_about(tenant, DISCOVERED, host)["discovered"]]
    assert names == ["ann", "eve", "old", "root"]
    assert ask_about(tenant, DISCOVERED, host, kind="group")["discovered"][0]["told"]["members"] == ["eve"]
    state = host.poll()
    assert state is not None
    assert state.users == ()

    ask_about(tenant, TAKE_OVER, host, userNames=["eve"], action="add")
    state = host.poll()
    assert state is not None
    assert [(user.name, user.password_hash) for user in state.users] == [("eve", "")]
    assert state.takeover == ("eve",)
    body = {"domainId": tenant.domain, "instanceId": host.instance, "action": "add"}
    assert tenant.refused(TAKE_OVER, userNames="nobody", **body)[0] == 404
    assert tenant.refused(TAKE_OVER, userNames="root", **body)[0] in (404, 409)
    host.report(discovery={"at": 2, "accounts": accounts[:2]})
    assert tenant.ask(USERS, **listing)["totalCount"] == 0
    ask_about(tenant, TAKE_OVER, host, userNames=["eve"], action="remove")
    state = host.poll()
    assert state is not None
    assert state.users == ()


def test_a_discovered_user_can_be_added(tenant: Tenant, host: Host) -> None:
    """A user with a discovered name can be added without a conflict and is then a local user."""
    host.report(discovery={"at": 1, "accounts": [found_account("eve", 1000)]})
    (entry,) = tenant.ask(USERS, domainId=tenant.domain, filter={"filterBy": "userName", "value": "eve"})["epmUsers"]
    assert add_user(tenant, "eve", password="hunter2") == entry["userId"]
    (entry,) = tenant.ask(USERS, domainId=tenant.domain, filter={"filterBy": "userName", "value": "eve"})["epmUsers"]
    assert (entry["source"], entry["instanceIds"]) == ("Local", [])
    again = {"domainId": tenant.domain, "userName": "eve"}
    assert tenant.refused(ADD_USER, **again) == (
        409,
        "the domain already has a user with this name: choose another name",
    )


def test_an_order_and_its_outcome(tenant: Tenant, host: Host) -> None:
    """An order is in the state until a report has its outcome. If the same order is given again meanwhile, it is the
    same order.
    """
    body = {"kind": "rotate", "userNames": ["ann"]}
    (first,) = ask_about(tenant, ORDER, host, **body)["orders"]
    (again,) = ask_about(tenant, ORDER, host, **body)["orders"]
    assert (first["orderId"], first["outcome"]) == (again["orderId"], "waiting")
    state = host.poll()
    assert state is not None
    assert [(each.id, each.kind, each.users) for each in state.triggers] == [(first["orderId"], "rotate", ("ann",))]
    host.report(outcomes=[{"trigger": first["orderId"], "error": "passwd is locked"}, {"trigger": 10**9}])
    (order,) = ask_about(tenant, STATUS, host)["orders"]
    assert (order["outcome"], order["error"]) == ("failed", "passwd is locked")
    state = host.poll()
    assert state is not None
    assert state.triggers == ()


def test_waiting_for_an_outcome(tenant: Tenant, host: Host) -> None:
    """The answer has the outcome if the agent reports in time."""
    host.poll()

    def act() -> None:
        with httpx.Client(base_url=str(tenant.world.http.base_url), trust_env=False) as http:
            state = host.poll(60, http)
            assert state is not None
            body = {"id": "report-9999", "at": 1, "version": 1, "outcomes": [{"trigger": state.triggers[0].id}]}
            http.post(REPORT, headers={"authorization": f"Bearer {host.key}"}, json=body)

    acting = threading.Thread(target=act)
    acting.start()
    (order,) = ask_about(tenant, ORDER, host, kind="discover", waitSeconds=60)["orders"]
    acting.join(60)
    assert order["outcome"] == "done"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "hunter2"}, "invalid kind"), ({}, "missing kind"),
        ({"kind": "sync", "waitSeconds": 61}, "invalid waitSeconds"),
        ({"kind": "rotate", "userNames": ["../x"]}, "invalid userNames"),
        ({"kind": "sync", "userNames": ["ann"]}, "userNames can be given only with the kind rotate"),
    ],
)  # fmt: skip
def test_malformed_orders(tenant: Tenant, host: Host, fields: dict[str, Any], message: str) -> None:
    """A malformed order is answered with 400 and the message names the field."""
    assert tenant.refused(ORDER, domainId=tenant.domain, instanceId=host.instance, **fields) == (400, message)


def test_a_rotated_password_is_known_to_the_service_first(world: World, tenant: Tenant, host: Host) -> None:
    """The service knows a password before it is in force.

    From then on the state has its hash. An auditor sees neither, and each time a password is read the audit trail gets
    an entry.
    """
    user = add_user(tenant, "bob", password="hunter2")
    assign(tenant, host, user)
    host.poll()
    hashed = sha512_crypt(b"n3w and long")
    message = {"id": "rotation-1", "user": "bob"}
    escrow = {**message, "phase": "escrow", "password": "n3w and long", "passwordHash": hashed}
    for _ in range(2):
        host.ok(ROTATION, **escrow)
    shown = ask_about(tenant, GET_PASSWORD, host, userName="bob")["passwords"]
    assert [(each["password"], each["state"]) for each in shown] == [("hunter2", "set"), ("n3w and long", "candidate")]
    assert host.poll() is None
    for _ in range(2):
        host.ok(ROTATION, **message, phase="confirm")
    state = host.poll()
    assert state is not None
    assert state.users[0].password_hash == hashed
    shown = ask_about(tenant, GET_PASSWORD, host, userName="bob")["passwords"]
    assert [(each["password"], each["state"]) for each in shown] == [("n3w and long", "current")]
    hidden = ask_about(tenant, GET_PASSWORD, host, userName="bob", token=tenant.role("auditor"))["passwords"]
    assert [each["password"] for each in hidden] == ["********"]
    trail = tenant.ask("/api/v1/audit/list", pageSize=100)
    actions = [each["action"] for each in trail["entries"]]
    assert actions.count("agent.password.read") == 3
    assert actions.count("agent.password.rotate") == 1
    assert "n3w and long" not in str(trail)
    tenant.ask(
        "/api/v1/endpointUsers/updateEpmUserInfo", method="PUT", domainId=tenant.domain, userId=user, password="third"
    )
    state = host.poll()
    assert state is not None
    assert matches(b"third", state.users[0].password_hash)


def test_invalid_rotation_steps(host: Host) -> None:
    """A confirmation of an unknown rotation is answered with 404, but abandoning an unknown rotation succeeds.

    Sending another password under the same id is answered with 409, and so is abandoning the password in force.
    """
    message = {"id": "rotation-1", "user": "bob"}
    escrow = {**message, "phase": "escrow", "password": "one", "passwordHash": sha512_crypt(b"one")}
    assert host.send(ROTATION, **message, phase="confirm").status_code == 404
    assert host.send(ROTATION, **message, phase="abandon").status_code == 200
    host.ok(ROTATION, **escrow)
    assert host.send(ROTATION, **{**escrow, "password": "two"}).status_code == 409
    host.ok(ROTATION, **message, phase="confirm")
    assert host.send(ROTATION, **message, phase="abandon").status_code == 409
