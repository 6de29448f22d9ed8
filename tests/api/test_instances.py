"""/api/v1/instances/: list, addInstance, updateAuthType, deleteInstance, and the assignments of users and groups."""

from typing import Any

import pytest

from tests.api.world import Tenant, World, problem

LIST = "/api/v1/instances/list"
ADD = "/api/v1/instances/addInstance"
AUTH_TYPE = "/api/v1/instances/updateAuthType"
DELETE = "/api/v1/instances/deleteInstance"
ASSIGN_USERS = "/api/v1/instances/assignUsersToMachines"
ASSIGN_GROUPS = "/api/v1/instances/assignGroupToMachines"
ADD_GROUP = "/api/v1/instanceGroup/addInstanceGroup"
ADD_USER = "/api/v1/endpointUsers/addEpmUserInfo"
NO_INSTANCE = (404, "instance not found")


def add(tenant: Tenant, name: str, **fields: Any) -> int:
    """Add an instance and return its id."""
    return int(tenant.ask(ADD, domainId=tenant.domain, instanceName=name, **fields)["instanceId"])


def add_user(tenant: Tenant, name: str) -> int:
    """Add a user and return its id."""
    return int(tenant.ask(ADD_USER, domainId=tenant.domain, userName=name)["userId"])


def add_group(tenant: Tenant, name: str) -> int:
    """Add a group and return its id."""
    group_id: int = tenant.ask(ADD_GROUP, domainId=tenant.domain, groupName=name)["instanceId"]
    return group_id


def listed(tenant: Tenant, **fields: Any) -> dict[str, dict[str, Any]]:
    """Return the matching instances by name."""
    answer = tenant.ask(LIST, domainId=tenant.domain, **fields)
    return {each["instanceName"]: each for each in answer["instances"]}


def test_the_answer_of_adding(tenant: Tenant) -> None:
    """The answer has exactly the documented fields, and the id is a string."""
    answer = tenant.ask(ADD, domainId=tenant.domain, instanceName="web", osId=1, publicIp="192.0.2.1", privateIp="::1")
    instance_id = answer.pop("instanceId")
    assert isinstance(instance_id, str) and int(instance_id) > 0
    assert answer == {"code": 200, "message": "instance added"}


def test_an_instance_is_deleted(world: World, tenant: Tenant) -> None:
    """A deleted instance is in no list, its assignments are gone, and its name is free. An instance of another tenant
    or an unknown one is answered with 404.
    """
    instance, user = add(tenant, "web"), add_user(tenant, "bob")
    tenant.ask(ASSIGN_USERS, domainId=tenant.domain, instanceIds=[instance], userIds=[user], action="add")
    theirs = add(world.tenant(), "web")
    answer = tenant.ask(DELETE, method="DELETE", domainId=tenant.domain, instanceId=instance)
    assert answer == {"code": 200, "message": "instance deleted"}
    assert listed(tenant) == {}
    for unknown in (instance, theirs):
        assert tenant.refused(DELETE, method="DELETE", domainId=tenant.domain, instanceId=unknown) == NO_INSTANCE
    assert add(tenant, "web") != instance


@pytest.mark.parametrize(
    ("given", "shown"),
    [("2001:DB8:0::7", "2001:db8::7"), ("::ffff:192.0.2.7", "192.0.2.7")],
    ids=["IPv6", "IPv4-mapped"],
)
def test_an_address_is_shown_in_canonical_form(tenant: Tenant, given: str, shown: str) -> None:
    """publicIp and privateIp accept any form of an address. add-machine names a machine without a name after the
    canonical form.
    """
    add(tenant, "web", publicIp=given, privateIp=given)
    tenant.ask("/api/v1/machine/add-machine", domainId=tenant.domain, osId=1, privateIpAddress=given)
    found = listed(tenant)
    assert [found["web"][name] for name in ("publicIp", "privateIp")] == [shown, shown]
    assert found[shown]["privateIp"] == shown


def test_both_spellings_of_the_body(tenant: Tenant) -> None:
    """Field names in camel case and with underscores add the same instance."""
    add(tenant, "a", osId=2, publicIp="192.0.2.1", privateIp="10.0.0.1")
    fields = {"instance_name": "b", "os_id": "2", "public_ip": " 192.0.2.1 ", "private_ip": "10.0.0.1"}
    body = {"domain_id": tenant.domain, **fields}
    assert tenant.world.post(ADD, tenant.token, json=body).status_code == 200
    own = ("instanceId", "instanceName", "created", "updated")
    first, second = ({name: row[name] for name in row.keys() - own} for row in map(listed(tenant).get, "ab") if row)
    assert first == second
    foreign = tenant.world.tenant().domain
    answer = tenant.world.post(ADD, tenant.token, json={**body, "domain_id": foreign})
    assert problem(answer) == (403, "domain not in tenant")


def test_the_list(tenant: Tenant) -> None:
    """Entries have exactly the documented fields and types, and the requested group or 0. orgId and tenantId may be
    omitted.
    """
    instance_id = add(tenant, "web", osId=1, publicIp="192.0.2.1")
    answer = tenant.world.post(LIST, tenant.token, json={"domainId": str(tenant.domain)}).json()
    times = {name: answer["instances"][0].pop(name) for name in ("created", "updated")}
    assert times["created"] == times["updated"]
    assert answer == {
        "domainId": tenant.domain, "groupId": 0, "totalCount": 1,
        "instances": [
            {
                "totalUsers": 0, "instanceName": "web", "osName": "Linux", "publicIp": "192.0.2.1", "privateIp": "",
                "hostName": "", "status": "Inactive", "instanceId": instance_id, "totalGroups": 0,
                "osId": 1, "authType": "",
            }
        ],
    }  # fmt: skip
    group = add_group(tenant, "g")
    answer = tenant.ask(LIST, domainId=tenant.domain, groupId=group)
    assert answer == {"domainId": tenant.domain, "groupId": group, "totalCount": 0, "instances": []}
    assert tenant.refused(LIST, domainId=tenant.domain, groupId=group + 10**6) == (404, "group not found")


@pytest.mark.parametrize(
    ("os_id", "name"), [(1, "Linux"), (2, "Windows"), (3, "macOS"), (4, "Network device"), (77, "Unknown")]
)
def test_operating_systems(tenant: Tenant, os_id: int, name: str) -> None:
    """The operating system is given as a number. An unknown number is stored and shown as Unknown."""
    add(tenant, "x", osId=os_id)
    assert listed(tenant)["x"]["osName"] == name


def test_the_list_is_filtered_and_paged(tenant: Tenant) -> None:
    """A filter matches a part of the name or address.

    Entries are ordered by id. A page has 10 entries by default and at most 1000.
    """
    for number in range(12):
        add(tenant, f"web-{number:02}", publicIp=f"192.0.2.{number}")
    assert list(listed(tenant)) == [f"web-{number:02}" for number in range(10)]
    assert list(listed(tenant, pageId=2)) == ["web-10", "web-11"]
    assert list(listed(tenant, pageId="3", pageSize="5")) == ["web-10", "web-11"]
    assert list(listed(tenant, filter="B-1")) == ["web-10", "web-11"]
    assert list(listed(tenant, filter="2.0.2.7")) == ["web-07"]
    assert tenant.ask(LIST, domainId=tenant.domain, pageSize=1)["totalCount"] == 12
    for field, value in (("pageId", 0), ("pageSize", 0), ("pageSize", 1001), ("pageId", "x")):
        assert tenant.refused(LIST, domainId=tenant.domain, **{field: value}) == (400, f"invalid {field}")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "missing instanceName"), ({"instanceName": ""}, "invalid instanceName"),
        ({"instanceName": "  "}, "invalid instanceName"),
        ({"instanceName": "hunter2\n"}, "invalid instanceName"), ({"instanceName": "x" * 256}, "invalid instanceName"),
        ({"instanceName": "x", "osId": "hunter2"}, "invalid osId"),
        ({"instanceName": "x", "osId": True}, "invalid osId"),
        ({"instanceName": "x", "publicIp": "hunter2"}, "invalid publicIp"),
        ({"instanceName": "x", "private_ip": "10.0.0.256"}, "invalid private_ip"),
        ({"instanceName": ["x"]}, "invalid instanceName"),
    ],
)  # fmt: skip
def test_malformed_instances(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """A malformed instance is answered with 400. The message names the field but not its value."""
    answer = tenant.world.post(ADD, tenant.token, json=tenant.scoped(domainId=tenant.domain, **fields))
    assert problem(answer) == (400, text)
    assert "hunter2" not in answer.text
    assert listed(tenant) == {}


def test_a_name_is_taken_once(tenant: Tenant) -> None:
    """A name is unique in a domain, in any letter case. A domain of another tenant may have the same name."""
    add(tenant, "Web")
    assert tenant.refused(ADD, domainId=tenant.domain, instanceName="WEB")[0] == 409
    add(tenant.world.tenant(), "web")


def test_the_authentication_type(tenant: Tenant) -> None:
    """Any combination of methods is accepted in any letter case, and each method is stored once. Unknown methods are
    refused. The answer is a text.
    """
    instance = add(tenant, "web")
    for given in ("SSH", "ssh, did,PASSWORD", "DID,DID", ""):
        answer = tenant.ask(AUTH_TYPE, method="PUT", domainId=tenant.domain, instanceId=instance, authType=given)
        assert answer == "Auth Type Updated"
    rows = tenant.world.service.instances(str(tenant.domain))
    assert rows[0]["authType"] == ""
    tenant.ask(AUTH_TYPE, method="PUT", domainId=tenant.domain, instanceId=instance, authType="did,ssh,did")
    assert tenant.world.service.instances(str(tenant.domain))[0]["authType"] == "DID,SSH"
    for wrong in ("hunter2", "SSH;DID", "SSH,", 1, ["SSH"], None):
        fields = {"domainId": tenant.domain, "instanceId": instance, "authType": wrong}
        assert tenant.refused(AUTH_TYPE, method="PUT", **fields) == (400, "invalid authType")
    fields = {"domainId": tenant.domain, "authType": "SSH"}
    assert tenant.refused(AUTH_TYPE, method="PUT", **fields) == (400, "missing instanceId")
    foreign = add(tenant.world.tenant(), "web")
    for unknown in (foreign, 10**9, -1, 0):
        assert tenant.refused(AUTH_TYPE, method="PUT", instanceId=unknown, **fields) == NO_INSTANCE


def test_users_of_machines(tenant: Tenant) -> None:
    """Each of the users is added to each of the machines, or removed from it.

    A repeated request succeeds, and the answer has only code and message.
    """
    machines, users = [add(tenant, name) for name in "ab"], [add_user(tenant, name) for name in ("bob", "carl")]
    fields = {"domainId": tenant.domain, "instanceIds": machines, "userIds": users}
    for _ in range(2):
        assert tenant.ask(ASSIGN_USERS, action="add", **fields) == {"code": 200, "message": "users assigned"}
        assert [each["totalUsers"] for each in listed(tenant).values()] == [2, 2]
    for _ in range(2):
        one = {**fields, "userIds": str(users[0]), "instanceIds": machines[1]}
        assert tenant.ask(ASSIGN_USERS, actions="REMOVE", **one) == {"code": 200, "message": "users removed"}
        assert [each["totalUsers"] for each in listed(tenant).values()] == [2, 1]


def test_groups_of_machines(tenant: Tenant) -> None:
    """Groups are assigned like users. `action` and `actions` are the same field."""
    machines, groups = [add(tenant, name) for name in "ab"], [add_group(tenant, name) for name in "gh"]
    fields = {"domainId": tenant.domain, "instanceId": machines, "groupId": groups}
    for _ in range(2):
        answer = tenant.ask(ASSIGN_GROUPS, method="PUT", actions="add", **fields)
        assert answer == {"code": 200, "message": "groups assigned"}
        assert [each["totalGroups"] for each in listed(tenant).values()] == [2, 2]
    assert list(listed(tenant, groupId=groups[1])) == ["a", "b"]
    one = {**fields, "groupId": groups[1], "instanceId": machines[0]}
    answer = tenant.ask(ASSIGN_GROUPS, method="PUT", action="remove", **one)
    assert answer == {"code": 200, "message": "groups removed"}
    assert list(listed(tenant, groupId=groups[1])) == ["b"]


def test_assignments_stay_in_the_domain(world: World, tenant: Tenant) -> None:
    """An instance, user or group of another tenant or domain is answered with 404, and then the request assigns
    nothing.
    """
    other = world.tenant()
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    machine, user, group = add(tenant, "a"), add_user(tenant, "bob"), add_group(tenant, "g")
    theirs = add(other, "a"), add_user(other, "bob"), add_group(other, "g")
    elsewhere = int(tenant.ask(ADD, domainId=branch, instanceName="a")["instanceId"])
    for machines, users, text in (
        ([machine, theirs[0]], [user], "instance not found"), ([machine, elsewhere], [user], "instance not found"),
        ([machine], [user, theirs[1]], "user not found"), ([machine], [user, 10**9], "user not found"),
    ):  # fmt: skip
        fields = {"domainId": tenant.domain, "instanceIds": machines, "userIds": users, "action": "add"}
        assert tenant.refused(ASSIGN_USERS, **fields) == (404, text)
    for machines, groups, text in (
        ([machine, theirs[0]], [group], "instance not found"), ([machine], [group, theirs[2]], "group not found"),
    ):  # fmt: skip
        fields = {"domainId": tenant.domain, "instanceId": machines, "groupId": groups, "action": "add"}
        assert tenant.refused(ASSIGN_GROUPS, method="PUT", **fields) == (404, text)
    row = listed(tenant)["a"]
    assert (row["totalUsers"], row["totalGroups"]) == (0, 0)


@pytest.mark.parametrize("name", ["instanceIds", "userIds", "action"])
def test_malformed_assignments(tenant: Tenant, name: str) -> None:
    """A missing or malformed field is answered with 400, and the message names it."""
    good = {"domainId": tenant.domain, "instanceIds": [1], "userIds": [1], "action": "add"}
    missing = {key: value for key, value in good.items() if key != name}
    assert tenant.refused(ASSIGN_USERS, **missing) == (400, f"missing {name}")
    for wrong in ("hunter2", [], [True], None, {}, ["x"]):
        assert tenant.refused(ASSIGN_USERS, **{**good, name: wrong}) == (400, f"invalid {name}")


def test_a_request_is_bounded(tenant: Tenant) -> None:
    """Too many assignments in one request are answered with 400."""
    fields = {"domainId": tenant.domain, "instanceIds": list(range(1, 1001)), "userIds": list(range(1, 1001))}
    status, text = tenant.refused(ASSIGN_USERS, action="add", **fields)
    assert (status, text) == (400, "one request changes at most 2000 assignments: send several requests")
