"""/api/v1/endpointUsers/* except for the enrolment, and RADIUS logins after a change."""

from typing import Any

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.api.test_instances import ASSIGN_USERS, add, add_group, add_user
from tests.api.world import Tenant, World, problem
from tests.areas.users.keys import ED25519

LIST = "/api/v1/endpointUsers/listAllEpmUsers"
ADD = "/api/v1/endpointUsers/addEpmUserInfo"
DETAIL = ("/api/v1/endpointUsers/getEpmUserDetail", "/api/v1/endpointUsers/epmUserDetail")
UPDATE = "/api/v1/endpointUsers/updateEpmUserInfo"
WALLET = "/api/v1/endpointUsers/updateUserWallet"
DELETE = "/api/v1/endpointUsers/deleteEpmUser"
ADD_PASSWORD_POLICY = "/api/v1/instances/addPasswordPolicy"
LIST_PASSWORD_POLICY = "/api/v1/instances/listAllPasswordPolicy"
ASSIGN_POLICY = "/api/v1/instances/assignPolicyToMachine"
NO_USER = (404, "user not found")
SEED = "JBSWY3DPEHPK3PXP"
WHOLE = {
    "userName": "bob", "userType": "Local", "credType": "Password", "password": "hunter2 in Zürich",
    "privilegedUser": "yes", "sshKey": ED25519, "motp": SEED, "did": "did:key:z6Mk",
}  # fmt: skip


def add_epm_user(tenant: Tenant, **fields: Any) -> int:
    """Add a user and return its id."""
    return int(tenant.ask(ADD, domainId=tenant.domain, **fields)["userId"])


def detail(tenant: Tenant, user: int, path: str = DETAIL[0], token: str | None = None) -> dict[str, Any]:
    """Return the detail of a user."""
    answer: dict[str, Any] = tenant.ask(path, token=token, domainId=tenant.domain, userId=user)
    return answer


def listed(tenant: Tenant, filter_by: str = "", value: Any = "", **fields: Any) -> dict[str, dict[str, Any]]:
    """Return the matching users by name, and assert that the total is their number."""
    chosen = {"filterBy": filter_by, "value": value}
    answer = tenant.ask(LIST, domainId=tenant.domain, filter=chosen, pageSize=1000, **fields)
    assert answer["totalCount"] == len(answer["epmUsers"])
    return {each["userName"]: each for each in answer["epmUsers"]}


@pytest.mark.parametrize("path", DETAIL)
def test_the_fields_of_a_user(tenant: Tenant, path: str) -> None:
    """On both paths, the detail has exactly the documented fields and types. A field that was not given has its
    default.
    """
    answer = tenant.ask(ADD, domainId=tenant.domain, **WHOLE)
    user = answer.pop("userId")
    assert isinstance(user, str) and answer == {"status": "Success", "message": "user added"}
    assert detail(tenant, int(user), path) == {
        "domainId": tenant.domain,
        "userId": int(user),
        **WHOLE,
        "credentialType": "",
    }
    bare = add_epm_user(tenant, userName="carl")
    assert detail(tenant, bare, path) == {
        "domainId": tenant.domain, "userId": bare, "userType": "Local", "credType": "Password", "password": "",
        "privilegedUser": "false", "userName": "carl", "sshKey": "", "motp": "", "did": "",
        "credentialType": "",
    }  # fmt: skip


def test_auditors_do_not_see_secrets(world: World, tenant: Tenant) -> None:
    """Admins and operators see the secrets, and auditors see stars. Each read of a secret has an audit entry."""
    user, bare = add_epm_user(tenant, **WHOLE), add_epm_user(tenant, userName="carl")
    for role in ("admin", "operator"):
        answered = detail(tenant, user, token=tenant.role(role))
        assert (answered["password"], answered["motp"]) == (WHOLE["password"], SEED)
    answered = detail(tenant, user, token=tenant.role("auditor"))
    assert (answered["password"], answered["motp"], answered["sshKey"]) == ("********", "********", ED25519)
    assert detail(tenant, bare, token=tenant.role("auditor"))["password"] == ""
    read = world.service.rows(
        "select changes from audit_trail where domain_id = ? and action = 'user.read' order by id", tenant.domain
    )
    assert [row[0] for row in read] == ['{"secrets": "shown"}'] * 2 + ['{"secrets": "hidden"}'] * 2
    trail = str(world.service.rows("select * from audit_trail where domain_id = ?", tenant.domain))
    assert "hunter2" not in trail and SEED not in trail


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"userName": ""}, "userName"), ({"userName": "a\nb"}, "userName"), ({"userName": "ü" * 127}, "userName"),
        ({"userName": " bob"}, "userName"), ({"userName": "bob "}, "userName"), ({"userName": "  "}, "userName"),
        ({"userName": ["hunter2"]}, "userName"), ({"password": "hunter2" * 19}, "password"),
        ({"password": "hunter2\0"}, "password"), ({"password": {"hunter2": 1}}, "password"),
        ({"privilegedUser": "hunter2"}, "privilegedUser"), ({"sshKey": "hunter2"}, "sshKey"),
        ({"sshKey": f"{ED25519}\nhunter2"}, "sshKey"), ({"motp": "hunter2"}, "motp"),
        ({"motp": "hunter20" * 2}, "motp"),
        ({"did": "hunter2"}, "did"), ({"userType": "hunter2\n2"}, "userType"), ({"credType": "x" * 256}, "credType"),
        ({"instanceIds": "hunter2"}, "instanceIds"),
    ],
)  # fmt: skip
def test_malformed_users(tenant: Tenant, fields: dict[str, Any], name: str) -> None:
    """A malformed field of a new or an existing user is answered with 400. Its value is not repeated, and nothing is
    stored.
    """
    user = add_epm_user(tenant, userName="bob")
    before = detail(tenant, user)
    adding = ("POST", ADD, {"userName": "carl", **fields})
    updating = ("PUT", UPDATE, {"userId": user, **fields})
    for method, path, said in (adding,) if name == "instanceIds" else (adding, updating):
        body = tenant.scoped(domainId=tenant.domain, **said)
        answer = tenant.world.send(method, path, tenant.token, json=body)
        assert problem(answer) == (400, f"invalid {name}")
        assert "hunter2" not in answer.text
    assert detail(tenant, user) == before
    assert list(listed(tenant)) == ["ann", "bob"]


def test_a_missing_name(tenant: Tenant) -> None:
    """A new user needs only a name, and an update needs only the userId."""
    assert tenant.refused(ADD, domainId=tenant.domain, password="x") == (400, "missing userName")
    assert tenant.refused(UPDATE, method="PUT", domainId=tenant.domain, userName="x") == (400, "missing userId")
    assert tenant.refused(DETAIL[0], domainId=tenant.domain) == (400, "missing userId")


def test_a_name_is_taken_once(tenant: Tenant) -> None:
    """A new user or a rename is refused if the name is taken, in any letter case and Unicode form.

    A user may change the case of its own name.
    """
    user = add_epm_user(tenant, userName="bob")
    zoe = add_epm_user(tenant, userName="zoe\u0308")
    assert tenant.refused(ADD, domainId=tenant.domain, userName="Zoë")[0] == 409
    tenant.ask(UPDATE, method="PUT", domainId=tenant.domain, userId=zoe, userName="Zoë")
    assert tenant.refused(ADD, domainId=tenant.domain, userName="ANN")[0] == 409
    fields = {"domainId": tenant.domain, "userId": user}
    assert tenant.refused(UPDATE, method="PUT", userName="Ann", **fields)[0] == 409
    tenant.ask(UPDATE, method="PUT", userName="BOB", **fields)
    assert list(listed(tenant)) == ["ann", "BOB", "Zoë"]


def test_updating(world: World, tenant: Tenant) -> None:
    """An absent field keeps its value, and an empty field is cleared. An empty password keeps the password."""
    user = add_epm_user(tenant, **WHOLE)
    fields = {"domainId": tenant.domain, "userId": user}
    answer = tenant.ask(UPDATE, method="PUT", userName="Robert", **fields)
    assert answer == {"status": "Success", "message": "user updated", "userId": str(user)}
    assert detail(tenant, user) == {**fields, **WHOLE, "userName": "Robert", "credentialType": ""}
    empty = dict.fromkeys(WHOLE.keys() - {"userName"}, "")
    tenant.ask(UPDATE, method="PUT", **fields, **empty)
    assert detail(tenant, user) == {
        **fields, **empty, "userName": "Robert", "password": WHOLE["password"], "userType": "Local",
        "credType": "Password", "privilegedUser": "false", "credentialType": "",
    }  # fmt: skip
    foreign = add_epm_user(world.tenant(), userName="bob")
    for unknown in (foreign, 10**9, 0, -1):
        body = {**fields, "userId": unknown}
        assert tenant.refused(UPDATE, method="PUT", **body, did="did:a:b") == NO_USER
        assert tenant.refused(DETAIL[0], **body) == NO_USER


def test_radius_sees_each_change_at_once(tenant: Tenant) -> None:
    """An added user can log in at once.

    A changed password or name applies to the next login, and a deleted user is rejected.
    """
    with tenant.nas() as nas:
        assert nas.login("bob", "first") == ACCESS_REJECT
        user = add_epm_user(tenant, userName="bob", password="first")
        fields = {"domainId": tenant.domain, "userId": user}
        assert nas.login("bob", "first") == ACCESS_ACCEPT
        tenant.ask(UPDATE, method="PUT", password="second", **fields)
        assert (nas.login("bob", "first"), nas.login("bob", "second")) == (ACCESS_REJECT, ACCESS_ACCEPT)
        tenant.ask(UPDATE, method="PUT", userName="robert", **fields)
        assert (nas.login("bob", "second"), nas.login("robert", "second")) == (ACCESS_REJECT, ACCESS_ACCEPT)
        tenant.ask(DELETE, method="DELETE", domainId=tenant.domain, epmUsers=[{"epmUserId": user}])
        assert nas.login("robert", "second") == ACCESS_REJECT
        add_epm_user(tenant, userName="robert")
        assert nas.login("robert", "") == nas.login("robert", "second") == ACCESS_REJECT


def test_a_password_meets_the_policies(tenant: Tenant) -> None:
    """A password that violates policies of the user's instances is answered with 400, with an error for each rule.

    Without a policy any password is accepted.
    """
    tenant.ask(ADD_PASSWORD_POLICY, policyName="strict", minLen="12", allowNumeric="no")
    policy = tenant.ask(LIST_PASSWORD_POLICY)["passwordPolicies"][0]["policyId"]
    machine = add(tenant, "web")
    tenant.ask(ASSIGN_POLICY, policyId=policy, instanceId=machine)
    body = tenant.scoped(domainId=tenant.domain, userName="bob", password="hunter2", instanceIds=[machine])
    answer = tenant.world.post(ADD, tenant.token, json=body)
    assert problem(answer) == (400, "the password does not meet the policy")
    assert [each["field"] for each in answer.json()["errors"]] == ["minLen", "allowNumeric"]
    assert "hunter2" not in answer.text and list(listed(tenant)) == ["ann"]
    bob = add_epm_user(tenant, userName="bob", password="hunter2")
    tenant.ask(ASSIGN_USERS, domainId=tenant.domain, instanceIds=machine, userIds=bob, action="add")
    fields = {"domainId": tenant.domain, "userId": bob}
    assert tenant.refused(UPDATE, method="PUT", password="hunter3", **fields)[0] == 400
    tenant.ask(UPDATE, method="PUT", password="", did="did:a:b", **fields)
    tenant.ask(UPDATE, method="PUT", password="twelve letters", **fields)
    assert detail(tenant, bob)["password"] == "twelve letters"


def test_the_list(tenant: Tenant) -> None:
    """Entries have exactly the documented fields and types. They are ordered by id and paged."""
    machines = [add(tenant, name) for name in ("web", "mail")]
    bob = add_epm_user(tenant, userName="bob", instanceIds=machines)
    answer = tenant.ask(LIST, domainId=tenant.domain)
    assert answer["totalCount"] == 2
    times = {name: answer["epmUsers"][1].pop(name) for name in ("created", "updated")}
    assert times["created"] <= times["updated"]
    assert answer["epmUsers"][1] == {
        "credType": "Password", "userId": bob, "userName": "bob", "source": "Local", "userType": "Local User",
        "instanceIds": machines, "assign": True, "credentialId": "", "hostNames": ["web", "mail"],
        "groups": [], "hasPassword": False, "hasTotp": False, "privilegedUser": "false", "did": "",
    }  # fmt: skip
    assert (answer["epmUsers"][0]["assign"], answer["epmUsers"][0]["hostNames"]) == (False, [])
    second = tenant.ask(LIST, domainId=tenant.domain, pageId=2, pageSize=1)
    assert [each["userName"] for each in second["epmUsers"]] == ["bob"] and second["totalCount"] == 2
    assert tenant.refused(LIST, domainId=tenant.domain, pageSize=1001) == (400, "invalid pageSize")


def test_the_list_is_filtered(world: World, tenant: Tenant) -> None:
    """The list is filtered by each column, whose name is accepted in any letter case, by instances, and by both."""
    web, mail = add(tenant, "web"), add(tenant, "mail")
    bob = add_epm_user(tenant, userName="Bobby", userType="Admin", credType="SSH", instanceIds=[web])
    carl = add_epm_user(tenant, userName="carl", instanceIds=[web, mail])
    for filter_by, value, names in (
        ("userName", "OBB", ["Bobby"]), ("USER_NAME", "a", ["ann", "carl"]), ("userid", bob, ["Bobby"]),
        ("userType", "local user", ["ann", "carl"]), ("USERTYPE", "admin", ["Bobby"]), ("credType", "ssh", ["Bobby"]),
        ("source", "LOCAL", ["ann", "Bobby", "carl"]), ("assign", "false", ["ann"]),
        ("assign", True, ["Bobby", "carl"]),
        ("instanceIds", mail, ["carl"]), ("hostNames", "WEB", ["Bobby", "carl"]), ("credentialId", "x", []),
        ("", "x", ["ann", "Bobby", "carl"]), ("userName", "", ["ann", "Bobby", "carl"]),
    ):  # fmt: skip
        assert list(listed(tenant, filter_by, value)) == names, (filter_by, value)
    assert list(listed(tenant, instanceIds=[web, mail])) == ["Bobby", "carl"]
    assert list(listed(tenant, "userName", "c", instanceIds=mail)) == ["carl"]
    assert list(listed(tenant, instanceIds=[])) == ["ann", "Bobby", "carl"] and carl
    for filter_by in ("hunter2", "password", "id"):
        answered = tenant.refused(LIST, domainId=tenant.domain, filter={"filterBy": filter_by, "value": "x"})
        assert answered == (400, "invalid filterBy")
    for filter_by, value in (("userId", "hunter2"), ("assign", "hunter2"), ("instanceIds", "-1"), ("groupId", "x")):
        answered = tenant.refused(LIST, domainId=tenant.domain, filter={"filterBy": filter_by, "value": value})
        assert answered == (400, "invalid value")
    foreign = add(world.tenant(), "web")
    assert tenant.refused(LIST, domainId=tenant.domain, instanceIds=[web, foreign]) == (404, "instance not found")


def test_the_wallet(tenant: Tenant) -> None:
    """One request sets groups, instances, type and privilege of several users.

    If one id is unknown, the request is answered with 404 and changes nothing.
    """
    users, group, machine = (
        [add_epm_user(tenant, userName=name) for name in ("bob", "carl")],
        add_group(tenant, "g"),
        add(tenant, "web"),
    )
    fields = {"domainId": tenant.domain, "epmUserId": users, "groupId": [group], "instanceId": [machine]}
    for wrong, answered in (
        ({"epmUserId": [*users, 10**9]}, NO_USER), ({"groupId": [group, 10**9]}, (404, "group not found")),
        ({"instanceId": 10**9}, (404, "instance not found")), ({"credentialId": [1]}, (404, "credential not found")),
        ({"issuerId": 1}, (404, "issuer not found")), ({"platformUserNames": [1]}, (404, "wallet user not found")),
        ({"sallyportUserNames": [1]}, (404, "wallet user not found")), ({"epmUserId": []}, (400, "invalid epmUserId")),
        ({"assignMultiple": "hunter2"}, (400, "invalid assignMultiple")),
        ({"privilegedUser": "hunter2"}, (400, "invalid privilegedUser")),
        ({"issuerId": "x"}, (400, "invalid issuerId")),
    ):  # fmt: skip
        assert tenant.refused(WALLET, method="PUT", **{**fields, **wrong}) == answered
    assert tenant.refused(WALLET, method="PUT", credentialId=[1, 2], assignMultiple="false", **fields)[0] == 400
    assert not any(each["assign"] for each in listed(tenant).values())
    said = {
        "userType": "Admin",
        "privilegedUser": "yes",
        "assignMultiple": "true",
        "credentialType": "Password",
        "issuerId": 0,
    }
    for _ in range(2):
        answer = tenant.ask(WALLET, method="PUT", **fields, **said, platformUserNames=[], credentialId=[])
        assert answer == {"status": "Success", "message": "wallet updated"}
    assert list(listed(tenant, "userType", "admin", instanceIds=[machine])) == ["bob", "carl"]
    assert detail(tenant, users[0])["privilegedUser"] == "yes"


def test_deleting(world: World, tenant: Tenant) -> None:
    """A deletion with an instance only ends the assignment.

    Without an instance, or with the key `delete`, it deletes the user. If one user is unknown, the request changes
    nothing.
    """
    machine = add(tenant, "web")
    bob, carl, dora = (add_epm_user(tenant, userName=name, instanceIds=[machine]) for name in ("bob", "carl", "dora"))
    foreign = add_epm_user(world.tenant(), userName="bob")
    fields = {"domainId": tenant.domain}
    for wrong in ({"epmUserId": foreign}, {"epmUserId": bob, "userName": "carl"}, {"userName": "nobody"}):
        answered = tenant.refused(DELETE, method="DELETE", epmUsers=[{"epmUserId": carl}, wrong], **fields)
        assert answered == NO_USER
    off = {"epmUserId": bob, "userName": "Bob", "instanceId": machine}
    for _ in range(2):
        answer = tenant.ask(DELETE, method="DELETE", key="", epmUsers=[off], **fields)
        assert answer == {"status": "Success", "message": "users were removed from their instances"}
    assert list(listed(tenant, instanceIds=[machine])) == ["carl", "dora"]
    answer = tenant.ask(DELETE, method="DELETE", key="Delete", epmUsers=off, **fields)
    assert answer == {"status": "Success", "message": "1 user deleted"}
    both = [{"epmUserId": carl, "instanceId": 0}, {"epmUserId": 0, "userName": "DORA"}]
    answer = tenant.ask(DELETE, method="DELETE", epmUsers=both, **fields)
    assert answer["message"] == "2 users deleted" and dora
    assert list(listed(tenant)) == ["ann"]
    assert tenant.refused(DELETE, method="DELETE", epmUsers=[{"epmUserId": bob}], **fields) == NO_USER
    for wrong_list in ([], [{}], "hunter2", [{"epmUserId": "hunter2"}], [{"instanceId": 1}], None):
        assert tenant.refused(DELETE, method="DELETE", epmUsers=wrong_list, **fields)[0] == 400
    assert tenant.refused(DELETE, method="DELETE", **fields) == (400, "missing epmUsers")


def test_users_stay_in_their_tenant(world: World, tenant: Tenant) -> None:
    """Two tenants may each have a user of the same name. Neither tenant sees the user of the other."""
    other = world.tenant()
    mine, theirs = add_user(tenant, "bob"), add_user(other, "bob")
    assert mine != theirs
    assert list(listed(tenant, "userId", theirs)) == []
    assert tenant.refused(DETAIL[1], domainId=tenant.domain, userId=theirs) == NO_USER
    assert tenant.refused(DETAIL[1], domainId=other.domain, userId=theirs) == (403, "domain not in tenant")
