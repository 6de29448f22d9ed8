"""`sallyport rule`: the rules of a domain, and the test of a login against them."""

import json
from typing import Any

import pytest

from tests.cli import TENANT, Service, add_client, add_domain, add_user
from tests.running_service import RunningService


@pytest.fixture(scope="module")
def corp(service: Service) -> str:
    """Return the ID of a domain."""
    return add_domain(service, "corp")


def rules(service: Service, domain: str = "corp") -> list[dict[str, Any]]:
    """Return the rules of a domain in the order in which they are evaluated."""
    found: list[dict[str, Any]] = json.loads(service.ok("rule", "list", "--domain", domain, "--json"))
    return found


def test_add_prints_the_id_alone(service: Service, corp: str) -> None:
    """Standard output is the ruleId and a line end. The API lists the rule with this ID."""
    add_domain(service, "printed")
    add_user(service, "printed", "ann")
    added = service.program("rule", "add", "staff", "--domain", "printed", "--action", "block", "--user", "ann")
    assert (added.returncode, added.stderr) == (0, "")
    assert added.stdout.strip().isdecimal() and added.stdout.endswith("\n")
    (kept,) = rules(service, "printed")
    assert (kept["ruleId"], kept["name"], kept["action"], kept["users"]) == (
        int(added.stdout),
        "staff",
        "block",
        ["ann"],
    )


def test_every_option_is_stored(service: Service, corp: str) -> None:
    """Each scope option can be repeated. A time has days, a start, an end and a time zone."""
    service.ok(
        "rule", "add", "all", "--domain", corp, "--action", "mfa_required", "--priority", "7", "--disabled",
        "--user", "a", "--user", "b", "--group", "g", "--ou", "OU=x", "--kind", "Machine", "--client", "192.0.2.0/24",
        "--product", "Cisco ISE", "--medium", "wireless", "--station", "AA-BB-CC-DD-EE-FF", "--service-type", "Login",
        "--ssid", "corp", "--ssid", "guests", "--port", "Gi1/*", "--method", "pap", "--realm", "x", "--address", "::1",
        "--tag", "site=x", "--certificate", "sid=S-1-5-2", "--attribute", "NAS-Identifier~a*", "--attribute", "Class=x",
        "--time", "fri-sun,tue 22:00-06:00 Europe/Berlin", "--vlan", "20", "--reply", "Filter-Id = x=y",
        "--max-sessions", "3", "--over-limit", "reject",
    )  # fmt: skip
    kept = next(each for each in rules(service) if each["name"] == "all")
    assert kept.pop("ruleId") and kept.pop("position") and kept.pop("encoded")
    assert kept.pop("exemptsAll") is False
    assert str(kept.pop("domainId")) == corp
    assert kept == {
        "name": "all", "action": "mfa_required", "priority": 7, "enabled": False, "users": ["a", "b"], "groups": ["g"],
        "ous": ["OU=x"], "kinds": ["machine"], "clients": ["192.0.2.0/24"], "products": ["Cisco ISE"],
        "media": ["Wireless"],
        "stations": ["AA-BB-CC-DD-EE-FF"], "serviceTypes": ["Login-User"],
        "ssids": ["corp", "guests"], "ports": ["Gi1/*"], "methods": ["pap"], "realms": ["x"], "addresses": ["::1"],
        "tags": ["site=x"], "certificates": ["sid=S-1-5-2"], "attributes": ["NAS-Identifier~a*", "Class=0x78"],
        "time": {"days": ["fri", "sat", "sun", "tue"], "from": "22:00", "until": "06:00", "timezone": "Europe/Berlin"},
        "vlan": "20", "replyAttributes": [{"name": "Filter-Id", "value": "x=y"}],
        "role": "", "maxSessions": 3, "overLimit": "reject", "provider": "", "strength": "any",
    }  # fmt: skip
    table = service.ok("rule", "list", "--domain", corp)
    assert "user a, b; group g;" in table and "22:00-06:00 Europe/Berlin" in table
    assert "vlan 20, Filter-Id=x=y, at most 3 sessions (reject)" in table


def test_update_keeps_fields_and_clears_empty_ones(service: Service, corp: str) -> None:
    """A field that is not given keeps its value. An empty value clears it."""
    rule = service.ok(
        "rule", "add", "old", "--domain", corp, "--action", "allow", "--user", "ann", "--time", "mon", "--vlan", "5",
        "--reply", "Class=a",
    ).strip()  # fmt: skip
    service.ok("rule", "update", rule, "--domain", corp, "--name", "new", "--action", "block", "--group", "g")
    kept = next(each for each in rules(service) if each["ruleId"] == int(rule))
    assert (kept["name"], kept["action"], kept["users"], kept["groups"], kept["vlan"]) == (
        "new", "block", ["ann"], ["g"], "5",
    )  # fmt: skip
    service.ok(
        "rule", "update", rule, "--domain", corp, "--user", "", "--time", "", "--vlan", "", "--reply", "", "--disabled"
    )
    kept = next(each for each in rules(service) if each["ruleId"] == int(rule))
    assert (kept["users"], kept["groups"], kept["time"], kept["vlan"], kept["replyAttributes"], kept["enabled"]) == (
        [], ["g"], None, "", [], False,
    )  # fmt: skip
    service.ok("rule", "update", rule, "--domain", corp, "--enabled")
    assert next(each for each in rules(service) if each["ruleId"] == int(rule))["enabled"]


def test_a_rule_for_everyone_needs_confirmation(service: Service, corp: str) -> None:
    """The refusal names the options of the command line. With --everyone the rule is stored, and the doctor names it in
    a warning.
    """
    add_domain(service, "open")
    add = ("rule", "add", "all", "--domain", "open", "--action", "allow")
    refused = service.cli(*add)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--user, --group or --client, or confirm it with --everyone" in refused.stderr
    refused = service.cli(*add[:-1], "block")
    assert refused.returncode == 1 and "block every login of the domain: give a scope" in refused.stderr
    assert "--user, --group or --client, or confirm it with --everyone" in refused.stderr
    assert "leave out --everyone" in service.cli(*add, "--everyone", "--user", "ann").stderr
    rule = service.ok(*add, "--everyone").strip()
    findings = [each["finding"] for each in json.loads(service.cli("doctor", "--json").stdout)]
    assert [each.split(":")[0] for each in findings if f"rule {rule} all allows and has no scope" in each] == ["open"]
    service.ok("rule", "update", rule, "--domain", "open", "--disabled")
    assert "has no scope" not in service.cli("doctor", "--json").stdout


def test_unknown_names_are_warned_about(service: Service, corp: str) -> None:
    """Each warning has the most similar existing name. Standard output is only the ruleId."""
    add_domain(service, "named")
    add_user(service, "named", "rosalind")
    add_client(service, "vpn-west", "198.51.100.9")
    names = ("--user", "rosalin", "--group", "nobodies", "--client", "vpn-wset", "--client", "192.0.2.1")
    added = service.cli("rule", "add", "r", "--domain", "named", "--action", "block", *names)
    assert added.stdout.strip().isdecimal()
    assert added.stderr.splitlines() == [
        "warning: no user 'rosalin' in this domain yet; nearest: rosalind",
        "warning: no group 'nobodies' in this domain yet",
        "warning: no RADIUS client 'vpn-wset' in this tenant yet; nearest: vpn-west",
    ]
    changed = service.cli("rule", "update", added.stdout.strip(), "--domain", "named", "--user", "rosalint")
    assert changed.stderr.splitlines()[1:] == ["warning: no user 'rosalint' in this domain yet; nearest: rosalind"]


def test_rule_test_prints_each_rule_and_the_decision(service: Service) -> None:
    """The output has a table of the rules that are read, and then a line for each step. The client selects the
    domain.
    """
    add_domain(service, "tested")
    add_user(service, "tested", "ann")
    add_client(service, "tested nas", "198.51.100.44", "tested")
    add = ("rule", "add", "--domain", "tested", "--action")
    service.ok(*add, "block", "bob's", "--user", "bob")
    night = service.ok(*add, "block", "night", "--time", "22:00-06:00").strip()
    asked = ("rule", "test", "--user", "ann", "--client", "tested nas", "--at", "2026-01-05T23:00:00")
    table, steps = service.ok(*asked).split("\n\n")[0].splitlines(), service.ok(*asked).splitlines()
    assert [line.split()[2:] for line in table[2:4]] == [
        ["bob's", "block", "differs", "users", "ann"], ["night", "block", "decides"],
    ]  # fmt: skip
    assert steps[-5:] == [
        f"rule {night} decides: block",
        "first factor: local, taken as passed",
        "second factor: no MFA provider, not asked",
        "domain tested: monitor, fallback deny",
        "decision: reject (blocked by rule); sent: accept",
    ]
    service.ok("rule", "update", night, "--domain", "tested", "--max-sessions", "2", "--over-limit", "end_oldest")
    assert "at most 2 sessions (end_oldest)" in service.ok("rule", "list", "--domain", "tested")
    assert "limit of 2 parallel sessions: " in service.ok(*asked)
    for client in ("198.51.100.44", "tested nas"):
        tested = json.loads(
            service.ok("rule", "test", "--user", "ann@tested", "--client", client, "--at", AT, "--json")
        )
        assert (tested["ruleId"], tested["action"], tested["user"]) == (None, "mfa_required", "ann")
        assert [(each["position"], each["result"]) for each in tested["rules"]] == [(1, "differs"), (2, "differs")]
    unknown = service.cli("rule", "test", "--user", "zed", "--domain", "tested", "--group", "g", "--at", AT)
    assert "first factor: local, unknown user" in unknown.stdout


AT = "2026-01-05T12:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--user", "ann"), 2, "--domain or --client"),
        (("--user", "ann", "--client", "no such"), 1, 'RADIUS client "no such" not found'),
        (("--user", "ann", "--domain", "corp", "--client", "no such"), 1, "RADIUS client not found"),
        (("--user", "ann", "--domain", "corp", "--at", "tomorrow"), 1, "at"),
        (("--user", "ann", "--domain", "corp", "--medium", "aether"), 1, "media"),
        (("--user", "ann", "--domain", "corp", "--nas", "x"), 1, "nas"),
    ],
)
def test_rule_test_refuses_invalid_options(
    service: Service, corp: str, arguments: tuple[str, ...], status: int, message: str
) -> None:
    """The message names the wrong option, and standard output is empty."""
    refused = service.cli("rule", "test", *arguments)
    assert (refused.returncode, refused.stdout) == (status, "")
    assert message in refused.stderr


def test_the_list_is_in_order_of_evaluation(service: Service) -> None:
    """The most specific rule comes first. Among equally specific rules, the one with the lowest priority number comes
    first.
    """
    add_domain(service, "ordered")
    for name, options in (("all", ()), ("first of all", ("--priority", "1")), ("ann", ("--user", "ann"))):
        service.ok("rule", "add", name, "--domain", "ordered", "--action", "mfa_required", *options)
    assert [each["name"] for each in rules(service, "ordered")] == ["ann", "first of all", "all"]
    assert "everybody" in service.ok("rule", "list", "--domain", "ordered")


def test_rules_are_removed(service: Service) -> None:
    """`remove` removes several rules. If one of them is not found, none is removed. A rule of another domain is not
    found.
    """
    add_domain(service, "removed")
    ids = [
        service.ok("rule", "add", "r", "--domain", "removed", "--action", "block", "--everyone").strip()
        for _ in range(2)
    ]
    assert service.cli("rule", "remove", *ids, "999999", "--domain", "removed").returncode == 1
    assert len(rules(service, "removed")) == 2
    service.ok("rule", "remove", *ids, "--domain", "removed")
    assert rules(service, "removed") == []


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ("add", "r", "--action", "allow", "--domain", "nowhere"),
            1,
            'domain "nowhere" not found; existing: ',
        ),
        (("add", "r", "--action", "deny", "--domain", "corp"), 2, "deny"),
        (("add", "r", "--domain", "corp"), 2, "--action"),
        (("add", "r", "--action", "allow"), 2, "--domain"),
        (("add", "r", "--action", "block", "--domain", "corp", "--reply", "Class"), 2, "NAME=VALUE"),
        (
            ("add", "r", "--action", "block", "--domain", "corp", "--reply", "State=x"),
            1,
            "a rule or role cannot set State",
        ),
        (
            ("add", "r", "--action", "block", "--domain", "corp", "--time", "mon Mars/Base"),
            1,
            '--time: "Mars/Base" is not accepted',
        ),
        (("add", "r", "--action", "block", "--domain", "corp", "--time", "UTC Mars/Base"), 2, "--time"),
        (("update", "999999", "--domain", "corp"), 1, 'rule "999999" not found'),
        (("remove", "--domain", "corp"), 2, "RULE_IDS"),
    ],
)
def test_invalid_arguments_are_refused(
    service: Service, corp: str, arguments: tuple[str, ...], status: int, message: str
) -> None:
    """The exit status is 1 if the service refuses, and 2 for wrong usage. Standard output is empty."""
    refused = service.cli("rule", *arguments)
    assert (refused.returncode, refused.stdout) == (status, "")
    assert message in refused.stderr


def test_a_rule_is_added_without_a_service(stopped: RunningService) -> None:
    stopped.ok("db", "migrate")
    stopped.ok("domain", "add", "early", *TENANT)
    rule = stopped.ok("rule", "add", "r", "--domain", "early", "--action", "block", "--everyone").strip()
    assert json.loads(stopped.ok("rule", "list", "--domain", "early", "--json"))[0]["ruleId"] == int(rule)
