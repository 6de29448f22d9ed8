"""/api/v1/instances/addPasswordPolicy, listAllPasswordPolicy, updatePasswordPolicy, deletePasswordPolicy,
assignPolicyToMachine and validatePolicy."""

from typing import Any

import httpx
import pytest

from tests.api.world import Tenant, World, problem

ADD = "/api/v1/instances/addPasswordPolicy"
LIST = "/api/v1/instances/listAllPasswordPolicy"
LIST_TOO = "/api/v1/instances/listPasswordPolicy"
UPDATE = "/api/v1/instances/updatePasswordPolicy"
DELETE = "/api/v1/instances/deletePasswordPolicy"
ASSIGN = "/api/v1/instances/assignPolicyToMachine"
VALIDATE = "/api/v1/instances/validatePolicy"
VALIDATE_TOO = "/api/v1/instances/validatePassword"
NO_POLICY = (404, "policy not found")
NO_MACHINE = (404, "instance not found")
INTERFACE = {
    "policyName": "Strong", "templateName": "server", "minLen": "8", "maxLen": "16", "firstChar": "uppercase",
    "allowUpperLower": "yes", "allowSpecial": "yes", "allowNumeric": "yes",
}  # fmt: skip
LIBRARY = dict.fromkeys(
    ("minlen", "dcredit", "ucredit", "lcredit", "ocredit", "minclass", "maxrepeat", "maxclassrepeat", "maxsequence",
     "usercheck"),
    "",
)  # fmt: skip
MET = ["the password meets the policy"]
UNMET = (400, "the password does not meet the policy")


def send(tenant: Tenant, path: str, body: Any, method: str = "POST", token: str | None = None) -> httpx.Response:
    """An operation with any body: an array, or one object without orgId and tenantId."""
    return tenant.world.send(method, path, token or tenant.token, json=body)


def done(answer: httpx.Response) -> Any:
    """The answer of what must succeed."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def listed(tenant: Tenant, path: str = LIST, **fields: Any) -> list[dict[str, Any]]:
    """The policies of a tenant on one page."""
    answer = done(send(tenant, path, {"pageSize": 100, **fields}))
    assert answer.keys() == {"totalPolicies", "totalPages", "passwordPolicies"}
    policies: list[dict[str, Any]] = answer["passwordPolicies"]
    assert (answer["totalPolicies"], answer["totalPages"]) == (len(policies), int(bool(policies)))
    return policies


def add(tenant: Tenant, name: str = "p", **fields: Any) -> int:
    """A policy; its id."""
    answer = done(send(tenant, ADD, {"policyName": name, **fields}))
    policy = next(each for each in listed(tenant) if each["policyName"] == name)
    added = {"policyId": policy["policyId"], "message": f"password policy {policy['policyId']} is added"}
    assert answer == {"code": 200, **added}
    assert isinstance(policy["policyId"], int)
    return int(policy["policyId"])


def machine(tenant: Tenant, name: str = "web") -> int:
    """An endpoint machine of the tenant's domain; its id."""
    body = {"domainId": tenant.domain, "instanceName": name, "osId": 1, "publicIp": "", "privateIp": ""}
    return int(done(send(tenant, "/api/v1/instances/addInstance", body))["instanceId"])


def assign(tenant: Tenant, policy: int, *machines: int) -> None:
    """Assign a policy to machines."""
    answer = done(send(tenant, ASSIGN, [{"policyId": policy, "instanceId": each} for each in machines]))
    assert answer == {"code": 200, "message": "policy assignments updated"}


def refused_rules(answer: httpx.Response) -> list[str]:
    """The rules that a password does not meet, as the errors of the answer name them."""
    assert problem(answer) == UNMET
    errors = answer.json()["errors"]
    assert all(each.keys() == {"field", "message"} for each in errors)
    return [each["field"] for each in errors]


def test_the_fields_of_a_policy(tenant: Tenant) -> None:
    """As strings, as they were given; libpwquality's beside them; empty where nothing was."""
    first = add(tenant, "Strong", **{key: value for key, value in INTERFACE.items() if key != "policyName"})
    library = {
        "minlen": "12", "dcredit": "-1", "ucredit": "1", "lcredit": "0", "ocredit": "-2", "minclass": "3",
        "maxrepeat": "2", "maxclassrepeat": "4", "maxsequence": "3", "usercheck": "1",
    }  # fmt: skip
    given = {name: int(value) for name, value in library.items()} | {"usercheck": True}
    second = add(tenant, "pam", **given, minLen=8, templateName=7, allowSpecial=None)
    assert listed(tenant) == listed(tenant, LIST_TOO) == [
        {**INTERFACE, **LIBRARY, "policyId": first, "instanceIds": []},
        {
            **dict.fromkeys(INTERFACE, ""), **library, "instanceIds": [], "policyId": second, "policyName": "pam",
            "minLen": "8", "templateName": "7",
        },
    ]  # fmt: skip


def test_policies_are_paged(world: World, tenant: Tenant) -> None:
    """Ordered by id, 10 unless asked otherwise, with both totals; other tenants' never."""
    ids = [add(tenant, f"p{number}") for number in range(12)]
    add(world.tenant(), "theirs")
    pages = [done(send(tenant, LIST, {"pageId": page, "pageSize": "5"})) for page in (1, "2", 3, 4)]
    assert [each["policyId"] for page in pages for each in page["passwordPolicies"]] == ids
    assert {(page["totalPolicies"], page["totalPages"]) for page in pages} == {(12, 3)}
    default = done(send(tenant, LIST, {}))
    assert [len(default["passwordPolicies"]), default["totalPages"]] == [10, 2]
    assert done(send(tenant, LIST, {"pageSize": 1000, "pageId": 1, "machineIds": []}))["totalPages"] == 1
    for fields, text in (
        ({"pageId": 0}, "pageId"),
        ({"pageSize": 1001}, "pageSize"),
        ({"machineIds": "x"}, "machineIds"),
    ):
        assert problem(send(tenant, LIST, fields)) == (400, f"invalid {text}")
    assert done(send(world.tenant(), LIST, {})) == {"totalPolicies": 0, "totalPages": 0, "passwordPolicies": []}


def test_the_policies_of_machines(world: World, tenant: Tenant) -> None:
    """Those of any of the machines that are named, each once; another tenant's machine does not exist."""
    web, data = machine(tenant), machine(tenant, "data")
    one, two = add(tenant, "one"), add(tenant, "two")
    assign(tenant, one, web)
    assign(tenant, two, web, data)
    assert [each["policyId"] for each in listed(tenant, machineIds=[data])] == [two]
    assert [each["policyId"] for each in listed(tenant, machineIds=[str(data), web])] == [one, two]
    assert [each["policyId"] for each in listed(tenant, machineIds=web)] == [one, two]
    for machines in ([machine(world.tenant())], [web, 10**9], [0], [-1]):
        assert problem(send(tenant, LIST, {"machineIds": machines})) == NO_MACHINE


def test_a_policy_needs_a_name_of_its_own(world: World, tenant: Tenant) -> None:
    """None or an empty one is 400, one that is taken in any case is 409; another tenant may have it too."""
    add(tenant, "Strong")
    add(world.tenant(), "Strong")
    assert problem(send(tenant, ADD, {})) == (400, "missing policyName")
    for name in ("", None, [], True, "x" * 256, "a\nb"):
        assert problem(send(tenant, ADD, {"policyName": name})) == (400, "invalid policyName")
    assert problem(send(tenant, ADD, {"policyName": "STRONG"})) == (
        409, "the tenant has a password policy of this name",
    )  # fmt: skip
    assert len(listed(tenant)) == 1


@pytest.mark.parametrize(
    ("field", "values"),
    [
        *((name, ("hunter2", "-1", "1025", 1.5, True, [8])) for name in ("minLen", "maxLen", "minlen", "maxrepeat")),
        *((name, ("hunter2", "9999", {}, False)) for name in ("dcredit", "ucredit", "lcredit", "ocredit")),
        ("maxLen", ("0",)),
        ("minclass", ("hunter2", "5", -1)),
        *((name, ("hunter2", "-1")) for name in ("maxclassrepeat", "maxsequence")),
        ("firstChar", ("hunter2", "1", 1, True)),
        *((name, ("hunter2", "2", [])) for name in ("allowUpperLower", "allowSpecial", "allowNumeric", "usercheck")),
        ("templateName", ("x" * 256, ["t"])),
    ],
)
def test_malformed_fields_are_refused(tenant: Tenant, field: str, values: tuple[Any, ...]) -> None:
    """400 that names the field and never the value; nothing is kept, neither of a new policy nor of a changed one."""
    policy = add(tenant)
    for value in values:
        for path, body in ((ADD, {"policyName": "n", field: value}), (UPDATE, [{"policyId": policy, field: value}])):
            answer = send(tenant, path, body)
            assert problem(answer) == (400, f"invalid {field}")
            assert [each["field"].rpartition(".")[2] for each in answer.json()["errors"]] == [field]
            assert "hunter2" not in answer.text
    empty = {**dict.fromkeys(INTERFACE, ""), **LIBRARY, "instanceIds": []}
    assert listed(tenant) == [{**empty, "policyName": "p", "policyId": policy}]


def test_lengths_that_exclude_each_other(tenant: Tenant) -> None:
    """400 for a new policy and for what an update would make of one."""
    assert problem(send(tenant, ADD, {"policyName": "n", "minLen": "9", "maxLen": "8"})) == (400, "invalid maxLen")
    impossible = {"policyName": "n", "allowSpecial": "no", "ocredit": "-1", "minclass": "4"}
    assert problem(answer := send(tenant, ADD, impossible)) == (400, "invalid ocredit")
    assert [each["field"] for each in answer.json()["errors"]] == ["ocredit", "minclass"]
    policy = add(tenant, minLen="8", maxLen="8")
    assert problem(send(tenant, UPDATE, [{"policyId": policy, "minLen": "9"}])) == (400, "invalid maxLen")


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_an_update_keeps_and_clears(tenant: Tenant, method: str) -> None:
    """By both methods, in an array or alone: an absent field, null and an empty policyName keep the value, any other
    empty text clears it."""
    fields = {**INTERFACE, "dcredit": "-1"}
    one, two = add(tenant, "one"), add(tenant, **{**fields, "name": fields.pop("policyName")})
    body = [
        {"policyId": one, "policyName": "One", "minLen": "6"},
        {
            "policyId": str(two), "policyName": "Other", "minLen": "", "maxLen": None, "firstChar": "",
            "allowUpperLower": "no", "allowSpecial": "", "dcredit": "",
        },
    ]  # fmt: skip
    assert done(send(tenant, UPDATE, body, method)) == ["password policy updated"]
    first, second = listed(tenant)
    assert (first["policyName"], first["minLen"]) == ("One", "6")
    assert second == {
        **INTERFACE, **LIBRARY, "policyId": two, "policyName": "Other", "minLen": "", "firstChar": "",
        "allowUpperLower": "no", "allowSpecial": "", "instanceIds": [],
    }  # fmt: skip
    alone = {"policyId": two, **dict.fromkeys([*INTERFACE, *LIBRARY], "")}
    assert done(send(tenant, UPDATE, alone, method)) == ["password policy updated"]
    assert listed(tenant)[1] == {**alone, "policyName": "Other", "instanceIds": []}


@pytest.mark.parametrize(("path", "method"), [(UPDATE, "POST"), (UPDATE, "PUT"), (DELETE, "DELETE")])
def test_policies_that_are_not_there(world: World, tenant: Tenant, path: str, method: str) -> None:
    """Another tenant's does not exist; of several nothing is done; both stay as they are."""
    other = world.tenant()
    mine, theirs = add(tenant), add(other, "theirs")
    for wrong in (theirs, 10**9, 0, -1, str(theirs)):
        for body in ([{"policyId": mine, "minLen": "1"}, {"policyId": wrong}], {"policyId": wrong, "minLen": "1"}):
            assert problem(send(tenant, path, body, method)) == NO_POLICY
    assert problem(send(tenant, path, {}, method)) == (400, "missing policyId")
    for value in ("hunter2", None, True, 2**63, {}):
        assert problem(send(tenant, path, [{"policyId": value}], method)) == (400, "invalid policyId")
    for body in ([], [[]], ["x"], "x", 7, [{"policyId": mine}] * 1001):
        assert problem(send(tenant, path, body, method))[0] == 400
    assert [(each["policyName"], each["minLen"]) for each in (*listed(tenant), *listed(other))] == [
        ("p", ""), ("theirs", ""),
    ]  # fmt: skip


def test_policies_are_deleted(tenant: Tenant) -> None:
    """By an array or one object; the answer is what they were without their ids, each once; then they are gone."""
    one, two, three = add(tenant, "one"), add(tenant, "two", minLen="5"), add(tenant, "three", dcredit=1)
    web = machine(tenant)
    assign(tenant, two, web)
    empty = {**dict.fromkeys(INTERFACE, ""), **LIBRARY}
    assert done(send(tenant, DELETE, {"policyId": one}, "DELETE")) == [{**empty, "policyName": "one"}]
    body = [{"policyId": three}, {"policyId": str(two)}, {"policyId": three}]
    assert done(send(tenant, DELETE, body, "DELETE")) == [
        {**empty, "policyName": "three", "dcredit": "1"}, {**empty, "policyName": "two", "minLen": "5"},
    ]  # fmt: skip
    assert listed(tenant) == listed(tenant, machineIds=[web]) == []
    assert problem(send(tenant, DELETE, {"policyId": one}, "DELETE")) == NO_POLICY


def test_policies_are_assigned(world: World, tenant: Tenant) -> None:
    """By an array or one object, all or none, again too; taken off with `remove`."""
    web, data = machine(tenant), machine(tenant, "data")
    policy = add(tenant)
    other = world.tenant()
    assert done(send(tenant, ASSIGN, {"policyId": policy, "instanceId": str(web)})) == {
        "code": 200, "message": "policy assignments updated",
    }  # fmt: skip
    assign(tenant, policy, web, data, web)
    assert listed(tenant)[0]["instanceIds"] == [web, data]
    remove = [{"policyId": policy, "instanceId": each, "action": "Remove"} for each in (web, web)]
    done(send(tenant, ASSIGN, remove))
    assert (listed(tenant, machineIds=[web]), len(listed(tenant, machineIds=[data]))) == ([], 1)
    for wrong in (machine(other), 10**9, 0, -1):
        body = [{"policyId": policy, "instanceId": web}, {"policyId": policy, "instanceId": wrong}]
        assert problem(send(tenant, ASSIGN, body)) == NO_MACHINE
    for unknown in (add(other, "theirs"), 10**9):
        body = [{"policyId": policy, "instanceId": web}, {"policyId": unknown, "instanceId": web}]
        assert problem(send(tenant, ASSIGN, body)) == NO_POLICY
    assert listed(tenant, machineIds=[web]) == []


def test_malformed_assignments(tenant: Tenant) -> None:
    """What is missing or of another type is named."""
    for body, text in (
        ({"policyId": 1}, "missing instanceId"),
        ({"instanceId": 1}, "missing policyId"),
        ([{"policyId": 1, "instanceId": "hunter2"}], "invalid instanceId"),
        ([{"policyId": True, "instanceId": 1}], "invalid policyId"),
        ({"policyId": 1, "instanceId": 1, "action": "hunter2"}, "invalid action"),
        ([], "invalid body"),
    ):
        assert problem(send(tenant, ASSIGN, body)) == (400, text)


@pytest.mark.parametrize("path", [VALIDATE, VALIDATE_TOO])
def test_a_password_is_validated(tenant: Tenant, path: str) -> None:
    """A success text in an array, or 400 with every rule that it fails; the guidance holds where no policy does."""
    web = machine(tenant)
    assert done(send(tenant, path, {"machineId": str(web), "password": "Abcdef1x"})) == MET
    assert refused_rules(send(tenant, path, {"machineId": web, "password": "hunter"})) == ["minlen", "minclass"]
    strict = add(tenant, "strict", minLen="10", firstChar="uppercase", allowSpecial="no", dcredit="-2")
    other = add(tenant, "other", usercheck="yes", minLen="10")
    assign(tenant, strict, web)
    assign(tenant, other, web)
    assert done(send(tenant, path, {"machineId": str(web), "password": "Xabcdefg12"})) == MET
    body = {"machineId": str(web), "password": "hunter-2", "userName": "HUNTER"}
    answer = send(tenant, path, body)
    assert refused_rules(answer) == ["minLen", "firstChar", "allowSpecial", "dcredit", "usercheck"]
    assert answer.json()["errors"][0] == {"field": "minLen", "message": "the password has fewer than 10 characters"}
    assert "hunter" not in answer.text.lower()
    assert refused_rules(send(tenant, path, {"machineId": web, "password": 1234567890})) == ["firstChar"]


def test_what_cannot_be_validated(world: World, tenant: Tenant) -> None:
    """Another tenant's machine is 404; no password or machine, or what is none, is 400; no value is repeated."""
    web = machine(tenant)
    for wrong in (machine(world.tenant()), "1000000000", 0, -1):
        assert problem(send(tenant, VALIDATE, {"machineId": wrong, "password": "Abcdef1x"})) == NO_MACHINE
    assert problem(send(tenant, VALIDATE, {"password": "x"})) == (400, "missing machineId")
    assert problem(send(tenant, VALIDATE, {"machineId": web})) == (400, "missing password")
    for machine_id in ("hunter2", "", None, True, 2**63, [web]):
        answer = send(tenant, VALIDATE, {"machineId": machine_id, "password": "hunter2"})
        assert problem(answer) == (400, "invalid machineId") and "hunter2" not in answer.text
    for password in (None, True, ["hunter2"], "hunter2\0", "hunter2" * 200):
        answer = send(tenant, VALIDATE, {"machineId": web, "password": password})
        assert problem(answer) == (400, "invalid password") and "hunter2" not in answer.text
    assert refused_rules(send(tenant, VALIDATE, {"machineId": web, "password": ""})) == ["empty"]


def test_policies_reach_the_users_of_machines(tenant: Tenant) -> None:
    """A password of a user who is assigned to a machine meets its policies; nobody else's is looked at."""
    web = machine(tenant)
    assign(tenant, add(tenant, minLen="12"), web)
    body = {"domainId": tenant.domain, "userName": "bob", "userType": "Local", "credType": "Password"}
    users = "/api/v1/endpointUsers"
    user = int(done(send(tenant, f"{users}/addEpmUserInfo", {**body, "password": "short"}))["userId"])
    done(send(tenant, "/api/v1/instances/assignUsersToMachines", {
        "instanceIds": [web], "domainId": tenant.domain, "userIds": [user], "action": "add",
    }))  # fmt: skip
    change = {"domainId": tenant.domain, "userId": user}
    assert refused_rules(send(tenant, f"{users}/updateEpmUserInfo", {**change, "password": "hunter2"}, "PUT")) == [
        "minLen"
    ]
    done(send(tenant, f"{users}/updateEpmUserInfo", {**change, "password": "long enough now"}, "PUT"))


def test_every_change_is_in_the_trail(tenant: Tenant) -> None:
    """Who made it with which token is there for each, and no password that was validated."""
    web, policy = machine(tenant), add(tenant, minLen="4")
    assign(tenant, policy, web)
    done(send(tenant, UPDATE, {"policyId": policy, "minLen": "5"}))
    send(tenant, VALIDATE, {"machineId": web, "password": "hunter2"})
    done(send(tenant, DELETE, {"policyId": policy}, "DELETE"))
    trail = done(send(tenant, "/api/v1/audit/list", {"pageSize": 100}))
    actions = [each["action"] for each in trail["entries"] if each["action"].startswith("policy.")]
    assert sorted(actions) == ["policy.add", "policy.assign", "policy.delete", "policy.update"]
    assert "hunter2" not in str(trail)
