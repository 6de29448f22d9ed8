"""Password policies: add, list, update, delete, assign to machines, and validate."""

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
    """Send any body: an array, or an object to which orgId and tenantId are not added."""
    return tenant.world.send(method, path, token or tenant.token, json=body)


def succeeded(answer: httpx.Response) -> Any:
    """Return the answer of a request, which must succeed."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def listed(tenant: Tenant, path: str = LIST, **fields: Any) -> list[dict[str, Any]]:
    """Return the policies of a tenant on one page."""
    answer = succeeded(send(tenant, path, {"pageSize": 100, **fields}))
    assert answer.keys() == {"totalPolicies", "totalPages", "passwordPolicies"}
    policies: list[dict[str, Any]] = answer["passwordPolicies"]
    assert (answer["totalPolicies"], answer["totalPages"]) == (len(policies), int(bool(policies)))
    return policies


def add(tenant: Tenant, name: str = "p", **fields: Any) -> int:
    """Add a policy and return its id."""
    answer = succeeded(send(tenant, ADD, {"policyName": name, **fields}))
    policy = next(each for each in listed(tenant) if each["policyName"] == name)
    added = {"policyId": policy["policyId"], "message": f"password policy {policy['policyId']} was added"}
    assert isinstance(answer.pop("warnings"), list)
    assert answer == {"code": 200, **added}
    assert isinstance(policy["policyId"], int)
    return int(policy["policyId"])


@pytest.mark.parametrize(
    ("fields", "is_empty"),
    [
        ({}, True),
        ({"minLength": 12}, True),
        ({"minLen": "", "allowSpecial": "yes", "templateName": "t"}, True),
        ({"minLen": 0}, True),
        ({"minLen": 12}, False),
        ({"allowSpecial": "no"}, False),
        ({"minclass": 3}, False),
    ],
)
def test_a_policy_without_a_rule_has_a_warning(tenant: Tenant, fields: dict[str, Any], is_empty: bool) -> None:
    """A policy that accepts every password is added with a warning that lists the rules."""
    answer = succeeded(send(tenant, ADD, {"policyName": "p", **fields}))
    found = [warning.partition(";")[0] for warning in answer["warnings"]]
    assert found == ["the policy has no rule, so it accepts every password"] * is_empty
    assert all("minLen, maxLen, firstChar" in warning for warning in answer["warnings"])


def machine(tenant: Tenant, name: str = "web") -> int:
    """Add an endpoint machine to the tenant's domain and return its id."""
    body = {"domainId": tenant.domain, "instanceName": name, "osId": 1, "publicIp": "", "privateIp": ""}
    return int(succeeded(send(tenant, "/api/v1/instances/addInstance", body))["instanceId"])


def assign(tenant: Tenant, policy: int, *machines: int) -> None:
    """Assign a policy to machines."""
    answer = succeeded(send(tenant, ASSIGN, [{"policyId": policy, "instanceId": each} for each in machines]))
    assert answer == {"code": 200, "message": "policy assignments updated"}


def refused_rules(answer: httpx.Response) -> list[str]:
    """Return the violated rules that the errors of the answer name."""
    assert problem(answer) == UNMET
    errors = answer.json()["errors"]
    assert all(each.keys() == {"field", "message"} for each in errors)
    return [each["field"] for each in errors]


def test_the_fields_of_a_policy(tenant: Tenant) -> None:
    """Values are returned as the strings that were given, together with libpwquality's names. Other fields are
    empty.
    """
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
    """Policies are ordered by id, with 10 on a page by default. The list has the number of policies and of pages. It
    has no policy of another tenant.
    """
    ids = [add(tenant, f"p{number}") for number in range(12)]
    add(world.tenant(), "theirs")
    pages = [succeeded(send(tenant, LIST, {"pageId": page, "pageSize": "5"})) for page in (1, "2", 3, 4)]
    assert [each["policyId"] for page in pages for each in page["passwordPolicies"]] == ids
    assert {(page["totalPolicies"], page["totalPages"]) for page in pages} == {(12, 3)}
    default = succeeded(send(tenant, LIST, {}))
    assert [len(default["passwordPolicies"]), default["totalPages"]] == [10, 2]
    assert succeeded(send(tenant, LIST, {"pageSize": 1000, "pageId": 1, "machineIds": []}))["totalPages"] == 1
    for fields, text in (
        ({"pageId": 0}, "pageId"),
        ({"pageSize": 1001}, "pageSize"),
        ({"machineIds": "x"}, "machineIds"),
    ):
        assert problem(send(tenant, LIST, fields)) == (400, f"invalid {text}")
    assert succeeded(send(world.tenant(), LIST, {})) == {"totalPolicies": 0, "totalPages": 0, "passwordPolicies": []}


def test_the_policies_of_machines(world: World, tenant: Tenant) -> None:
    """The list can be restricted to machines. Each policy is listed once. A machine of another tenant is answered with
    404.
    """
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
    """A missing or empty name is answered with 400. A name that is taken in any letter case is answered with 409.
    Another tenant may have the same name.
    """
    add(tenant, "Strong")
    add(world.tenant(), "Strong")
    assert problem(send(tenant, ADD, {})) == (400, "missing policyName")
    for name in ("", None, [], True, "x" * 256, "a\nb"):
        assert problem(send(tenant, ADD, {"policyName": name})) == (400, "invalid policyName")
    assert problem(send(tenant, ADD, {"policyName": "STRONG"})) == (
        409, "the tenant already has a password policy with this name: choose another name",
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
    """A malformed field is answered with 400 and its value is not repeated. Neither a new policy nor a change is
    stored.
    """
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
    """Contradicting lengths are answered with 400, both in a new policy and as the result of an update."""
    assert problem(send(tenant, ADD, {"policyName": "n", "minLen": "9", "maxLen": "8"})) == (400, "invalid maxLen")
    impossible = {"policyName": "n", "allowSpecial": "no", "ocredit": "-1", "minclass": "4"}
    assert problem(answer := send(tenant, ADD, impossible)) == (400, "invalid ocredit")
    assert [each["field"] for each in answer.json()["errors"]] == ["ocredit", "minclass"]
    policy = add(tenant, minLen="8", maxLen="8")
    assert problem(send(tenant, UPDATE, [{"policyId": policy, "minLen": "9"}])) == (400, "invalid maxLen")


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_an_update_keeps_and_clears(tenant: Tenant, method: str) -> None:
    """Both methods accept an array or one object. An absent field, null and an empty policyName keep the value. Any
    other empty text clears it.
    """
    fields = {**INTERFACE, "dcredit": "-1"}
    one, two = add(tenant, "one"), add(tenant, **{**fields, "name": fields.pop("policyName")})
    body = [
        {"policyId": one, "policyName": "One", "minLen": "6"},
        {
            "policyId": str(two), "policyName": "Other", "minLen": "", "maxLen": None, "firstChar": "",
            "allowUpperLower": "no", "allowSpecial": "", "dcredit": "",
        },
    ]  # fmt: skip
    assert succeeded(send(tenant, UPDATE, body, method)) == ["password policy updated"]
    first, second = listed(tenant)
    assert (first["policyName"], first["minLen"]) == ("One", "6")
    assert second == {
        **INTERFACE, **LIBRARY, "policyId": two, "policyName": "Other", "minLen": "", "firstChar": "",
        "allowUpperLower": "no", "allowSpecial": "", "instanceIds": [],
    }  # fmt: skip
    alone = {"policyId": two, **dict.fromkeys([*INTERFACE, *LIBRARY], "")}
    assert succeeded(send(tenant, UPDATE, alone, method)) == ["password policy updated"]
    assert listed(tenant)[1] == {**alone, "policyName": "Other", "instanceIds": []}


@pytest.mark.parametrize(("path", "method"), [(UPDATE, "POST"), (UPDATE, "PUT"), (DELETE, "DELETE")])
def test_another_tenants_policies(world: World, tenant: Tenant, path: str, method: str) -> None:
    """A policy of another tenant is answered with 404, and the request then changes no policy."""
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
    """An array or one object deletes policies. The answer lists each deleted policy once, without its id."""
    one, two, three = add(tenant, "one"), add(tenant, "two", minLen="5"), add(tenant, "three", dcredit=1)
    web = machine(tenant)
    assign(tenant, two, web)
    empty = {**dict.fromkeys(INTERFACE, ""), **LIBRARY}
    assert succeeded(send(tenant, DELETE, {"policyId": one}, "DELETE")) == [{**empty, "policyName": "one"}]
    body = [{"policyId": three}, {"policyId": str(two)}, {"policyId": three}]
    assert succeeded(send(tenant, DELETE, body, "DELETE")) == [
        {**empty, "policyName": "three", "dcredit": "1"}, {**empty, "policyName": "two", "minLen": "5"},
    ]  # fmt: skip
    assert listed(tenant) == listed(tenant, machineIds=[web]) == []
    assert problem(send(tenant, DELETE, {"policyId": one}, "DELETE")) == NO_POLICY


def test_policies_are_assigned(world: World, tenant: Tenant) -> None:
    """An array or one object assigns policies.

    If one policy or machine is unknown, nothing is assigned. A repeated request succeeds, and `remove` ends the
    assignment.
    """
    web, data = machine(tenant), machine(tenant, "data")
    policy = add(tenant)
    other = world.tenant()
    assert succeeded(send(tenant, ASSIGN, {"policyId": policy, "instanceId": str(web)})) == {
        "code": 200, "message": "policy assignments updated",
    }  # fmt: skip
    assign(tenant, policy, web, data, web)
    assert listed(tenant)[0]["instanceIds"] == [web, data]
    remove = [{"policyId": policy, "instanceId": each, "action": "Remove"} for each in (web, web)]
    succeeded(send(tenant, ASSIGN, remove))
    assert (listed(tenant, machineIds=[web]), len(listed(tenant, machineIds=[data]))) == ([], 1)
    for wrong in (machine(other), 10**9, 0, -1):
        body = [{"policyId": policy, "instanceId": web}, {"policyId": policy, "instanceId": wrong}]
        assert problem(send(tenant, ASSIGN, body)) == NO_MACHINE
    for unknown in (add(other, "theirs"), 10**9):
        body = [{"policyId": policy, "instanceId": web}, {"policyId": unknown, "instanceId": web}]
        assert problem(send(tenant, ASSIGN, body)) == NO_POLICY
    assert listed(tenant, machineIds=[web]) == []


def test_malformed_assignments(tenant: Tenant) -> None:
    """The error for a missing field, or for a field of another type, names it."""
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
    """For a valid password the answer is an array with a success text.

    An invalid one is answered with 400, and the errors name each violated rule. Without a policy the default guidance
    applies.
    """
    web = machine(tenant)
    assert succeeded(send(tenant, path, {"machineId": str(web), "password": "Abcdef1x"})) == MET
    assert refused_rules(send(tenant, path, {"machineId": web, "password": "hunter"})) == ["minlen", "minclass"]
    strict = add(tenant, "strict", minLen="10", firstChar="uppercase", allowSpecial="no", dcredit="-2")
    other = add(tenant, "other", usercheck="yes", minLen="10")
    assign(tenant, strict, web)
    assign(tenant, other, web)
    assert succeeded(send(tenant, path, {"machineId": str(web), "password": "Xabcdefg12"})) == MET
    body = {"machineId": str(web), "password": "hunter-2", "userName": "HUNTER"}
    answer = send(tenant, path, body)
    assert refused_rules(answer) == ["minLen", "firstChar", "allowSpecial", "dcredit", "usercheck"]
    assert answer.json()["errors"][0] == {"field": "minLen", "message": "the password has fewer than 10 characters"}
    assert "hunter" not in answer.text.lower()
    assert refused_rules(send(tenant, path, {"machineId": web, "password": 1234567890})) == ["firstChar"]


def test_malformed_validations(world: World, tenant: Tenant) -> None:
    """A machine of another tenant is answered with 404. A missing or malformed password or machine is answered with
    400. No value is repeated.
    """
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
    """A user's password must meet the policies of the machines to which the user is assigned.

    Passwords of other users are not checked.
    """
    web = machine(tenant)
    assign(tenant, add(tenant, minLen="12"), web)
    body = {"domainId": tenant.domain, "userName": "bob", "userType": "Local", "credType": "Password"}
    users = "/api/v1/endpointUsers"
    user = int(succeeded(send(tenant, f"{users}/addEpmUserInfo", {**body, "password": "short"}))["userId"])
    succeeded(send(tenant, "/api/v1/instances/assignUsersToMachines", {
        "instanceIds": [web], "domainId": tenant.domain, "userIds": [user], "action": "add",
    }))  # fmt: skip
    change = {"domainId": tenant.domain, "userId": user}
    assert refused_rules(send(tenant, f"{users}/updateEpmUserInfo", {**change, "password": "hunter2"}, "PUT")) == [
        "minLen"
    ]
    succeeded(send(tenant, f"{users}/updateEpmUserInfo", {**change, "password": "long enough now"}, "PUT"))


def test_every_change_is_in_the_trail(tenant: Tenant) -> None:
    """Each change has an audit entry with the name of the token. No entry contains a validated password."""
    web, policy = machine(tenant), add(tenant, minLen="4")
    assign(tenant, policy, web)
    succeeded(send(tenant, UPDATE, {"policyId": policy, "minLen": "5"}))
    send(tenant, VALIDATE, {"machineId": web, "password": "hunter2"})
    succeeded(send(tenant, DELETE, {"policyId": policy}, "DELETE"))
    trail = succeeded(send(tenant, "/api/v1/audit/list", {"pageSize": 100}))
    actions = [each["action"] for each in trail["entries"] if each["action"].startswith("policy.")]
    assert sorted(actions) == ["policy.add", "policy.assign", "policy.delete", "policy.update"]
    assert "hunter2" not in str(trail)


def test_a_password_is_validated_against_a_policy(world: World, tenant: Tenant) -> None:
    """A policy can be tried before it is assigned to a machine. With both, the password must meet all policies. A
    policy of another tenant does not exist."""
    policy, web = add(tenant, minLen="12"), machine(tenant)
    assert succeeded(send(tenant, VALIDATE, {"policyId": policy, "password": "a" * 12})) == MET
    assert refused_rules(send(tenant, VALIDATE, {"policyId": policy, "password": "hunter"})) == ["minLen"]
    assign(tenant, add(tenant, "digits", dcredit="-1"), web)
    both = {"policyId": policy, "machineId": web, "password": "hunter"}
    assert refused_rules(send(tenant, VALIDATE, both)) == ["minLen", "dcredit"]
    theirs = add(world.tenant())
    assert problem(send(tenant, VALIDATE, {"policyId": theirs, "password": "hunter2"})) == NO_POLICY
