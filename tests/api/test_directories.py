"""Directories: configuration, users and groups, imports, mappings."""

import time
from typing import Any

import pytest

from tests.api.test_directory_runs import ANN, BEN, OPS, job, names, send
from tests.api.world import Tenant

SAVE = "/api/v1/saveDirectoryConfig"
LIST = "/api/v1/directory/list"
CHECK = "/api/v1/directory/check"
DELETE = "/api/v1/deleteDirectoryConfig"
IMPORT = "/api/v1/importUsers"
STATUS = "/api/v1/getImportStatus"
CANCEL = "/api/v1/cancelImport"
CONFIRM = "/api/v1/confirmImport"
RECONFIGURE = "/api/v1/reConfigure"
MAPPINGS = "/api/v1/mapping/list"
PREVIEW = "/api/v1/mapping/preview"
USERS = "/ad/GetAllAdUsers"
CLOUD = "/ad/GetCloudUsers"
GROUPS = "/ad/GetAllGroupsByDomain"
MEMBERS = "/ad/GetAllUsersByGroup"


def group(number: int, name: str, *members: str) -> dict[str, Any]:
    """A group as an agent sends it."""
    entry = {"kind": "group", "externalId": f"g{number}", "dn": f"cn={name},dc=x", "name": name}
    return {**entry, "members": list(members)}


def members(tenant: Tenant, name: str, **fields: Any) -> tuple[list[str], int]:
    """Return the members of a group and their total."""
    (found,) = tenant.ask(GROUPS, domainId=tenant.domain, search=name)["groups"]
    answer = tenant.ask(MEMBERS, domainId=tenant.domain, groupId=found["groupId"], **fields)
    return [user["userName"] for user in answer["users"]], answer["totalCount"]


def test_nested_groups_and_cycles(tenant: Tenant) -> None:
    """A member of a nested group is listed once as a member of each parent group, even if groups contain each other."""
    send(
        tenant,
        [ANN, BEN, group(1, "all", "cn=ops,dc=x", "uid=ann,dc=x"), group(2, "ops", "cn=night,dc=x")],
        [group(3, "night", "cn=all,dc=x", "uid:ben")],
    )
    for name in ("all", "ops", "night"):
        assert members(tenant, name) == (["ann", "ben"], 2)
    assert members(tenant, "ops", pageId=2, pageSize=1) == (["ben"], 2)
    assert members(tenant, "ops", search="BE") == (["ben"], 1)
    answer = tenant.ask(GROUPS, domainId=tenant.domain)
    assert [(each["groupName"], each["memberCount"]) for each in answer["groups"]] == [
        ("all", 2), ("ops", 1), ("night", 2),
    ]  # fmt: skip
    assert answer["totalCount"] == 3
    (directory,) = tenant.ask(LIST, domainId=tenant.domain)["directories"]
    of_directory = {"directoryId": directory["directoryId"], "pageSize": 2}
    assert tenant.ask(GROUPS, domainId=tenant.domain, **of_directory) == {**answer, "groups": answer["groups"][:2]}
    (found,) = tenant.ask(GROUPS, domainId=tenant.domain, **of_directory, search="NIGHT")["groups"]
    assert found == answer["groups"][2]
    other = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    for search in ("", "night"):
        fields = {**of_directory, "search": search}
        assert tenant.ask(GROUPS, domainId=tenant.domain, **fields | {"directoryId": 10**9})["groups"] == []
        assert tenant.ask(GROUPS, domainId=other, **fields)["groups"] == []
    assert tenant.refused(MEMBERS, domainId=other, groupId=answer["groups"][0]["groupId"]) == (404, "group not found")


def test_lists(tenant: Tenant) -> None:
    """Entries have the documented fields, are ordered by id, and are filtered by a part of the name or address.

    The list of cloud users is empty.
    """
    many = [{**ANN, "externalId": str(n), "dn": f"uid=u{n},dc=x", "name": f"user{n}"} for n in range(12)]
    send(tenant, many)
    answer = tenant.ask(USERS, domainId=tenant.domain)
    assert answer["totalCount"] == 12 and len(answer["users"]) == 10
    assert answer["users"][0] == {
        "userId": answer["users"][0]["userId"], "userName": "user0", "displayName": "", "email": "ann@x", "upn": "",
        "dn": "uid=u0,dc=x", "status": "active", "source": "agent", "groups": [], "directoryName": "hq", "fields": {},
    }  # fmt: skip
    assert names(tenant)[:3] == ["user0", "user1", "user2"]
    found = tenant.ask(USERS, domainId=tenant.domain, search="SER11")
    assert [user["userName"] for user in found["users"]] == ["user11"]
    assert tenant.ask(CLOUD, domainId=tenant.domain) == {"users": [], "totalCount": 0}
    assert tenant.refused(USERS, domainId=tenant.domain, pageSize=1001) == (400, "invalid pageSize")


def test_configuration(tenant: Tenant) -> None:
    """Directories are saved, and deleted singly or together.

    If one of them is unknown, none is deleted. domainId may be a string, and the answer is a text. No list and no audit
    entry contains a secret.
    """
    message = tenant.ask(
        SAVE, domainId=str(tenant.domain), directoryName="ad", appUrl="ldaps://dc1", bindPassword="hunter2"
    )
    assert isinstance(message, str)
    body = [{"domainId": tenant.domain, "directoryName": "two"}, {"domainId": tenant.domain, "directoryName": ""}]
    answer = tenant.world.post(SAVE, tenant.token, json=body)
    assert (answer.status_code, answer.json()["message"]) == (400, "invalid directoryName")
    listed = tenant.ask(LIST, domainId=tenant.domain)["directories"]
    assert [(each["directoryName"], each["kind"], each["appUrl"], each["hasSecret"]) for each in listed] == [
        ("ad", "ldap", "ldaps://dc1", True)
    ]
    trail = tenant.ask("/api/v1/audit/list", pageSize=100)["entries"]
    assert "directory.save" in [each["action"] for each in trail] and "hunter2" not in str((trail, listed))


def test_the_list_of_directories(tenant: Tenant) -> None:
    """Each page lists directories with their settings. It contains no secret and no directory of another domain."""
    entries = [
        {"domainId": tenant.domain, "directoryName": f"d{number}", "appUrl": "ldaps://dc1", "baseDN": "dc=x",
         "filter": "(uid=*)", "bindDN": "cn=b", "bindPassword": "hunter2"}
        for number in range(3)
    ]  # fmt: skip
    assert tenant.world.post(SAVE, tenant.token, json=entries).status_code == 200
    answer = tenant.ask(LIST, domainId=tenant.domain, pageSize=2)
    assert (answer["totalCount"], [each["directoryName"] for each in answer["directories"]]) == (3, ["d0", "d1"])
    first = answer["directories"][0]
    assert {name: first[name] for name in ("kind", "appUrl", "accountName", "hasSecret", "fieldMappings")} == {
        "kind": "ldap", "appUrl": "ldaps://dc1", "accountName": "", "hasSecret": True, "fieldMappings": {},
    }  # fmt: skip
    assert first["settings"] == {"baseDN": "dc=x", "filter": "(uid=*)", "bindDN": "cn=b"}
    (last,) = tenant.ask(LIST, domainId=tenant.domain, pageSize=2, pageId=2)["directories"]
    assert last["directoryName"] == "d2" and "hunter2" not in str((answer, last))
    other = tenant.world.tenant()
    assert other.ask(LIST, domainId=other.domain)["directories"] == []
    assert other.refused(LIST, domainId=tenant.domain) == (403, "domain not in tenant")


def test_a_directory_is_tried(tenant: Tenant) -> None:
    """A check reports whether a directory can be read and does not save it. A domain may run five checks a minute."""
    body = {"domainId": tenant.domain, "directoryName": "hq", "appUrl": "ldap://127.0.0.1:1", "baseDN": "dc=x"}
    answer = tenant.ask(CHECK, **body)
    assert (answer["usable"], answer["status"]) == (False, "Success") and "no connection" in answer["message"]
    assert tenant.ask(CHECK, **body | {"appUrl": "ldaps://dc1/x"})["message"].startswith("the directory's appUrl")
    assert tenant.refused(CHECK, **body | {"kind": "agent"})[0] == 400
    assert tenant.refused(CHECK, **body | {"kind": "ldif"})[0] == 400
    assert tenant.ask(LIST, domainId=tenant.domain)["directories"] == []
    secret = {"bindDN": "cn=b", "bindPassword": "hunter2"}
    assert tenant.world.post(SAVE, tenant.token, json=[{**body, **secret}]).status_code == 200
    moved = tenant.refused(CHECK, **body | {"appUrl": "ldap://127.0.0.1:2"})
    assert moved == (400, "the secret is needed again")
    assert tenant.refused(CHECK, **body) == (429, "the limit of 5 trials in a minute is reached: try again later")
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    assert tenant.ask(CHECK, **body | {"domainId": branch})["usable"] is False


def test_import_status(tenant: Tenant) -> None:
    """Imports are found by the name of the directory in any letter case. An unknown name is answered with 404, and so
    is a name of another tenant.
    """
    done = send(tenant, [ANN, BEN])
    for body in ({"DirectoryName": "HQ"}, {"directoryName": "hq", "domainId": str(tenant.domain)}):
        answer = tenant.world.post(STATUS, tenant.token, json=[body]).json()
        assert answer == {"message": "1 import, 0 not done yet", "status": "Success", "jobs": [done]}
    other = tenant.world.tenant()
    assert other.refused(STATUS, DirectoryName="hq") == (404, "directory not found")
    assert tenant.refused(CANCEL, domainId=tenant.domain, jobId=done["jobId"]) == (409, "the import has ended already")
    assert other.refused(CANCEL, domainId=other.domain, jobId=done["jobId"]) == (404, "import not found")


def test_imports_by_the_directory_name_of_a_domain(tenant: Tenant) -> None:
    """A domain's directoryName finds the imports of all directories of that domain, in any letter case, and of no other
    domain.
    """
    done = send(tenant, [ANN])
    domain = tenant.ask("/ad/AddDomain", domainName="branch", directoryName="Branch Office")["domainId"]
    assert tenant.ask(STATUS, DirectoryName="branch office")["jobs"] == []
    address = {"ldapHost": "127.0.0.1", "ldapPort": "1", "baseDN": "dc=x", "domainID": domain}
    tenant.ask(IMPORT, **address)
    (queued,) = tenant.ask(STATUS, DirectoryName="BRANCH OFFICE")["jobs"]
    assert (queued["domainId"], queued["directoryName"]) == (domain, "127.0.0.1")
    assert tenant.ask(STATUS, DirectoryName="hq")["jobs"] == [done]
    other = tenant.world.tenant()
    assert other.refused(STATUS, DirectoryName="Branch Office") == (404, "directory not found")


def test_an_import_that_cannot_be_done(tenant: Tenant) -> None:
    """importUsers queues an import at once. If the server reports an error, the import fails, and its password is
    deleted.
    """
    body = {"ldapHost": "127.0.0.1", "ldapPort": "1", "baseDN": "dc=x", "domainID": tenant.domain, "bindDN": "cn=a"}
    assert isinstance(tenant.ask(IMPORT, **body, bindPassword="hunter2"), str)
    (queued,) = tenant.ask(STATUS, DirectoryName="127.0.0.1")["jobs"]
    failed = job(tenant, "127.0.0.1", queued["jobId"])
    assert failed["state"] == "FAILED" and failed["message"]
    assert tenant.world.service.rows("select secret from directory_jobs where id = ?", failed["jobId"]) == [(None,)]
    foreign = tenant.world.tenant().domain
    assert tenant.refused(IMPORT, **{**body, "domainID": foreign}) == (403, "domain not in tenant")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ldapPort", "0"), ("ldapHost", "a b"), ("baseDN", "hunter2"), ("caCertificate", "hunter2"),
        ("caCertificate", "hunter2é"), ("filter", "(uid=hunter2"), ("filter", "hunter2"),
    ],
)  # fmt: skip
def test_a_wrong_field_of_an_import(tenant: Tenant, field: str, value: str) -> None:
    """importUsers refuses a wrong field. The error names the field but never its value."""
    body = {"ldapHost": "127.0.0.1", "baseDN": "dc=x", "domainID": tenant.domain, field: value}
    status, message = tenant.refused(IMPORT, **body)
    assert status == 400 and field in message and "hunter2" not in message


def test_mappings(tenant: Tenant) -> None:
    """The mapping of a group takes precedence. A preview changes nothing. A mapping is applied on request or by the
    next import. `slack` is stored as `chat`, and an empty attribute restores the default.
    """
    ann = {**ANN, "attributes": {"mail": ["ann@x"], "nick": ["annie"], "ou": ["Sales"], "other": ["a@y"]}}
    ben = {**BEN, "attributes": {"nick": ["benny"]}}
    send(tenant, [ann, ben, OPS])
    where = {"domainId": tenant.domain, "directoryName": "hq"}
    (ops,) = tenant.ask(GROUPS, domainId=tenant.domain)["groups"]
    previewed = tenant.ask(PREVIEW, **where, fieldMappings={"slack": "Nick", "department": "ou"})["users"]
    assert [(each["before"].get("chat"), each["after"]) for each in previewed] == [
        (None, {"username": "ann", "email": "ann@x", "chat": "annie", "department": "Sales"}),
        (None, {"username": "ben", "email": "", "chat": "benny"}),
    ]
    tenant.ask(RECONFIGURE, **where, fieldMappings={"slack": "Nick"}, apply=True)
    message = tenant.ask(RECONFIGURE, groupID=str(ops["groupId"]), fieldMappings={"email": "other"}, apply="yes")
    assert isinstance(message, str)
    for each in tenant.ask(STATUS, DirectoryName="hq")["jobs"]:
        assert job(tenant, "hq", each["jobId"])["state"] == "DONE"
    users = tenant.ask(USERS, domainId=tenant.domain)["users"]
    assert [(user["email"], user["fields"]) for user in users] == [("a@y", {"chat": "annie"}), ("", {"chat": "benny"})]
    listed = tenant.ask(MAPPINGS, domainId=tenant.domain)
    assert [(each["groupId"], each["fieldMappings"]) for each in listed["mappings"]] == [
        (0, {"chat": "nick"}), (ops["groupId"], {"email": "other"}),
    ]  # fmt: skip
    tenant.ask(RECONFIGURE, groupID=ops["groupId"], fieldMappings={"email": "", "username": "nick"})
    assert send(tenant, [ann])["counts"]["skipped"] == 1
    users = tenant.ask(USERS, domainId=tenant.domain)["users"]
    assert [(user["userName"], user["email"]) for user in users] == [("annie", "ann@x"), ("ben", "")]
    other = tenant.world.tenant()
    assert other.refused(RECONFIGURE, groupID=ops["groupId"], fieldMappings={}) == (404, "group not found")
    assert other.refused(PREVIEW, groupID=ops["groupId"]) == (404, "group not found")


@pytest.mark.parametrize(
    "mappings",
    [{"email": "a b"}, {"hunter2": "mail"}, {"email": [["mail"]]}, ["mail"], {"fax": "userPassword"}],
    ids=["no attribute", "no field", "array in array", "no object", "secret"],
)
def test_wrong_mappings(tenant: Tenant, mappings: object) -> None:
    """A wrong mapping is refused, whether or not the directory exists."""
    where = {"domainId": tenant.domain, "directoryName": "hq"}
    assert tenant.refused(RECONFIGURE, **where, fieldMappings=mappings) == (400, "invalid fieldMappings")


def test_most_of_a_directory_is_not_removed(tenant: Tenant) -> None:
    """A run that would remove most people fails.

    After a confirmation the next run removes them. Other imports, and imports of another domain, cannot be confirmed.
    """
    many = [{**ANN, "externalId": str(n), "dn": f"uid=u{n},dc=x", "name": f"user{n}"} for n in range(40)]
    first = send(tenant, many, complete=True)
    stopped = send(tenant, many[:10], complete=True)
    assert (stopped["state"], stopped["needsConfirmation"]) == ("FAILED", True)
    assert stopped["message"].startswith("nothing was removed: 30 of the 40 users")
    assert tenant.ask(USERS, domainId=tenant.domain)["totalCount"] == 40
    other = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    assert tenant.refused(CONFIRM, domainId=other, jobId=stopped["jobId"]) == (404, "import not found")
    done = {"domainId": tenant.domain, "jobId": first["jobId"]}
    assert tenant.refused(CONFIRM, **done) == (409, "the import does not wait for a confirmation")
    tenant.ask(CONFIRM, domainId=tenant.domain, jobId=stopped["jobId"])
    after = job(tenant, "hq", stopped["jobId"])
    assert (after["state"], after["counts"]["removed"], after["needsConfirmation"]) == ("DONE", 30, False)
    assert tenant.ask(USERS, domainId=tenant.domain)["totalCount"] == 10


def test_a_directory_is_removed(tenant: Tenant) -> None:
    """A directory is removed with its people.

    If one of several directories is unknown, none is removed. The audit entry names the caller. A directory of another
    tenant is answered with 404.
    """
    send(tenant, [ANN, OPS])
    domain = {"domainId": tenant.domain}
    assert tenant.refused(DELETE, **domain, directoryName="none") == (404, "directory not found")
    body = [{**domain, "directoryName": "hq"}, {**domain, "directoryName": "none"}]
    assert tenant.world.post(DELETE, tenant.token, json=body).status_code == 404
    other = tenant.world.tenant()
    assert other.refused(DELETE, **domain, directoryName="hq") == (403, "domain not in tenant")
    assert tenant.ask(USERS, **domain)["totalCount"] == 1
    message = tenant.ask(DELETE, **domain, directoryName="HQ")
    assert message.startswith("Removal queued: ")
    patience = time.monotonic() + 60
    while tenant.world.post(STATUS, tenant.token, json={"DirectoryName": "hq"}).status_code != 404:
        assert time.monotonic() < patience
        time.sleep(0.05)
    assert tenant.ask(USERS, **domain) == {"users": [], "totalCount": 0}
    assert tenant.ask(GROUPS, **domain) == {"groups": [], "totalCount": 0}
    trail = tenant.ask("/api/v1/audit/list", pageSize=100, **domain)["entries"]
    assert [each["target"].split()[-1] for each in trail if each["action"] == "directory.remove"] == ["hq"]
    assert send(tenant, [ANN])["counts"]["added"] == 1
