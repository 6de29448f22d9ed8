"""/api/v1/integrations/directory/importLdif: a form with a file."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.test_directory_runs import job, names
from tests.api.world import Tenant, problem
from tests.waiting import eventually

IMPORT = "/api/v1/integrations/directory/importLdif"
USERS = "/ad/GetAllAdUsers"
STATUS = "/api/v1/getImportStatus"
MIB = 1 << 20
LIMIT = 64 * MIB

LDIF = """version: 1

dn: uid=ann,ou=People,dc=example,dc=org
objectClass: inetOrgPerson
uid: ann
cn: Ann
description: a text that is fol
 ded
mail:: w6RubkBleGFtcGxlLm9yZw==

# a comment
 that is folded
dn: cn=ops,ou=Groups,dc=example,dc=org
objectClass: groupOfNames
cn: ops
member: uid=Ann, ou=people, dc=example, dc=org
"""
CHANGES = """dn: uid=ann,ou=People,dc=example,dc=org
changetype: modify
replace: mail
mail: ann@example.org
-

dn: uid=ben,ou=People,dc=example,dc=org
changetype: add
objectClass: inetOrgPerson
uid: ben

dn: uid=ann,ou=People,dc=example,dc=org
changetype: modrdn
newrdn: uid=anna
deleteoldrdn: 1

dn: uid=nobody,dc=example,dc=org
changetype: delete
"""


def send(tenant: Tenant, content: str | bytes, *, token: str | None = None, **fields: Any) -> httpx.Response:
    """Upload a file. By default it is for the tenant's domain."""
    data = {"domainId": str(tenant.domain), "fileName": "people.ldif", **fields}
    headers = {"x-authorization": tenant.token if token is None else token}
    octets = content.encode() if isinstance(content, str) else content
    files = {"file": ("c:\\fake\\x.ldif", octets)}
    return tenant.world.http.post(IMPORT, data=data, files=files, headers=headers)


def imported(tenant: Tenant, content: str | bytes, **fields: Any) -> dict[str, Any]:
    """Upload a file, wait until its import has ended, and return the import."""
    answer = send(tenant, content, **fields)
    assert answer.status_code == 200, answer.text
    message = answer.json()
    assert isinstance(message, str)
    return job(tenant, fields.get("directoryName", "LDIF"), int(message.rpartition(" ")[2]))


def left(tenant: Tenant) -> list[Path]:
    """Return the stored files of imports."""
    folder = tenant.world.service.data_dir / "directory"
    return list(folder.iterdir()) if folder.is_dir() else []


def test_a_file_is_imported_and_deleted(tenant: Tenant) -> None:
    """A file may contain folded lines, base64, comments and members in any spelling, followed by changes.

    It is deleted after the import.
    """
    done = imported(tenant, LDIF)
    assert (done["state"], done["kind"], done["fileName"]) == ("DONE", "ldif", "people.ldif")
    assert done["counts"] == {"total": 2, "added": 2, "updated": 0, "removed": 0, "skipped": 0, "failed": 0}
    (ann,) = tenant.ask(USERS, domainId=tenant.domain)["users"]
    assert (ann["email"], ann["groups"], ann["source"]) == ("änn@example.org", ["ops"], "ldif")
    assert imported(tenant, LDIF.replace("\n", "\r\n"))["counts"]["skipped"] == 2
    changed = imported(tenant, CHANGES)["counts"]
    assert changed == {"total": 4, "added": 1, "updated": 2, "removed": 0, "skipped": 1, "failed": 0}
    users = {user["userName"]: user for user in tenant.ask(USERS, domainId=tenant.domain)["users"]}
    assert users.keys() == {"anna", "ben"} and users["anna"]["userId"] == ann["userId"]
    assert (users["anna"]["email"], users["anna"]["groups"]) == ("ann@example.org", ["ops"])
    eventually(lambda: not [path for path in left(tenant) if path.stat().st_size and "lines" in path.name])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LDIF + "\ndn: uid=x\nno colon\n", "line 19: no `name: value`"),
        (LDIF + "\ndn: uid=x\nmail:: !!!\n", "line 19: wrong base64"),
        (LDIF + "\ndn: uid=x\nmail:< file:///etc/passwd\n", "line 19: the value is in a file or at a URL"),
        (LDIF + "\ndn: uid=x\nmail: a\0b\n", "line 19: a value with a NUL"),
        (LDIF + "\ndn: uid=x\ncn: " + "x" * 10 * MIB + "\n", "line 19: the line is longer than 4 MiB"),
        (LDIF + "\ndn: uid=x\ncn: " + "x\n y" * 6 * MIB, "line 18: the entry that begins here is larger"),
        (LDIF + "\nuid: x\n", "line 18: a record must begin with `dn:`"),
        (LDIF + "\ndn: uid=x\nchangetype: hunter2\n", "line 19: changetype must be"),
        (LDIF.encode() + b"\ndn: uid=\xff\ncn: x\n", "line 18: not UTF-8"),
        ("version: 2\n", "line 1: the version must be 1"),
        (b"PK\x03\x04" + bytes(1000), "line 1: "),
    ],
    ids=range(11),
)
def test_a_file_with_an_error(tenant: Tenant, content: str | bytes, message: str) -> None:
    """If a file has an error, the import names the line and imports nothing."""
    failed = imported(tenant, content)
    assert failed["state"] == "FAILED" and failed["message"].startswith(message), failed["message"][:100]
    assert failed["counts"]["added"] == 0 and names(tenant) == []


def test_a_directory_of_its_own(tenant: Tenant) -> None:
    """A complete file removes from its directory the people that the file lacks. Other directories keep theirs."""
    imported(tenant, LDIF)
    two = LDIF + "\ndn: uid=ben,dc=x\nobjectClass: person\nuid: ben\n"
    assert imported(tenant, two, directoryName="hq")["counts"]["added"] == 3
    complete = imported(tenant, LDIF, directoryName="hq", complete="true")
    assert complete["counts"] == {"total": 2, "added": 0, "updated": 0, "removed": 1, "skipped": 2, "failed": 0}
    assert names(tenant) == ["ann", "ann"]
    bad = "dn: ou=x,dc=x\nobjectClass: person\n"
    kept = imported(tenant, bad, directoryName="hq", complete="yes")
    assert (kept["counts"]["failed"], kept["counts"]["removed"]) == (1, 0)
    assert kept["errors"] == [{"where": "line 1: ou=x,dc=x", "message": "the entry has no name"}]


def test_an_upload_needs_scope_and_role(tenant: Tenant) -> None:
    """Token, form, scope, domain and role are checked in that order. The file of a refused request is deleted."""
    before = left(tenant)
    assert problem(tenant.world.http.post(IMPORT, content=b"x")) == (401, "missing token")
    assert problem(send(tenant, LDIF, token="x")) == (401, "invalid token")
    auditor = tenant.role("auditor")
    assert problem(send(tenant, LDIF, token=auditor, domainId="x")) == (400, "invalid domainId")
    assert problem(send(tenant, LDIF, token=auditor, orgId="0")) == (403, "scope mismatch")
    assert problem(send(tenant, LDIF, token=auditor, domainId="1")) == (403, "domain not in tenant")
    assert problem(send(tenant, LDIF, token=auditor)) == (403, "role not allowed")
    assert problem(send(tenant, LDIF, domainId=str(tenant.world.tenant().domain))) == (403, "domain not in tenant")
    assert left(tenant) == before


def test_names(tenant: Tenant) -> None:
    """The import shows the printable part of the file name.

    A directory name that is only white space counts as missing.
    """
    data, files = {"domainId": str(tenant.domain)}, {"file": ("a\x1b[31m\u202eb.ldif", LDIF)}
    sent = tenant.world.http.post(IMPORT, data=data, files=files, headers={"x-authorization": tenant.token})
    assert job(tenant, "LDIF", int(sent.json().rpartition(" ")[2]))["fileName"] == "a[31mb.ldif"
    assert problem(send(tenant, LDIF, directoryName=" ")) == (400, "invalid directoryName")


def test_malformed_forms(tenant: Tenant) -> None:
    """Another content type is answered with 415.

    A form is answered with 400 if it has no boundary, is truncated, or does not have exactly one file.
    """
    http, token = tenant.world.http, {"x-authorization": tenant.token}
    before = left(tenant)
    assert problem(http.post(IMPORT, json={}, headers=token)) == (415, "send the content type multipart/form-data")
    domain = {"domainId": str(tenant.domain)}
    assert problem(http.post(IMPORT, data=domain, files={"x": b""}, headers=token)) == (400, "missing file")
    assert problem(http.post(IMPORT, data={}, files={"file": b""}, headers=token)) == (400, "missing domainId")
    two = [("file", ("a", b"x")), ("file", ("b", b"y"))]
    assert problem(http.post(IMPORT, data=domain, files=two, headers=token)) == (400, "invalid file")
    for kind, content in (
        ("multipart/form-data", b"--x--"),
        ("multipart/form-data; boundary=", b"--x--"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\nabc"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\nabc\r\n--x--"),
        ("multipart/form-data; boundary=x", b"--xyz"),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"a: b\r\n" * 4000),
        ("multipart/form-data; boundary=x", b""),
    ):
        answer = http.post(IMPORT, content=content, headers={**token, "content-type": kind})
        assert problem(answer)[0] == 400, (kind, content[:40], answer.text)
    assert left(tenant) == before


def test_the_largest_file(tenant: Tenant) -> None:
    """A file of 64 MiB is imported without being held in memory. A file that is one octet larger is answered with 413,
    whether or not its length is declared.
    """

    def form(octets: int) -> Iterator[bytes]:
        domain = f'--x\r\nContent-Disposition: form-data; name="domainId"\r\n\r\n{tenant.domain}\r\n'
        yield domain.encode() + b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        for _ in range(octets // MIB):
            yield b"# a comment\n" * (MIB // 12) + b"#" * (MIB % 12)
        yield b"\n" * (octets % MIB) + b"\r\n--x--\r\n"

    headers = {"x-authorization": tenant.token, "content-type": "multipart/form-data; boundary=x"}
    before = _memory(tenant)
    answer = tenant.world.http.post(IMPORT, content=form(LIMIT), headers=headers)
    assert answer.status_code == 200, answer.text
    assert _memory(tenant) - before < LIMIT // 2
    assert problem(tenant.world.http.post(IMPORT, content=form(LIMIT + 1), headers=headers))[0] == 413
    connection = HTTPConnection("127.0.0.1", tenant.world.service.ports.http, timeout=30)
    connection.request("POST", IMPORT, headers={**headers, "content-length": str(2 * LIMIT)})
    assert connection.getresponse().status == 413
    connection.close()
    job(tenant, "LDIF", int(answer.json().rpartition(" ")[2]))


def _memory(tenant: Tenant) -> int:
    """Return the peak memory of the service in octets."""
    status = Path(f"/proc/{tenant.world.service.process_id}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def test_cancel(tenant: Tenant) -> None:
    """When an import is cancelled, it ends, its file is deleted, and the next import runs."""
    many = "".join(f"dn: uid=u{n},dc=x\nobjectClass: person\nuid: u{n}\n\n" for n in range(20_000))
    first = int(send(tenant, many).json().rpartition(" ")[2])
    assert json.loads(send(tenant, LDIF).content).startswith("Import queued")
    tenant.ask("/api/v1/cancelImport", domainId=tenant.domain, jobId=first)
    assert job(tenant, "LDIF", first)["state"] == "CANCELLED"
    assert job(tenant, "LDIF", first + 1)["state"] == "DONE"
    assert "ann" in names(tenant) or tenant.ask(USERS, domainId=tenant.domain, search="ann")["totalCount"]


MAPPED = """dn: uid=ann,dc=example,dc=org
objectClass: inetOrgPerson
uid: ann
department;lang-de: Vertrieb
department;x-old;lang-de: Verkauf
2.5.4.12: Head
employeeType: admin
employeeType: auditor
memberOf: cn=vpn,dc=example,dc=org
memberOf: cn=staff\\, all,dc=example,dc=org
passportNumber: 007
userPassword: hunter2
2.5.4.35: hunter2
"""


def test_mapped_fields(tenant: Tenant) -> None:
    """reConfigure accepts names with options, OIDs and lists in any letter case.

    GetAllAdUsers returns the fields after the next import. It does so too if later only one value has changed.
    """
    where = {"domainId": tenant.domain, "directoryName": "LDIF"}
    imported(tenant, MAPPED)
    mapping = {
        "department": "Department;LANG-de", "fax": "department;lang-de;x-old", "group": "memberof",
        "subgroup": "2.5.4.12", "ROLES": "employeeType, memberOf", "primaryApp": ["passportNumber"],
    }  # fmt: skip
    tenant.ask("/api/v1/reConfigure", **where, fieldMappings=mapping)
    assert imported(tenant, MAPPED)["state"] == "DONE"
    (ann,) = tenant.ask(USERS, domainId=tenant.domain)["users"]
    assert ann["fields"] == {
        "department": "Vertrieb", "fax": "Verkauf", "group": "vpn, staff, all", "subgroup": "Head",
        "roles": "admin, auditor, vpn, staff, all", "primaryApp": "007",
    }  # fmt: skip
    change = (
        "dn: uid=ann,dc=example,dc=org\nchangetype: modify\nreplace: department;lang-de\ndepartment;lang-de: Einkauf\n"
    )
    send(tenant, change)
    job(tenant, "LDIF", tenant.ask(STATUS, DirectoryName="LDIF")["jobs"][0]["jobId"])
    (ann,) = tenant.ask(USERS, domainId=tenant.domain)["users"]
    assert ann["fields"]["department"] == "Einkauf"


@pytest.mark.parametrize(
    "attribute", ["userPassword", "2.5.4.35", "userpassword;lang-de", ["mail", "unicodePwd"], "mail, ms-Mcs-AdmPwd"]
)
def test_attributes_with_secrets_are_not_mapped(tenant: Tenant, attribute: str | list[str]) -> None:
    """An attribute that contains a secret is refused by name, by OID and with options."""
    imported(tenant, MAPPED)
    where = {"domainId": tenant.domain, "directoryName": "LDIF"}
    refused = tenant.refused("/api/v1/reConfigure", **where, fieldMappings={"fax": attribute})
    assert refused == (400, "invalid fieldMappings")
