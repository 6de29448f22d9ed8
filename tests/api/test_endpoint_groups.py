"""/api/v1/instanceGroup/*, the alternative paths, and the credential policies of groups."""

from typing import Any

import pytest

from tests.api.test_instances import ADD_GROUP, add, add_group, add_user
from tests.api.world import PASSWORD, Tenant, World, problem

LIST = "/api/v1/instanceGroup/listEndpointGroup"
DELETE = "/api/v1/instanceGroup/deleteEndpointGroup"
EDIT = ("/api/v1/epmGroupManagement/editEPMGroupStatus", "/api/v1/instanceGroup/editInstanceGroup")
ASSIGN = ("/api/v1/instanceGroup/assignUsersToEndpointGroup", "/api/v1/instances/assignUsersToEndpointGroup")
AUTH_FLOW = "/api/v1/instanceGroup/addAuthFlowToInstanceGroup"
STATUS = "/api/v1/instanceGroup/updateInstanceGroupStatus"
DETAIL = "/api/v1/instanceGroup/fetchInstanceGroupDetail"
SET_POLICY = "/api/v1/instances/updateCredentialPolicyToEndpointGroup"
DELETE_POLICY = "/api/v1/instances/deleteCredentialPolicyToEndpointGroup"
ADD_PASSWORD_POLICY = "/api/v1/instances/addPasswordPolicy"
LIST_PASSWORD_POLICY = "/api/v1/instances/listAllPasswordPolicy"
NO_GROUP = (404, "group not found")


def listed(tenant: Tenant, **fields: Any) -> dict[str, int]:
    """Return the matching groups, each with its number of users."""
    answer = tenant.ask(LIST, domainId=tenant.domain, **fields)
    return {each["groupName"]: each["usersCount"] for each in answer["groups"]}


def row(tenant: Tenant, name: str) -> dict[str, Any]:
    """Return a group of the list."""
    rows = tenant.ask(LIST, domainId=tenant.domain)["groups"]
    found: dict[str, Any] = next(each for each in rows if each["groupName"] == name)
    return found


def test_a_new_group(tenant: Tenant) -> None:
    """The answer has the documented fields, capitalization and types. instanceId is the id of the group. The group is
    active.
    """
    machine = add(tenant, "web")
    answer = tenant.ask(ADD_GROUP, domainId=tenant.domain, groupName="g", instanceIds=[machine], ou="o", cn="c", dc="d")
    group = answer.pop("instanceId")
    assert isinstance(group, int) and answer == {"Code": "200", "Message": "group added"}
    kept = row(tenant, "g")
    assert [kept[name] for name in ("groupId", "status", "ou", "cn", "dc")] == [group, "Active", "o", "c", "d"]
    assert [each["instanceId"] for each in tenant.ask(DETAIL, domainId=tenant.domain, groupId=group)["instances"]] == [
        machine
    ]


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({}, (400, "missing groupName")), ({"groupName": ""}, (400, "invalid groupName")),
        ({"groupName": "a\tb"}, (400, "invalid groupName")), ({"groupName": "\u3000"}, (400, "invalid groupName")),
        ({"groupName": {}}, (400, "invalid groupName")),
        ({"groupName": "x", "instanceIds": ["hunter2"]}, (400, "invalid instanceIds")),
        ({"groupName": "x", "ou": ["hunter2"]}, (400, "invalid ou")),
        ({"groupName": "x", "cn": "y" * 256}, (400, "invalid cn")),
        ({"groupName": "x", "instanceIds": [10**9]}, (404, "instance not found")),
        ({"groupName": "TAKEN"}, (409, "the domain already has a group with this name: choose another name")),
    ],
)  # fmt: skip
def test_malformed_groups(tenant: Tenant, fields: dict[str, Any], refusal: tuple[int, str]) -> None:
    """A malformed field is answered with 400, an unknown instance is answered with 404, and a taken name is answered
    with 409. None of these requests adds a group.
    """
    add_group(tenant, "taken")
    assert tenant.refused(ADD_GROUP, domainId=tenant.domain, **fields) == refusal
    assert listed(tenant) == {"taken": 0}


def test_the_list(tenant: Tenant) -> None:
    """Entries have exactly the documented fields. They are filtered by a part of the name, ordered by id and paged."""
    ids = [add_group(tenant, name) for name in ("Staff", "guests", "stage")]
    answer = tenant.ask(LIST, domainId=tenant.domain)
    assert answer["totalCount"] == 3
    times = {name: answer["groups"][0].pop(name) for name in ("created", "updated")}
    assert answer["groups"][0] == {
        "groupId": ids[0], "groupName": "Staff", "usersCount": 0, "status": "Active", "authFlow": "", "ou": "",
        "cn": "", "dc": "", "credentialPolicy": None,
    }  # fmt: skip
    assert times["created"] == times["updated"]
    assert list(listed(tenant, filter="STA")) == ["Staff", "stage"]
    assert list(listed(tenant, pageId=2, pageSize=2)) == ["stage"]
    assert listed(tenant, filter="nobody") == {}
    assert tenant.refused(LIST, domainId=tenant.domain, pageSize=1001) == (400, "invalid pageSize")
    assert tenant.refused(LIST, domainId=tenant.domain, filter={"filterBy": "x"}) == (400, "invalid filter")


def test_the_groups_of_an_instance(tenant: Tenant) -> None:
    """`instanceId` selects the groups of one instance, also with a filter by name."""
    machine, other = add(tenant, "web"), add(tenant, "db")
    for name, machines in (("staff", [machine]), ("guests", [machine, other]), ("stage", [])):
        tenant.ask(ADD_GROUP, domainId=tenant.domain, groupName=name, instanceIds=machines)
    assert list(listed(tenant, instanceId=machine)) == ["staff", "guests"]
    assert tenant.ask(LIST, domainId=tenant.domain, instanceId=machine, pageSize=1)["totalCount"] == 2
    assert list(listed(tenant, instanceId=machine, filter="STA")) == ["staff"]
    assert listed(tenant, instanceId=10**9) == {}


@pytest.mark.parametrize("path", EDIT)
def test_editing(world: World, tenant: Tenant, path: str) -> None:
    """On both paths, an edit changes the given fields and keeps the others."""
    machines = [add(tenant, name) for name in "ab"]
    group = add_group(tenant, "g")
    add_group(tenant, "h")
    fields = {"domainId": tenant.domain, "groupId": group}
    edited = tenant.ask(path, method="PUT", groupName="G2", instanceIds=machines, ou="x", **fields)
    assert edited == {"status": "Success", "message": "group updated"}
    tenant.ask(path, method="PUT", instanceIds=machines[:1], status="Disabled", **fields)
    tenant.ask(path, method="PUT", **fields)
    kept = row(tenant, "G2")
    assert (kept["ou"], kept["status"]) == ("x", "Disabled")
    detail = tenant.ask(DETAIL, **fields)
    assert [each["instanceId"] for each in detail["instances"]] == machines[:1]
    foreign = add(world.tenant(), "a")
    for wrong, refusal in (
        ({"groupName": "H"}, (409, "the domain already has a group with this name: choose another name")),
        ({"groupName": ""}, (400, "invalid groupName")),
        ({"instanceIds": [foreign]}, (404, "instance not found")), ({"instanceIds": "x"}, (400, "invalid instanceIds")),
        ({"groupId": 10**9}, NO_GROUP), ({"groupId": add_group(world.tenant(), "g")}, NO_GROUP),
    ):  # fmt: skip
        assert tenant.refused(path, method="PUT", **{**fields, **wrong}) == refusal
    assert tenant.refused(path, method="PUT", domainId=tenant.domain) == (400, "missing groupId")


def test_deleting(world: World, tenant: Tenant) -> None:
    """Groups are deleted by one id, by several ids or by epmGroupId. If one of them is unknown, none is deleted. A
    group of another tenant is answered with 404.
    """
    one, two, three, four = (add_group(tenant, name) for name in "abcd")
    foreign = add_group(world.tenant(), "a")
    assert tenant.refused(DELETE, method="DELETE", domainId=tenant.domain, id=[one, foreign]) == NO_GROUP
    deleted = tenant.ask(DELETE, method="DELETE", domainId=tenant.domain, id=one)
    assert deleted == {"status": "Success", "message": "1 group deleted"}
    tenant.ask(DELETE, method="DELETE", domainId=tenant.domain, id=[two, two])
    tenant.ask(DELETE, method="DELETE", domainId=tenant.domain, epmGroupId=str(three))
    assert list(listed(tenant)) == ["d"]
    assert tenant.refused(DELETE, method="DELETE", domainId=tenant.domain, id=one) == NO_GROUP
    for wrong in ([], "hunter2", None, True):
        assert tenant.refused(DELETE, method="DELETE", domainId=tenant.domain, id=wrong)[0] == 400
    assert tenant.refused(DELETE, method="DELETE", domainId=tenant.domain) == (400, "missing id")
    assert listed(tenant) == {"d": 0} and four


@pytest.mark.parametrize("path", ASSIGN)
def test_users_of_a_group(world: World, tenant: Tenant, path: str) -> None:
    """On both paths, users are added and removed. If one of them is unknown, nothing is changed. A repeated request
    succeeds.
    """
    group, users = add_group(tenant, "g"), [add_user(tenant, name) for name in ("bob", "carl")]
    fields = {"domainId": tenant.domain, "groupId": group}
    for _ in range(2):
        answer = tenant.ask(path, userIds=users, action="add", **fields)
        assert answer == {"status": "Success", "message": "users assigned"}
        assert listed(tenant) == {"g": 2}
    foreign = add_user(world.tenant(), "bob")
    assert tenant.refused(path, userIds=[users[0], foreign], action="remove", **fields) == (404, "user not found")
    assert listed(tenant) == {"g": 2}
    for _ in range(2):
        answer = tenant.ask(path, userIds=users[0], action="remove", **fields)
        assert answer == {"status": "Success", "message": "users removed"}
    assert listed(tenant) == {"g": 1}
    assert tenant.refused(path, userIds=users, action="add", domainId=tenant.domain, groupId=10**9) == NO_GROUP
    for name, wrong in (("userIds", []), ("userIds", ["x"]), ("action", "hunter2"), ("groupId", None)):
        body = {"userIds": users, "action": "add", **fields, name: wrong}
        assert tenant.refused(path, **body) == (400, f"invalid {name}")


def test_the_authentication_flow(tenant: Tenant) -> None:
    """The answer has the id of the group as instanceId, and its code is a string. An empty flow clears the flow."""
    group = add_group(tenant, "g")
    fields = {"domainId": tenant.domain, "groupId": group}
    answer = tenant.ask(AUTH_FLOW, authFlow="ssh, DID", **fields)
    assert answer == {"instanceId": group, "code": "200", "message": "authentication flow set"}
    assert row(tenant, "g")["authFlow"] == "SSH,DID"
    tenant.ask(AUTH_FLOW, authFlow="", **fields)
    assert row(tenant, "g")["authFlow"] == ""
    assert tenant.refused(AUTH_FLOW, authFlow="hunter2", **fields) == (400, "invalid authFlow")
    assert tenant.refused(AUTH_FLOW, **fields) == (400, "missing authFlow")
    assert tenant.refused(AUTH_FLOW, domainId=tenant.domain, groupId=10**9, authFlow="SSH") == NO_GROUP


def test_the_status(tenant: Tenant) -> None:
    """A status of 1 to 64 characters is stored as given. The group's detail shows it as `state`."""
    group = add_group(tenant, "g")
    fields = {"domainId": tenant.domain, "groupId": group}
    for status in ("Disabled", "x" * 64, "enabled"):
        answer = tenant.ask(STATUS, method="PUT", status=status, **fields)
        assert answer == {"status": "Success", "message": "group status updated"}
        assert tenant.ask(DETAIL, **fields)["state"] == status
    for wrong in ("", " ", "x" * 65, None, "a\nb", ["Active"]):
        assert tenant.refused(STATUS, method="PUT", status=wrong, **fields) == (400, "invalid status")
    assert tenant.refused(STATUS, method="PUT", domainId=tenant.domain, groupId=10**9, status="x") == NO_GROUP


def test_the_detail(tenant: Tenant) -> None:
    """The detail has the first instance of the group, or empty texts if there is none, and the list of all
    instances.
    """
    group = add_group(tenant, "g")
    fields = {"domainId": tenant.domain, "groupId": group}
    empty = {"instanceName": "", "os": "", "hostName": "", "privateIp": "", "publicIp": "", "state": "Active"}
    assert tenant.ask(DETAIL, **fields) == {**empty, "instances": []}
    first, second = add(tenant, "web", osId=1, publicIp="192.0.2.1", privateIp="10.0.0.1"), add(tenant, "mail")
    tenant.ask(EDIT[0], method="PUT", instanceIds=[second, first], **fields)
    described = {"instanceName": "web", "os": "Linux", "hostName": "", "privateIp": "10.0.0.1", "publicIp": "192.0.2.1"}
    answer = tenant.ask(DETAIL, **fields)
    instances = answer.pop("instances")
    assert answer == {**described, "state": "Active"}
    assert instances[0] == {"instanceId": first, **described, "status": "Inactive"}
    assert [each["instanceId"] for each in instances] == [first, second]
    assert tenant.refused(DETAIL, domainId=tenant.domain, groupId=10**9) == NO_GROUP


def test_the_credential_policy(world: World, tenant: Tenant) -> None:
    """The message has the id of the policy.

    An absent field keeps its value, and an empty one is cleared. A deletion without an id deletes the policy; an id
    must be that of the policy.
    """
    group = add_group(tenant, "g")
    fields = {"domainId": tenant.domain, "groupId": group}
    tenant.ask(ADD_PASSWORD_POLICY, policyName="p")
    policy = tenant.ask(LIST_PASSWORD_POLICY)["passwordPolicies"][0]["policyId"]
    said = {"ttlUser": "8h", "priviligedUser": "yes", "policyId": str(policy), "homeDir": "/home/staff"}
    answer = tenant.ask(SET_POLICY, method="PUT", **said, **fields)
    kept = row(tenant, "g")["credentialPolicy"]
    assert answer == {"code": 200, "message": f"credential policy {kept['credPolicyId']} was set"}
    assert kept == {"credPolicyId": kept["credPolicyId"], **said, "policyId": policy}
    for path in ("/home/staff/", "C:\\Users\\A B"):
        tenant.ask(SET_POLICY, method="PUT", homeDir=path, **fields)
        assert row(tenant, "g")["credentialPolicy"]["homeDir"] == path.rstrip("/")
    tenant.ask(SET_POLICY, method="PUT", ttlUser=3600, homeDir="", policyId="", **fields)
    after = row(tenant, "g")["credentialPolicy"]
    assert after == {**kept, "ttlUser": "3600", "homeDir": "", "policyId": None}
    other = world.tenant()
    other.ask(ADD_PASSWORD_POLICY, policyName="p")
    foreign = other.ask(LIST_PASSWORD_POLICY)["passwordPolicies"][0]["policyId"]
    for unknown in (foreign, 10**9):
        refusal = tenant.refused(SET_POLICY, method="PUT", policyId=unknown, **fields)
        assert refusal == (404, "password policy not found")
    wrong = {**fields, "credPolicyId": str(kept["credPolicyId"] + 1)}
    assert tenant.refused(DELETE_POLICY, method="DELETE", **wrong) == (404, "credential policy not found")
    for policy_id in (str(kept["credPolicyId"]), ""):
        answer = tenant.ask(DELETE_POLICY, method="DELETE", credPolicyId=policy_id, **fields)
        assert answer == {"code": 200, "message": "credential policy deleted"}
        assert row(tenant, "g")["credentialPolicy"] is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ttlUser", ["hunter2", "0", "-5", 1.5, True]), ("priviligedUser", ["hunter2", [], 2]),
        ("policyId", ["hunter2", "-1", True, {}]), ("homeDir", ["hunter2", "home/x", "/a/../b", "/a\nb", "C:\\..\\b"]),
        ("homeDir", ["/home/a:b", "/home/a b", "/home/ö", "/", "/a//b", "/" + 600 * "a"]),
    ],
)  # fmt: skip
def test_malformed_credential_policies(tenant: Tenant, name: str, values: list[Any]) -> None:
    """A malformed field is answered with 400 and nothing is stored. A body without any field is answered with 400
    too.
    """
    group = add_group(tenant, "g")
    fields = {"domainId": tenant.domain, "groupId": group}
    for value in values:
        answer = tenant.world.send("PUT", SET_POLICY, tenant.token, json=tenant.scoped(**fields, **{name: value}))
        assert problem(answer) == (400, f"invalid {name}")
        assert "hunter2" not in answer.text
    assert tenant.refused(SET_POLICY, method="PUT", **fields)[0] == 400
    assert tenant.refused(SET_POLICY, method="PUT", **{**fields, "groupId": 10**9}, ttlUser="1") == NO_GROUP
    assert row(tenant, "g")["credentialPolicy"] is None


def test_groups_are_in_the_audit_trail(tenant: Tenant) -> None:
    """Each change of a group has an audit entry with the name of the token."""
    group = add_group(tenant, "g")
    tenant.ask(STATUS, method="PUT", domainId=tenant.domain, groupId=group, status="Disabled")
    rows = tenant.world.service.rows(
        "select action, target, actor_kind from audit_trail where domain_id = ? and action like 'group.%' order by id",
        tenant.domain,
    )
    assert rows == [("group.add", f"group {group} g", "token"), ("group.update", f"group {group} g", "token")]
    assert PASSWORD not in str(rows)
