"""`sallyport policy`: password policies, and the instances to which they are assigned."""

import json
from typing import Any

import httpx
import pytest

from tests.cli import OTHER_TENANT, TENANT, Service, add_domain
from tests.running_service import RunningService

RULES = {
    "template": "templateName", "min-length": "minLen", "max-length": "maxLen", "first-char": "firstChar",
    "allow-upper-lower": "allowUpperLower", "allow-special": "allowSpecial", "allow-numeric": "allowNumeric",
    "pwq-minlen": "minlen", "pwq-dcredit": "dcredit", "pwq-ucredit": "ucredit", "pwq-lcredit": "lcredit",
    "pwq-ocredit": "ocredit", "pwq-minclass": "minclass", "pwq-maxrepeat": "maxrepeat",
    "pwq-maxclassrepeat": "maxclassrepeat", "pwq-maxsequence": "maxsequence", "pwq-usercheck": "usercheck",
}  # fmt: skip
VALUES = ("server", "8", "16", "digit", "yes", "no", "yes", "9", "-1", "-2", "1", "0", "3", "2", "4", "5", "1")


def policies(service: RunningService, *tenant: str) -> dict[str, dict[str, Any]]:
    """Return the policies of a tenant by name."""
    found = json.loads(service.ok("policy", "list", *(tenant or TENANT), "--json"))
    return {each["policyName"]: each for each in found}


def add(service: RunningService, name: str, *options: str) -> str:
    """Add a policy and return its ID."""
    return service.ok("policy", "add", name, *TENANT, *options).strip()


@pytest.fixture(scope="module")
def machine(service: Service) -> str:
    """Return the ID of an instance of the first tenant."""
    made = service.call("token.create", org=1, tenant=1, role="operator")
    answer = httpx.post(
        f"http://127.0.0.1:{service.ports.http}/api/v1/instances/addInstance",
        headers={"x-authorization": made["token"]},
        json={"domainId": int(add_domain(service, "machines")), "instanceName": "web", "osId": 1},
        trust_env=False,
    )
    return str(answer.json()["instanceId"])


def test_add_prints_the_id_alone(service: Service) -> None:
    """Standard output is the policyId and a line end. Only the list of this tenant has the policy."""
    added = service.program("policy", "add", "printed", *TENANT, "--min-length", "8")
    assert (added.returncode, added.stderr) == (0, "")
    assert added.stdout == f"{policies(service)['printed']['policyId']}\n"
    service.call("tenant.add", org=9, tenant=4)
    assert policies(service, *OTHER_TENANT) == {}


def test_a_policy_without_a_rule_is_warned_about(service: Service) -> None:
    """The policy is added, and a note says that it accepts every password."""
    added = service.cli("policy", "add", "empty", *TENANT)
    assert (added.returncode, added.stdout) == (0, f"{policies(service)['empty']['policyId']}\n")
    assert "warning: the policy has no rule" in added.stderr


def test_every_option_is_stored_and_cleared(service: Service) -> None:
    """`update` keeps each field that is not given, and clears a field that is given as empty."""
    options = [text for pair in zip((f"--{name}" for name in RULES), VALUES, strict=True) for text in pair]
    policy = add(service, "all", *options)
    kept = {"policyName": "all", **dict(zip(RULES.values(), VALUES, strict=True))}
    assert policies(service)["all"] == {"policyId": int(policy), **kept, "instanceIds": []}
    assert "min-length=8 max-length=16 first-char=digit" in (shown := service.ok("policy", "list", *TENANT))
    assert "pwq-minlen=9 pwq-dcredit=-1" in shown
    service.ok("policy", "update", policy, *TENANT, "--name", "few", "--min-length", "9", "--max-length", "")
    changed = {**kept, "policyName": "few", "minLen": "9", "maxLen": ""}
    assert policies(service)["few"] == {"policyId": int(policy), **changed, "instanceIds": []}
    service.ok("policy", "update", policy, *TENANT, *[each for name in RULES for each in (f"--{name}", "")])
    empty = {"policyName": "few", **dict.fromkeys(RULES.values(), "")}
    assert policies(service)["few"] == {"policyId": int(policy), **empty, "instanceIds": []}


@pytest.mark.parametrize("old", ["--min-len", "--minlen", "--dcredit"])
def test_an_ambiguous_option_name_is_refused(service: Service, old: str) -> None:
    """Sallyport and libpwquality both have a minimum length, so the name of the option is ambiguous. The message has
    the most similar options.
    """
    refused = service.cli("policy", "add", "old", *TENANT, old, "8")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert 'Did you mean "--min-length"?' in refused.stderr or 'Did you mean "--pwq-' in refused.stderr


def test_the_help_explains_both_lengths(service: Service) -> None:
    """Each of the two options has its own text. The help of the command explains how both apply together."""
    for command in ("add", "update"):
        text = " ".join(service.ok("policy", command, "--help").split())
        assert "Minimum number of characters, in any script." in text and "Minimum length, which credits reduce" in text
    assert "both apply" in " ".join(service.ok("policy", "add", "--help").split())


def test_policies_are_assigned_and_unassigned(service: Service, machine: str) -> None:
    """An instance may have several policies. Repeating an assignment is not an error."""
    one, two = add(service, "one"), add(service, "two")
    for policy in (one, two, two):
        service.ok("policy", "assign", policy, machine, *TENANT)
    assert [policies(service)[name]["instanceIds"] for name in ("one", "two")] == [[int(machine)], [int(machine)]]
    service.ok("policy", "unassign", one, machine, *TENANT)
    assert policies(service)["one"]["instanceIds"] == []
    service.ok("policy", "unassign", two, machine, *TENANT)


def test_policies_are_removed(service: Service) -> None:
    """`remove` removes several policies. If one of them is not found, none is removed. Policies of another tenant are
    not found.
    """
    ids = [add(service, "first"), add(service, "second")]
    assert service.cli("policy", "remove", *ids, *OTHER_TENANT).returncode == 1
    assert service.cli("policy", "remove", *ids, "999999", *TENANT).returncode == 1
    assert {"first", "second"} <= policies(service).keys()
    service.ok("policy", "remove", *ids, *TENANT)
    assert not {"first", "second"} & policies(service).keys()


def test_a_password_is_validated(service: Service, machine: str) -> None:
    """The exit status is 0 for a password that meets the policy. Otherwise it is 1, and the output has each violated
    rule but not the password.
    """
    validate = ("policy", "validate", machine, *TENANT, "--password", "-")
    met = service.cli(*validate, input="Abcdef1x\n")
    assert (met.returncode, met.stdout, met.stderr) == (0, "", "the password meets the policy\n")
    policy = add(service, "named", "--pwq-usercheck", "1", "--min-length", "12")
    service.ok("policy", "assign", policy, machine, *TENANT)
    wrong = service.cli(*validate, "--user", "hunt", input="hunter2\n")
    assert wrong.returncode == 1
    assert "min-length" in wrong.stdout and "pwq-usercheck" in wrong.stdout
    assert "hunter2" not in wrong.stdout + wrong.stderr
    listed = service.cli(*validate, "--json", input=b"\xff\n")
    assert [each["rule"] for each in json.loads(listed.stdout)] == ["minLen", "palindrome"]
    assert json.loads(service.cli(*validate, "--json", input="long enough for it\n").stdout) == []
    service.ok("policy", "remove", policy, *TENANT)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("add", "x"), 2, "--org"),
        (("add", "x", *TENANT, "--min-length", "many"), 1, '--min-length: "many" is not accepted: must be'),
        (("add", "x", *TENANT, "--min-length", "9", "--max-length", "8"), 1, '--max-length: "8"'),
        (("add", "", *TENANT), 1, 'NAME: ""'),
        (
            ("update", "999999", *TENANT, "--pwq-minlen", "8"),
            1,
            'policy "999999" not found; see: sallyport policy list',
        ),
        (("remove", *TENANT), 2, "POLICY_IDS"),
        (("assign", "999999", "1", *TENANT), 1, "not found"),
        (("assign", "1", *TENANT), 2, "INSTANCE_IDS"),
        (("validate", "999999", *TENANT, "--password", "-"), 1, 'instance "999999" not found'),
        (("validate", "1", *TENANT, "--password", "hunter2"), 2, "--password accepts only -"),
        (("validate", "1", *TENANT), 2, "standard input"),
    ],
)
def test_invalid_arguments_are_refused(service: Service, arguments: tuple[str, ...], status: int, message: str) -> None:
    """The exit status is 1 if the service refuses, and 2 for wrong usage. Standard output is empty."""
    refused = service.cli("policy", *arguments, input="password\n")
    assert (refused.returncode, refused.stdout) == (status, "")
    assert message in refused.stderr


def test_a_policy_name_is_unique(service: Service) -> None:
    """A second policy with the same name, in any letter case, is refused."""
    add(service, "Taken")
    refused = service.cli("policy", "add", "TAKEN", *TENANT)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "with this name" in refused.stderr


def test_a_policy_is_added_without_a_service(stopped: RunningService) -> None:
    stopped.ok("db", "migrate")
    policy = add(stopped, "early", "--pwq-minclass", "3")
    kept = policies(stopped)["early"]
    assert (kept["policyId"], kept["minclass"]) == (int(policy), "3")
