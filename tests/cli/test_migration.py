"""`sallyport import`: the plan, then the changes, and only the differences from then on."""

import json
from pathlib import Path

from tests.areas.migration import ALWAYS, STAFF, client, export, policy, profile
from tests.areas.migration.test_others import CLEARPASS, ISE, folder
from tests.cli import OTHER_TENANT, Service, add_domain

WIFI = 'MATCH("NAS-Port-Type=^19$")'


def exported(path: Path) -> str:
    """Write an export of NPS, and return its path."""
    clients = [client("NPS switch", "203.0.113.1"), client("NPS Wi-Fi", "203.0.113.32/27"), client("old", "a.example")]
    policies = [
        policy("Staff", 1, [f'NTGROUPS("{STAFF}")', WIFI]),
        policy("Odd", 2, ['MATCH("User-Name=\\d")']),
        policy("No printers", 3, ['MATCH("NAS-Port-Type=^15$")', 'MATCH("User-Name=[0-9]")']),
        policy("Rest", 4, [ALWAYS]),
    ]
    profiles = [
        profile("Staff", msRADIUSFilterId="staff"), profile("Odd"), profile("No printers", grants=False),
        profile("Rest", grants=False),
    ]  # fmt: skip
    path.write_text(export(clients, policies, profiles))
    return str(path)


def test_nps_is_imported_once(service: Service, tmp_path: Path) -> None:
    """The plan changes nothing and shows no secret. A policy that denies must be decided. A second import changes
    nothing, and the settings of the domain and the tags of a client stay."""
    domain, file = add_domain(service, "moved"), exported(tmp_path / "nps.xml")
    service.ok("domain", "set", domain, "--issuer-name", "Moved")
    command = ("import", "nps", file, "--domain", domain)
    planned = service.cli(*command)
    assert planned.returncode == 0
    assert "+ client NPS switch (nps.xml:1)" in planned.stdout and "radius-secret-77" not in planned.stdout
    assert "--decide" in planned.stdout and "is no address" in planned.stdout
    assert "nothing is changed; write the plan with --yes" in planned.stderr
    assert json.loads(service.ok("rule", "list", "--domain", domain, "--json")) == []
    refused = service.cli(*command, "--yes")
    assert refused.returncode == 1 and "1 policy must be decided first: No printers" in refused.stderr
    decided = (*command, "--decide", "No printers=block", "--group", f"{STAFF}=Staff")
    done = service.cli(*decided, "--yes")
    assert done.returncode == 0, done.stderr
    assert "1 rule will admit logins without a second factor" in done.stderr
    own = sorted(
        json.loads(service.ok("rule", "list", "--domain", domain, "--json")), key=lambda each: each["position"]
    )
    assert [(each["name"], each["action"], each["enabled"]) for each in own] == [
        ("Staff", "allow", True), ("Odd (incomplete)", "allow", False), ("No printers", "block", True),
        ("Rest", "block", True), ("NPS: no policy matches", "block", True),
    ]  # fmt: skip
    assert own[0]["groups"] == ["Staff"] and own[2]["media"] == ["Ethernet"]
    assert (own[0]["role"], own[0]["replyAttributes"]) == ("Staff", [])
    assert "Filter-Id = staff" in service.ok("role", "show", "Staff", "--domain", domain)
    (shown,) = [each for each in json.loads(service.ok("domain", "list", "--json")) if each["domainName"] == "moved"]
    assert (shown["ruleOrder"], shown["issuerName"]) == ("listed", "Moved")
    service.ok("client", "set", "NPS switch", "--tag", "site=Berlin")
    again = json.loads(service.ok(*decided, "--yes", "--json"))
    assert again["steps"] == []
    (kept,) = json.loads(service.ok("client", "list", "--search", "NPS switch", "--json"))
    assert kept["tags"] == {"site": "Berlin"}


def test_rules_that_are_read_before_are_named(service: Service, tmp_path: Path) -> None:
    """A rule of the domain with a lower priority would decide before the policies of the old server. A disabled one is
    not named, nor one behind them."""
    domain, file = add_domain(service, "with rules"), exported(tmp_path / "nps.xml")
    for name, options in (("Mine", ()), ("Off", ("--disabled",)), ("Behind", ("--priority", "5000"))):
        service.ok("rule", "add", name, "--domain", domain, "--action", "allow", "--user", "ann", *options)
    planned = json.loads(service.ok("import", "nps", file, "--domain", domain, "--json"))
    (found,) = [each for each in planned["findings"] if "read before the imported ones" in each["text"]]
    assert "imported ones: Mine: disable" in found["text"] and found["weight"] == "note"


def test_devices_of_other_servers_are_imported(service: Service, tmp_path: Path) -> None:
    """The files of ISE and ClearPass, and any table, become RADIUS clients."""
    domain = add_domain(service, "devices moved")
    ise, clearpass, table = tmp_path / "ise.csv", tmp_path / "cp.xml", tmp_path / "t.csv"
    ise.write_text(ISE.replace("198.51.100.0/24", "203.0.113.128/28").replace("192.0.2.", "203.0.113.20"))
    clearpass.write_text(CLEARPASS.replace("198.51.100.0/24", "203.0.113.160/28").replace("192.0.2.", "203.0.113.2"))
    table.write_text("Name;IP;Secret\nfrom table;203.0.113.240;table-secret\n")
    columns = ("--map", "name=Name", "--map", "address=IP", "--map", "secret=Secret")
    for command in (("ise", ise), ("clearpass", clearpass), ("csv", table, *columns)):
        arguments = [str(each) for each in command]
        service.ok("import", *arguments, "--domain", domain, "--yes")
        assert json.loads(service.ok("import", *arguments, "--domain", domain, "--json"))["steps"] == []
    listed = {each["name"]: each for each in json.loads(service.ok("client", "list", "--json"))}
    assert listed["core"]["tags"] == {"device-type": "Switch", "location": "Berlin/Floor 2"}
    assert listed["ap-1"]["coaPort"] == 3799 and listed["from table"]["address"] == "203.0.113.240"


def test_objects_of_files_are_changed_only_with_override(service: Service, tmp_path: Path) -> None:
    """The import names the file of the first such object, and changes nothing."""
    domain, table = add_domain(service, "of files"), tmp_path / "t.csv"
    fields = {"name": "managed", "address": "203.0.113.239", "secret": "correct horse", "domains": ["of files"]}
    item = {"kind": "client", "name": "managed", "fields": fields, "source": "client.toml:1"}
    service.call("configuration.apply", org=1, tenant=1, items=[item], apply=True)
    table.write_text("Name;IP;Secret;Note\nmanaged;203.0.113.239;correct horse;new\n")
    columns = ("--map", "name=Name", "--map", "address=IP", "--map", "secret=Secret", "--map", "note=Note")
    command = ("import", "csv", str(table), *columns, "--domain", domain, "--yes")
    refused = service.cli(*command)
    assert refused.returncode == 1 and "client.toml manages the client managed" in refused.stderr, refused.stderr
    service.ok("--override", *command)
    assert json.loads(service.ok("client", "list", "--search", "managed", "--json"))[0]["note"] == "new"


def test_another_tenant(service: Service, tmp_path: Path) -> None:
    """--org and --tenant name the tenant that gets the objects, also if another tenant has a domain of the same
    name."""
    mine = add_domain(service, "shared name")
    service.call("tenant.add", org=9, tenant=4)
    ise = tmp_path / "ise.csv"
    ise.write_text(ISE.replace("198.51.100.0/24", "198.18.9.128/28").replace("192.0.2.", "198.18.9."))
    theirs = service.ok("domain", "add", "shared name", *OTHER_TENANT)
    command = ("import", "ise", str(ise), "--domain", "shared name", *OTHER_TENANT)
    before = {each["clientId"] for each in json.loads(service.ok("client", "list", "--json"))}
    assert "+ client core" in service.ok(*command)
    service.ok(*command, "--yes")
    added = [each for each in json.loads(service.ok("client", "list", "--json")) if each["clientId"] not in before]
    assert {each["name"] for each in added} == {"core", "core (2)", "wlc"}
    assert {str(each["domainIds"]) for each in added} == {f"[{theirs}]"} != {f"[{mine}]"}
    assert json.loads(service.ok(*command, "--json"))["steps"] == []


def test_a_folder_of_freeradius_is_imported(service: Service, tmp_path: Path) -> None:
    """Clients, stations, rules and users with their passwords."""
    domain = add_domain(service, "radius moved")
    top = folder(tmp_path)
    conf = top / "clients.conf"
    text = conf.read_text().replace("198.51.100.0/24", "203.0.113.176/28").replace("192.0.2.1", "203.0.113.250")
    conf.write_text(text.replace("client core", "client free-core"))
    done = service.cli("import", "freeradius", str(top), "--domain", domain, "--yes")
    assert done.returncode == 0, done.stderr
    assert "b0b" not in done.stdout + done.stderr
    people = json.loads(service.ok("user", "list", "--domain", domain, "--json"))
    assert {each["userName"] for each in people} == {"alice", "bob", "carl"}
    assert len(json.loads(service.ok("bypass", "list", "--domain", domain, "--json"))) == 2
    assert json.loads(service.ok("import", "freeradius", str(top), "--domain", domain, "--json"))["steps"] == []
