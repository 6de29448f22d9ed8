"""Tests of OpenLDAP that the running service imports: by importUsers, and as a configured directory that is
read again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.test_directory_runs import job
from tests.api.world import Tenant, World
from tests.peers.authority import Authority
from tests.peers.programs import needs
from tests.peers.slapd import BASE, PEOPLE, SERVICE, SERVICE_PASSWORD, SIZE_LIMIT, STAFF, Slapd, dn_of, slapd
from tests.running_service import running_service

pytestmark = [pytest.mark.peer, needs("slapd", "ldapmodify", "ldapsearch")]

IMPORT, SAVE, SYNC = "/api/v1/importUsers", "/api/v1/saveDirectoryConfig", "/api/v1/directory/sync"
STATUS, RECONFIGURE = "/api/v1/getImportStatus", "/api/v1/reConfigure"
USERS, GROUPS, MEMBERS = "/ad/GetAllAdUsers", "/ad/GetAllGroupsByDomain", "/ad/GetAllUsersByGroup"
VPN = f"cn=vpn users,{BASE}"
MANY = 3 * SIZE_LIMIT


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A running service."""
    with (
        running_service(tmp_path_factory.mktemp("service")) as service,
        httpx.Client(base_url=f"http://127.0.0.1:{service.ports.http}", timeout=30, trust_env=False) as http,
    ):
        yield World(service, http)


@pytest.fixture
def tenant(world: World) -> Tenant:
    """Return a tenant that only this test uses."""
    return world.tenant()


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Return the issuer of the directory's certificate."""
    return Authority("The directory's CA")


@pytest.fixture
def directory(tmp_path: Path, authority: Authority) -> Iterator[Slapd]:
    """Yield a directory that only this test uses."""
    with slapd(tmp_path, authority) as directory:
        yield directory


def person(name: str, *lines: str) -> str:
    """Return an entry."""
    base = f"dn: uid={name},{STAFF}\nobjectClass: inetOrgPerson\nuid: {name}\ncn: {name}\nsn: {name}\n"
    return "".join((base, *(f"{line}\n" for line in lines)))


def body(tenant: Tenant, directory: Slapd, **fields: Any) -> dict[str, Any]:
    """Return the body of an importUsers request for all entries.

    It uses no TLS, because the server is on this machine.
    """
    return {
        "ldapHost": "127.0.0.1", "ldapPort": str(directory.port), "baseDN": BASE, "filter": "", "bindDN": SERVICE,
        "bindPassword": SERVICE_PASSWORD, "domainID": str(tenant.domain), "directoryName": "hq", **fields,
    }  # fmt: skip


def imported(tenant: Tenant, directory: Slapd, **fields: Any) -> dict[str, Any]:
    """Import by importUsers, and return the job when it has finished."""
    answer = tenant.world.post(IMPORT, tenant.token, json=[body(tenant, directory, **fields)])
    assert answer.status_code == 200, answer.text
    return job(tenant, "hq", tenant.ask(STATUS, DirectoryName="hq")["jobs"][0]["jobId"])


def synced(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    """Read the configured directory, and return the job when it has finished."""
    queued = tenant.ask(SYNC, domainId=tenant.domain, directoryName="hq", **fields)
    return job(tenant, "hq", queued["jobId"])


def people(tenant: Tenant) -> dict[str, dict[str, Any]]:
    """Return the people of the domain, keyed by name."""
    found = tenant.ask(USERS, domainId=tenant.domain, pageSize=1000)["users"]
    return {user["userName"]: user for user in found}


def members(tenant: Tenant, name: str) -> set[str]:
    """Return the people in a group and in its nested groups."""
    (group,) = tenant.ask(GROUPS, domainId=tenant.domain, search=name)["groups"]
    answer = tenant.ask(MEMBERS, domainId=tenant.domain, groupId=group["groupId"], pageSize=1000)
    return {user["userName"] for user in answer["users"]}


def save(tenant: Tenant, directory: Slapd, **fields: Any) -> None:
    """Configure the directory."""
    given = {"appUrl": directory.url, "baseDN": BASE, "bindDN": SERVICE, "bindPassword": SERVICE_PASSWORD, **fields}
    tenant.ask(SAVE, domainId=tenant.domain, directoryName="hq", **given)


def test_import_users(tenant: Tenant, directory: Slapd) -> None:
    """All people and groups are imported, even if there are several times as many as the server's size limit.

    Nested groups and circles of groups are imported too.
    """
    directory.add("\n".join(person(f"many{number}") for number in range(MANY)))
    directory.add(
        f"dn: cn=outer,{BASE}\nobjectClass: groupOfNames\ncn: outer\nmember: {VPN}\nmember: cn=circle,{BASE}\n\n"
        f"dn: cn=circle,{BASE}\nobjectClass: groupOfNames\ncn: circle\nmember: cn=outer,{BASE}\n"
        f"member: {dn_of('bob')}\n"
    )
    done = imported(tenant, directory)
    assert (done["state"], done["message"], done["errors"]) == ("DONE", "", [])
    assert done["counts"]["added"] == MANY + len(PEOPLE) + 4 + 2
    assert set(people(tenant)) == {*PEOPLE, *(f"many{number}" for number in range(MANY))}
    assert members(tenant, "vpn users") == {"ann", "zoë"}
    assert members(tenant, "outer") == members(tenant, "circle") == {"ann", "zoë", "bob"}


def test_import_users_from_a_server_with_small_pages(tenant: Tenant, tmp_path: Path, authority: Authority) -> None:
    """importUsers reads all people from a server whose `size.pr` is below 100."""
    with slapd(tmp_path, authority, page="30") as directory:
        directory.add("\n".join(person(f"many{number}") for number in range(MANY)))
        assert imported(tenant, directory)["state"] == "DONE"
    assert set(people(tenant)) == {*PEOPLE, *(f"many{number}" for number in range(MANY))}


def test_mapped_fields(tenant: Tenant, directory: Slapd) -> None:
    """Mappings for group, subgroup, roles and primaryApp can use attributes with options, in any case and in lists.

    They take effect in GetAllAdUsers, GetAllUsersByGroup and the preview.
    """
    imported(tenant, directory)
    directory.change(
        dn_of("ann"), "add: title;lang-de", "title;lang-de: Leiterin", "-", "add: employeeType", "employeeType: admin",
        "employeeType: auditor", "-", "add: businessCategory", "businessCategory: VPN", "-", "add: ou", "ou: Sales",
    )  # fmt: skip
    mapping = {
        "Group": "MEMBEROF", "subgroup": ["OU"], "roles": ["employeeType", "Title;Lang-DE"],
        "primaryapp": "businessCategory", "department": "title;lang-de",
    }  # fmt: skip
    where = {"domainId": tenant.domain, "directoryName": "hq"}
    tenant.ask(RECONFIGURE, **where, fieldMappings=mapping)
    assert imported(tenant, directory)["state"] == "DONE"
    fields = {
        "group": "vpn users, admins, all", "subgroup": "Sales", "roles": "admin, auditor, Leiterin",
        "primaryApp": "VPN", "department": "Leiterin",
    }  # fmt: skip
    assert people(tenant)["ann"]["fields"] == fields
    (group,) = tenant.ask(GROUPS, domainId=tenant.domain, search="vpn users")["groups"]
    users = tenant.ask(MEMBERS, domainId=tenant.domain, groupId=group["groupId"])["users"]
    assert next(each["fields"] for each in users if each["userName"] == "ann") == fields
    previewed = tenant.ask("/api/v1/mapping/preview", **where)["users"]
    assert next(each["after"] for each in previewed if each["dn"] == dn_of("ann")).items() >= fields.items()


def test_over_tls(tenant: Tenant, directory: Slapd, authority: Authority) -> None:
    """With the right authority LDAPS and StartTLS work.

    With a wrong authority no user is imported, and the message contains the cause.
    """
    failed = imported(tenant, directory, useTls=True, caCertificate=Authority("another CA").pem)
    assert (failed["state"], "its certificate is not trusted" in failed["message"]) == ("FAILED", True)
    assert people(tenant) == {}
    assert imported(tenant, directory, useTls=True, caCertificate=authority.pem)["state"] == "DONE"
    save(tenant, directory, appUrl=directory.secure_url, caCertificate=authority.pem)
    assert synced(tenant)["state"] == "DONE"
    assert set(people(tenant)) == set(PEOPLE)


def test_changed_entries_are_updated_by_the_next_read(tenant: Tenant, directory: Slapd) -> None:
    """New, changed, renamed, locked and removed entries are updated by the next read."""
    save(tenant, directory)
    directory.add(person("old", "mail: old@example.com") + "\n" + person("leaves"))
    assert synced(tenant)["state"] == "DONE"
    before = people(tenant)
    directory.change(f"uid=old,{STAFF}", "replace: mail", "mail: new@example.com")
    directory.add(f"dn: uid=old,{STAFF}\nchangetype: modrdn\nnewrdn: uid=renamed\ndeleteoldrdn: 1\n")
    directory.add(f"dn: uid=leaves,{STAFF}\nchangetype: delete\n")
    directory.change(dn_of("lou"), "add: pwdAccountLockedTime", "pwdAccountLockedTime: 000001010000Z")
    directory.change(VPN, "add: member", f"member: {dn_of('bob')}", "-", "delete: member", f"member: {dn_of('zoë')}")
    directory.add(person("new"))
    done = synced(tenant)
    assert (done["state"], done["counts"]["added"], done["counts"]["removed"]) == ("DONE", 1, 1)
    after = people(tenant)
    assert set(after) == {*PEOPLE, "renamed", "new"}
    assert (after["renamed"]["userId"], after["renamed"]["email"]) == (before["old"]["userId"], "new@example.com")
    assert (before["lou"]["status"], after["lou"]["status"]) == ("active", "disabled")
    assert members(tenant, "vpn users") == {"ann", "bob"}
    again = synced(tenant)["counts"]
    assert (again["added"], again["updated"], again["removed"]) == (0, 0, 0)


def test_a_directory_that_dies(tenant: Tenant, directory: Slapd) -> None:
    """If the directory stops during an import, the import fails with the cause, and no user is removed."""
    save(tenant, directory)
    assert synced(tenant)["state"] == "DONE"
    directory.kill()
    failed = synced(tenant, full=True)
    assert (failed["state"], "no connection" in failed["message"]) == ("FAILED", True)
    assert set(people(tenant)) == set(PEOPLE)


def test_an_attribute_that_a_mapping_takes(tenant: Tenant, directory: Slapd) -> None:
    """The next read reads a newly mapped attribute for all users, including those that did not change."""
    directory.add(person("ann2", "carLicense: 007"))
    save(tenant, directory)
    assert synced(tenant)["state"] == "DONE"
    where = {"domainId": tenant.domain, "directoryName": "hq"}
    tenant.ask(RECONFIGURE, **where, fieldMappings={"region": "carLicense"})
    assert synced(tenant)["state"] == "DONE"
    assert people(tenant)["ann2"]["fields"]["region"] == "007"


def test_secrets_stay_here(tenant: Tenant, directory: Slapd) -> None:
    """The bind password is in no answer, in no audit trail and in no log. The store has it only encrypted."""
    save(tenant, directory)
    imported(tenant, directory)
    service = tenant.world.service
    shown = [
        tenant.ask(STATUS, DirectoryName="hq"), tenant.ask("/api/v1/audit/list", pageSize=100),
        tenant.ask("/api/v1/directory/list", domainId=tenant.domain),
    ]  # fmt: skip
    assert SERVICE_PASSWORD not in str(shown)
    stored = service.stored()
    assert stored and SERVICE_PASSWORD.encode() not in stored
