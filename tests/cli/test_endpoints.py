"""`sallyport instance` and `sallyport group`, and the import and export of instances and users."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas.users.keys import ECDSA, ED25519
from tests.cli import SECRET, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient


@pytest.fixture
def domain(service: Service, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the ID of a new domain."""
    yield add_domain(service, request.node.name)


def table(text: str) -> list[dict[str, str]]:
    """Return the rows of CSV text."""
    return list(csv.DictReader(io.StringIO(text)))


def file(service: Service, text: str, name: str = "file.csv") -> str:
    """Write a file with this text, and return its path."""
    path = Path(service.directory) / name
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


def plan(service: Service, kind: str, path: str, domain: str, *options: str) -> list[tuple[int, str, str]]:
    """Return the line, the action, and the changes or the reason of each row of an import."""
    done = service.cli(kind, "import", path, "--domain", domain, "--json", *options)
    rows = json.loads(done.stdout)["rows"]
    return [(row["line"], row["action"], row["reason"] or ", ".join(row["changes"])) for row in rows]


def test_an_instance_is_added_listed_and_removed(service: Service, domain: str) -> None:
    """`add` prints the ID. `list` finds a part of an address. An invalid value is refused, and the message names its
    option.
    """
    made = service.ok("instance", "add", "web", "--domain", domain, "--os", "1", "--private-ip", "10.0.0.1")
    assert made.isdecimal()
    again = service.cli("instance", "add", "WEB", "--domain", domain)
    assert (again.returncode, again.stdout) == (1, "")
    (row,) = json.loads(service.ok("instance", "list", "--domain", domain, "--search", "0.0.1", "--json"))
    assert (row["instanceId"], row["instanceName"], row["osName"], row["status"]) == (
        int(made),
        "web",
        "Linux",
        "Inactive",
    )
    assert "web" in service.ok("instance", "list", "--domain", domain)
    assert "web" not in service.ok("instance", "list", "--domain", domain, "--search", "nowhere")
    service.ok("instance", "remove", "Web", "--domain", domain)
    assert service.cli("instance", "remove", "web", "--domain", domain).returncode == 1
    for wrong in (("--public-ip", "hunter2"), ("--auth-type", "hunter2")):
        refused = service.cli("instance", "add", "x", "--domain", domain, *wrong)
        assert refused.returncode == 1 and f'{wrong[0]}: "hunter2" is not accepted' in refused.stderr


def test_users_are_assigned_to_an_instance(service: Service, domain: str) -> None:
    """Users are assigned and removed by name. If one of them is unknown, nothing is changed. Repeating an assignment is
    not an error.
    """
    service.ok("instance", "add", "web", "--domain", domain)
    for name in ("ann", "ben"):
        add_user(service, domain, name)

    def total() -> object:
        return service.instances(domain)[0]["totalUsers"]

    for _ in range(2):
        service.ok("instance", "assign", "WEB", "--domain", domain, "--user", "ann", "--user", "Ben")
        assert total() == 2
    for arguments, message in (
        (("web", "--user", "eve"), 'user "eve" not found; see: sallyport user list'),
        (("x", "--user", "ann"), 'instance "x" not found'),
    ):
        refused = service.cli("instance", "assign", *arguments, "--user", "ben", "--remove", "--domain", domain)
        assert refused.returncode == 1 and message in refused.stderr
    assert total() == 2
    service.ok("instance", "assign", "web", "--domain", domain, "--user", "ann", "--remove")
    assert total() == 1


def test_a_group_is_added_assigned_and_removed(service: Service, domain: str) -> None:
    """`list` shows the users and the status of a group. An assignment with an unknown user changes nothing."""
    made = service.ok("group", "add", "staff", "--domain", domain, "--ou", "People")
    service.ok("instance", "add", "web", "--domain", domain)
    add_user(service, domain, "ann")
    service.ok("group", "assign", "Staff", "--domain", domain, "--user", "ann", "--instance", "web")
    refused = service.cli("group", "assign", "staff", "--domain", domain, "--user", "ann", "--user", "eve", "--remove")
    assert (refused.returncode, refused.stderr) == (
        1,
        f'sallyport: user "eve" not found; see: sallyport user list --domain {domain}\n',
    )
    service.ok("group", "status", "staff", "Disabled", "--domain", domain)
    (row,) = json.loads(service.ok("group", "list", "--domain", domain, "--json"))
    assert (row["groupId"], row["usersCount"], row["status"], row["ou"]) == (int(made), 1, "Disabled", "People")
    assert row["credentialPolicy"] is None
    (user,) = service.users(domain)
    assert (user["groups"], user["instanceIds"]) == (["staff"], [])
    service.ok("group", "assign", "staff", "--domain", domain, "--user", "ANN", "--remove")
    assert "staff" in service.ok("group", "list", "--domain", domain, "--search", "TAF")
    service.ok("group", "remove", "staff", "--domain", domain)
    assert json.loads(service.ok("group", "list", "--domain", domain, "--json")) == []
    assert service.cli("group", "assign", "staff", "--domain", domain).returncode == 2


def test_exported_instances_can_be_imported(service: Service, domain: str) -> None:
    """CSV and JSON keep every field, even a name that looks like a formula."""
    fields = ("--os", "2", "--public-ip", "192.0.2.1", "--host-name", "w.example", "--auth-type", "ssh,did")
    service.ok("instance", "add", "web, the first", "--domain", domain, *fields)
    service.ok("instance", "add", "=1+1", "--domain", domain)
    exported = service.ok("instance", "export", "--domain", domain)
    assert [row["instanceName"] for row in table(exported)] == ["web, the first", "'=1+1"]
    for form, name in ((), "out.csv"), (("--json",), "out.json"):
        other = add_domain(service, f"{domain} {name}")
        path = file(service, service.ok("instance", "export", "--domain", domain, *form), name)
        service.ok("instance", "import", path, "--domain", other)
        assert service.ok("instance", "export", "--domain", other) == exported
        assert [action for _, action, _ in plan(service, "instance", path, other)] == ["unchanged", "unchanged"]


def test_a_dry_run_changes_nothing(service: Service, domain: str) -> None:
    """A dry run lists the changes, and the import then makes exactly these."""
    service.ok("instance", "add", "old", "--domain", domain, "--public-ip", "192.0.2.1")
    path = file(service, "Instance_Name,os_id,PUBLICIP\nOld,2,\nnew,,192.0.2.2\n")
    expected = [(2, "changed", "name, os_id"), (3, "new", "")]
    assert plan(service, "instance", path, domain, "--dry-run") == expected
    assert len(service.instances(domain)) == 1
    done = service.cli("instance", "import", path, "--domain", domain)
    assert done.returncode == 0 and "1 changed, 1 new" in done.stderr
    rows = {row["instanceName"]: row for row in service.instances(domain)}
    assert (rows["Old"]["osId"], rows["Old"]["publicIp"], rows["new"]["publicIp"]) == (2, "192.0.2.1", "192.0.2.2")


def test_refused_lines_are_named(service: Service, domain: str) -> None:
    """A refused row is reported with its line and the reason, but without its value. Without --skip-refused nothing is
    imported.
    """
    path = file(service, "instanceName,publicIp\ngood,\nbad,hunter2\n,192.0.2.1\nGOOD,192.0.2.9\n")
    expected = [
        (2, "new", ""),
        (3, "refused", "publicIp must be an IP address"),
        (4, "refused", "instanceName is missing"),
        (5, "refused", "the name is used twice; only the first row with this name is imported"),
    ]
    assert plan(service, "instance", path, domain) == expected
    refused = service.cli("instance", "import", path, "--domain", domain)
    assert refused.returncode == 1 and "3 of 4" in refused.stderr
    assert "hunter2" not in refused.stdout + refused.stderr
    assert service.instances(domain) == []
    service.ok("instance", "import", path, "--domain", domain, "--skip-refused")
    assert [row["instanceName"] for row in service.instances(domain)] == ["good"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("instanceName,colour\na,red\n", "unknown column colour"),
        ("instanceName,osId\na\n", "line 2 has more or fewer cells"),
        ("instanceName\na,b\n", "line 2 has more or fewer cells"),
        ('instanceName\n"a\n', "unexpected end of data"),
        ("instanceName,instance_name\na,b\n", "line 1: the column instanceName is there twice"),
        ("instanceName,colour\n", "unknown column colour"),
        ("[1]", "entry 1 is not an object"),
        ('{"instanceName": "a"}', "not an array of objects"),
        ('[{"instanceName": ', "Expecting value"),
    ],
)
def test_a_malformed_file_is_refused(service: Service, domain: str, text: str, message: str) -> None:
    """One line on standard error has the place and the cause of the error. Nothing is imported."""
    done = service.cli("instance", "import", file(service, text), "--domain", domain)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_imported_users_can_log_in(service: Service, domain: str) -> None:
    """Passwords, keys, instances and groups of users are imported. A changed password applies to the next login."""
    add_client(service, f"gate {domain}", "127.7.0.77", domain)
    service.ok("instance", "add", "web", "--domain", domain)
    service.ok("group", "add", "staff", "--domain", domain)
    row = {"userName": "bob", "password": "first", "sshKey": [f"{ED25519} a", f"{ECDSA} b"], "did": "did:web:x"}
    rows = [{**row, "instances": ["web"], "groups": ["staff"], "privilegedUser": "yes"}, {"userName": "carl"}]
    path = file(service, json.dumps(rows), "users.json")
    assert [action for _, action, _ in plan(service, "user", path, domain)] == ["new", "new"]
    with RadiusClient(service.ports.auth, SECRET, source="127.7.0.77") as gate:
        assert gate.login("bob", "first") == ACCESS_ACCEPT
        path = file(service, "userName,password\nbob,'=1+1\n")
        assert plan(service, "user", path, domain) == [(2, "changed", "password")]
        assert (gate.login("bob", "first"), gate.login("bob", "'=1+1")) == (ACCESS_REJECT, ACCESS_ACCEPT)
    (listed, _) = json.loads(service.ok("user", "export", "--domain", domain, "--json"))
    assert (listed["instances"], listed["groups"], listed["privilegedUser"]) == (["web"], ["staff"], "yes")


def instances_file(service: Service, names: Sequence[str]) -> str:
    """Write a file of instances and return its path."""
    return file(service, json.dumps([{"instanceName": name} for name in names]), "instances.json")


def test_an_export_of_users_has_no_secret(service: Service, domain: str) -> None:
    """The export contains neither passwords nor seeds. The other fields can be imported again in both formats."""
    instances = ["web", 'a, "b"', "=1+1"]
    service.ok("instance", "import", instances_file(service, instances), "--domain", domain)
    row = {"userName": "bob", "password": "hunter2", "motp": "JBSWY3DPEHPK3PXP", "instances": instances}
    keys = f"{ED25519} a, {ECDSA} b"
    path = file(service, json.dumps([{**row, "sshKey": keys.replace(", ", "\n"), "userType": "Admin"}]), "in.json")
    service.ok("user", "import", path, "--domain", domain)
    for form, name in ((), "out.csv"), (("--json",), "out.json"):
        exported = service.ok("user", "export", "--domain", domain, *form)
        assert "hunter2" not in exported and "JBSWY3DPEHPK3PXP" not in exported
        other = add_domain(service, f"{domain} {name}")
        service.ok("instance", "import", instances_file(service, instances), "--domain", other)
        service.ok("user", "import", file(service, exported, name), "--domain", other)
        (listed,) = json.loads(service.ok("user", "export", "--domain", other, "--json"))
        assert listed["instances"] == instances
        assert service.ok("user", "export", "--domain", other, *form) == exported
    (exported_row,) = table(service.ok("user", "export", "--domain", domain))
    assert (exported_row["userName"], exported_row["userType"], exported_row["sshKey"]) == ("bob", "Admin", keys)


def test_a_file_of_several_pages_is_imported_and_exported(service: Service, domain: str) -> None:
    names = [f"host-{number:04}" for number in range(1203)]
    path = file(service, "\n".join(["instanceName", *names]))
    done = service.cli("instance", "import", path, "--domain", domain)
    assert done.returncode == 0 and "1203 new" in done.stderr
    exported = table(service.ok("instance", "export", "--domain", domain))
    assert [row["instanceName"] for row in exported] == names
