"""/ad/ImportConfiguration: a form with a file of another RADIUS server."""

from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.test_managed import client_of_files, entries
from tests.api.world import Tenant, problem
from tests.areas.migration.test_archives import tar, zipped
from tests.waiting import eventually

IMPORT = "/ad/ImportConfiguration"
NPS = Path(__file__).parents[2] / "docs" / "guides" / "nps_example.xml"
COLUMNS = "name=Name\naddress=Address\nsecret=Secret"
BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><Root>&b;</Root>'


def send(tenant: Tenant, content: str | bytes, *, token: str = "", query: str = "", **fields: Any) -> httpx.Response:
    """Upload a file. By default it is a table for the tenant's domain."""
    data = {"domainId": str(tenant.domain), "fileName": "old.csv", "format": "csv", "columns": COLUMNS, **fields}
    octets = content.encode() if isinstance(content, str) else content
    headers = {"x-authorization": token or tenant.token}
    return tenant.world.http.post(IMPORT + query, data=data, files={"file": ("x", octets)}, headers=headers, timeout=60)


def table(*rows: str) -> str:
    """Return a table of RADIUS clients."""
    return "\n".join(["Name,Address,Secret", *rows, ""])


def planned(tenant: Tenant, content: str | bytes, **fields: Any) -> dict[str, Any]:
    """Upload a file, and return the answer."""
    answer = send(tenant, content, **fields)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def clients(tenant: Tenant) -> list[str]:
    """Return the names of the tenant's RADIUS clients."""
    return [each["name"] for each in tenant.ask("/network_device/ListClients")["clients"]]


def open_files(tenant: Tenant) -> list[str]:
    """Return the files in the data directory that the service has open without a name."""
    service = tenant.world.service
    folder = Path(f"/proc/{service.process_id}/fd")
    targets = [str(each.readlink()) for each in folder.iterdir() if each.is_symlink()]
    return [each for each in targets if str(service.data_dir) in each and "(deleted)" in each]


def test_a_plan_is_written_with_the_same_file(tenant: Tenant) -> None:
    """The first request changes nothing. The second one writes the plan. The third one finds nothing to change. No
    answer has a secret, and no file is left."""
    before = {path.name for path in tenant.world.service.data_dir.iterdir()}
    address = tenant.world.address()
    content = table(f"core,{address},correct horse", "host,switch.example.org,another secret")
    plan = planned(tenant, content)
    assert (plan["applied"], plan["added"], clients(tenant)) == (False, 1, [])
    (step,) = plan["steps"]
    assert (
        step["source"] == "old.csv:2"
        and step["fields"]["address"] == [None, f"{address}/32"]
        and "secret" not in step["fields"]
    )
    (finding,) = plan["findings"]
    assert (finding["weight"], finding["source"]) == ("left out", "old.csv:3")
    done = send(tenant, content, plan=plan["plan"])
    assert done.json()["applied"] and clients(tenant) == ["core"], done.text
    assert "correct horse" not in str(plan) + done.text and "another secret" not in str(plan)
    again = planned(tenant, content)
    assert (again["added"], again["changed"], again["unchanged"]) == (0, 0, 1)
    assert {path.name for path in tenant.world.service.data_dir.iterdir()} <= before | {"sallyport.db-journal"}
    assert open_files(tenant) == []
    with tenant.world.service.radius("correct horse", source=address) as client:
        assert client.login("nobody", "wrong") == 3


def test_another_file_needs_another_plan(tenant: Tenant) -> None:
    """The file with another secret, other options, and a changed configuration are refused."""
    address = tenant.world.address()
    content = table(f"core,{address},correct horse")
    plan = planned(tenant, content)["plan"]
    assert problem(send(tenant, table(f"core,{address},wrong horse"), plan=plan))[0] == 409
    assert problem(send(tenant, content, plan=plan, timezone="Europe/Berlin"))[0] == 409
    tenant.ask("/network_device/AddClient", name="core", address=address, secret="x" * 16)
    status, text = problem(send(tenant, content, plan=plan))
    assert (status, "make a new plan" in text) == (409, True)


def test_an_export_of_nps_needs_decisions(tenant: Tenant) -> None:
    """A group that no directory knows keeps its rule disabled, or needs a decision if the rule denies."""
    octets = NPS.read_bytes()
    plan = planned(tenant, octets, format="nps", fileName="nps.xml", timezone="Europe/Berlin")
    assert all(each["source"].startswith("nps.xml") for each in (*plan["steps"], *plan["findings"]))
    assert plan["unknownGroups"] and {each["kind"] for each in plan["steps"]} >= {"client", "rule"}
    assert plan["undecided"] == ["No guests", "Staff on Wi-Fi"]
    refused = send(tenant, octets, format="nps", fileName="nps.xml", timezone="Europe/Berlin", plan=plan["plan"])
    assert problem(refused) == (409, "2 policies must be decided first")
    fields = {
        "format": "nps",
        "fileName": "nps.xml",
        "groups": "\n".join(f"{sid}=group {at}" for at, sid in enumerate(plan["unknownGroups"])),
        "decisions": "\n".join(f"{name}=block" for name in plan["undecided"]),
    }
    decided = planned(tenant, octets, **fields)
    assert decided["unknownGroups"] == decided["undecided"] == [] and "secret" not in str(decided["steps"]).lower()


@pytest.mark.parametrize(
    ("content", "fields", "part"),
    [
        (BOMB, {"format": "nps"}, "document type"),
        ("<Root>", {"format": "clearpass"}, "not valid XML"),
        (b"\0" * 1000, {"format": "ise"}, "no column"),
        (table(), {"columns": "name=Name"}, "address"),
        (table(), {"columns": "name"}, "columns"),
        (table(), {"decisions": "x=maybe"}, "decisions"),
        (table("a" * 200_000), {}, "old.csv"),
        (table(), {"format": "freeradius"}, "no archive"),
        (tar({"clients.conf": b"$INCLUDE /etc/passwd"}), {"format": "freeradius"}, "outside of the folder"),
    ],
    ids=["entities", "truncated", "octets", "no-column", "no-sign", "decision", "long-cell", "no-archive", "include"],
)
def test_a_wrong_file(tenant: Tenant, content: str | bytes, fields: dict[str, str], part: str) -> None:
    """A file or an option that cannot be read is refused with the reason, and nothing is stored."""
    answer = send(tenant, content, **fields)
    assert answer.status_code == 400 and part in answer.text, answer.text
    assert open_files(tenant) == []


def test_a_very_large_file(tenant: Tenant) -> None:
    """A file of 200 MB is refused at its announced size. A result that is too large is refused too."""
    kind = "multipart/form-data; boundary=x"
    headers = {"x-authorization": tenant.token, "content-type": kind, "content-length": str(200 << 20)}
    connection = HTTPConnection("127.0.0.1", tenant.world.service.ports.http, timeout=30)
    connection.request("POST", IMPORT, headers=headers)
    assert connection.getresponse().status == 413
    connection.close()
    many = table(*(f"c{at},10.{at >> 16}.{at >> 8 & 255}.{at & 255},{'s' * 60}" for at in range(20_000)))
    answer = send(tenant, many)
    assert (answer.status_code, "export it in parts" in answer.text) == (400, True), answer.text


def test_a_slow_upload_delays_no_other_tenant(tenant: Tenant) -> None:
    """A tenant has one upload at a time. While it lasts, others import."""
    other, address = tenant.world.tenant(), tenant.world.address()
    headers = {
        "x-authorization": tenant.token,
        "content-type": "multipart/form-data; boundary=x",
        "content-length": str(1 << 20),
    }
    connection = HTTPConnection("127.0.0.1", tenant.world.service.ports.http, timeout=30)
    connection.request("POST", IMPORT, headers=headers)
    connection.send(b'--x\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nName')
    eventually(lambda: len(open_files(tenant)) == 1)
    assert planned(other, table(f"core,{address},correct horse"))["added"] == 1
    assert problem(send(tenant, table()))[0] == 429
    connection.close()
    eventually(lambda: not open_files(tenant))
    assert send(tenant, table(f"core,{address},correct horse")).status_code == 200


def test_what_another_tenant_may_not_do(tenant: Tenant) -> None:
    """A tenant imports neither into a domain of another one, nor for addresses of others, nor wide networks. An
    operator may not import."""
    other, address = tenant.world.tenant(), tenant.world.address()
    assert problem(send(other, table(), domainId=str(tenant.domain))) == (403, "domain not in tenant")
    tenant.ask("/network_device/AddClient", name="a", address=address, secret="x" * 16)
    assert problem(send(other, table(f"b,{address},correct horse")))[0] == 409
    assert problem(send(other, table("all,0.0.0.0/0,correct horse")))[0] == 403
    assert problem(send(tenant, table(), token=tenant.role("operator")))[0] == 403


def test_objects_of_files_are_changed_only_with_override(tenant: Tenant) -> None:
    """The plan names what it changes of files, and is written only with `override`."""
    client_of_files(tenant)
    (before,) = tenant.ask("/network_device/ListClients")["clients"]
    content = table(f"VPN,{before['address']},another horse 12")
    plan = planned(tenant, content)
    assert plan["managed"] == ["client vpn"]
    status, text = problem(send(tenant, content, plan=plan["plan"]))
    assert (status, text.partition(":")[0]) == (409, "client.toml manages the client vpn")
    assert entries(tenant, "configuration.apply") == ["1 object"]
    assert entries(tenant, "configuration.override") == []
    done = send(tenant, content, query="?override=true", plan=plan["plan"])
    assert done.status_code == 200, done.text
    assert set(entries(tenant, "configuration.override")) == {"client vpn"}


def test_references_are_texts(tenant: Tenant) -> None:
    """A secret that looks like a reference is the secret itself: no file and no variable is read."""
    address = tenant.world.address()
    content = table(f"core,{address},file:/etc/passwd")
    send(tenant, content, plan=planned(tenant, content)["plan"])
    with tenant.world.service.radius("file:/etc/passwd", source=address) as client:
        assert client.login("nobody", "wrong") == 3


@pytest.mark.parametrize("pack", [tar, zipped], ids=["tar", "zip"])
def test_an_archive_of_freeradius(tenant: Tenant, pack: Callable[[Mapping[str, bytes]], bytes]) -> None:
    """Clients, rules and users of the folder are planned and written; the users can log in once the admin enables the
    rule that admits them. No answer has a password, and nothing of the archive is left."""
    address = tenant.world.address()
    octets = pack(
        {
            "raddb/clients.conf": f"client core {{ ipaddr = {address}\n secret = core-secret-1 }}\n".encode(),
            "raddb/mods-config/files/authorize": 'zoë Cleartext-Password := "correct horse"\n'.encode()
            + 'mül Cleartext-Password := "pass of mül"\n'.encode("latin-1"),
        }
    )
    fields = {"format": "freeradius", "fileName": "raddb.tgz"}
    plan = planned(tenant, octets, **fields)
    people = [(each["sign"], each["name"], each["source"]) for each in plan["steps"] if each["kind"] == "user"]
    place = "mods-config/files/authorize"
    assert people == [("+", "zoë", f"{place}:1"), ("+", "mül", f"{place}:2")]
    done = send(tenant, octets, **fields, plan=plan["plan"])
    assert done.json()["applied"], done.text
    assert "correct horse" not in str(plan) + done.text
    again = planned(tenant, octets, **fields)
    assert (again["added"], again["changed"]) == (0, 0) and again["unchanged"] == plan["added"] + plan["changed"]
    assert not list(tenant.world.service.data_dir.glob(".unpacked-*"))
    (everyone,) = [
        each
        for each in tenant.ask("/ad/ListLoginRules", domainId=tenant.domain)["rules"]
        if each["name"] == "FreeRADIUS: all other users"
    ]
    tenant.ask("/ad/UpdateLoginRule", domainId=tenant.domain, ruleId=everyone["ruleId"], enabled=True, everyone=True)
    with tenant.world.service.radius("core-secret-1", source=address) as client:
        assert client.login("zoë", "correct horse") == 2
        assert client.login("zoë", "wrong") == 3
