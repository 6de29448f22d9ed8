"""Connection request policies of NPS: which requests its network policies see, and by which methods."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sallyport.areas.migration.translation import Decision, Options, Weight
from tests.areas.migration import ALWAYS, box, client, export, named, policy, profile, properties, rules, texts
from tests.areas.migration.test_nps import WIFI, read


def requests(*policies: str, **profiles: dict[str, str | int | Sequence[str | int]]) -> str:
    """Return connection request policies, and their profiles by name."""
    own = [named(name, properties(values)) for name, values in profiles.items()]
    return box("Proxy_Policies", policies) + box("Proxy_Profiles", own)


OWN = {"msAuthProviderType": 1}
FORWARD = {"msAuthProviderType": 2, "msAuthProviderName": "Partners"}
BY_CLIENT = 'MATCH("Client-Friendly-Name=^a$")'
DECIDED = "connection request policies"


@pytest.mark.parametrize(
    ("proxies", "part"),
    [
        (requests(policy("Wifi", 1, [WIFI]), Wifi=OWN), "no connection request policy selects"),
        (requests(policy("A", 1, [BY_CLIENT]), A=OWN), "no connection request policy selects"),
        (requests(policy("Off", 1, [ALWAYS], Policy_Enabled=0), Off=OWN), "no connection request policy selects"),
        (requests(policy("F", 1, [BY_CLIENT]), policy("All", 2, [ALWAYS]), F=FORWARD, All=OWN), "F would forward"),
    ],
    ids=["port-type", "one-client", "none", "forwarded"],
)
def test_requests_that_network_policies_do_not_see_need_a_decision(tmp_path: Path, proxies: str, part: str) -> None:
    """Rules are read for all requests. If NPS refuses or forwards some of them before it reads network policies, an
    import could admit more than NPS. `block` disables the rules that allow; `skip` accepts the difference."""
    clients = [client("a", "192.0.2.1"), client("b", "192.0.2.2")]
    text = export(clients, [policy("Staff", 1, [ALWAYS])], [profile("Staff")], proxies=proxies)
    found = read(tmp_path, text)
    (undecided,) = found.named(Weight.UNDECIDED)
    assert undecided.name == DECIDED and part in undecided.text
    for decision, enabled in ((Decision.SKIP, True), (Decision.BLOCK, False)):
        decided = read(tmp_path, text, Options("corp", decisions={DECIDED: decision}))
        assert not decided.named(Weight.UNDECIDED) and part in texts(decided)
        assert [each.fields["enabled"] for each in rules(decided) if each.fields["action"] == "allow"] == [enabled]


@pytest.mark.parametrize(
    "proxies",
    [
        "",
        requests(policy("Wifi", 1, [WIFI]), policy("All", 2, [ALWAYS]), Wifi=OWN, All=OWN),
        requests(policy("A", 1, [BY_CLIENT]), policy("B", 2, ['MATCH("Client-IP-Address=192.0.2.2")']), A=OWN, B=OWN),
    ],
    ids=["none", "all", "each-client"],
)
def test_requests_that_network_policies_see_need_no_decision(tmp_path: Path, proxies: str) -> None:
    """A policy for all requests, or policies for all clients, let NPS check each request itself."""
    clients = [client("a", "192.0.2.1"), client("b", "192.0.2.2")]
    text = export(clients, [policy("Staff", 1, [ALWAYS])], [profile("Staff")], proxies=proxies)
    assert not [each for each in read(tmp_path, text).findings if each.weight is not Weight.NOTE]


def test_methods_of_a_connection_request_policy(tmp_path: Path) -> None:
    """With msOverrideRAPAuth, its methods replace those of network policies. A rule admits only what both permit, and
    a rule for other clients is as before."""
    override = {**OWN, "msOverrideRAPAuth": 1, "msNPAuthenticationType2": [4, 5], "msNPAllowedEapType": "0d00"}
    proxies = requests(policy("A", 1, [BY_CLIENT]), policy("All", 2, [ALWAYS]), A=override, All=OWN)
    clients = [client("a", "192.0.2.1"), client("b", "192.0.2.2")]
    of_b = 'MATCH("Client-Friendly-Name=^b$")'
    policies = [policy(name, at, [of_b if name == "B" else ALWAYS]) for at, name in enumerate(("B", "Pap", "All"))]
    profiles = [
        profile("B", msNPAuthenticationType2=[1]),
        profile("Pap", msNPAuthenticationType2=[1, 4]),
        profile("All", msNPAuthenticationType2=[1]),
    ]
    found = read(tmp_path, export(clients, policies, profiles, proxies=proxies))
    allowed = {each.name: each.fields for each in rules(found) if each.fields["action"] == "allow"}
    assert allowed["B"]["methods"] == ["pap"] and allowed["Pap"]["methods"] == ["mschapv2"]
    assert not allowed["All (incomplete)"]["enabled"] and "no method that A permits" in texts(found)


def rewriting(*rules: str, target: int = 1) -> dict[str, str | int | Sequence[str | int]]:
    """Return a profile whose requests NPS checks itself under another name. rules: expressions and replacements."""
    return {**OWN, "msManipulationRule": rules, "msManipulationTarget": target}


REALM = 'MATCH("User-Name=@old\\.example$")'


@pytest.mark.parametrize(
    ("condition", "rules_", "realms"),
    [
        (ALWAYS, (r"@corp\.example$", ""), ["corp.example"]),
        (ALWAYS, (r"(.*)@corp\.example", "$1", r"^OLDNT\\", ""), ["corp.example", "OLDNT"]),
        (ALWAYS, (r"^OLDNT\\(.*)$", "$1"), ["OLDNT"]),
        (REALM, (r"@old\.example", ""), ["old.example"]),
    ],
    ids=["suffix", "both", "prefix", "of-its-realm"],
)
def test_removed_realms_become_realms(
    tmp_path: Path, condition: str, rules_: tuple[str, ...], realms: list[str]
) -> None:
    """A policy that only removes a realm from user names gives the domain this realm. Nothing needs a decision."""
    proxies = requests(policy("Strip", 1, [condition]), policy("All", 2, [ALWAYS]), Strip=rewriting(*rules_), All=OWN)
    found = read(tmp_path, export([], [policy("Staff", 1, [ALWAYS])], [profile("Staff")], proxies=proxies))
    (domain,) = [each for each in found.items if each.kind == "domain"]
    assert domain.fields["realms"] == realms and "removes the realms" in texts(found)
    assert {each.weight for each in found.findings} == {Weight.NOTE}


@pytest.mark.parametrize(
    ("condition", "profile_", "said"),
    [
        (WIFI, rewriting(r"@corp\.example$", ""), "removes realms"),
        (REALM, rewriting(r"@corp\.example$", ""), "removes realms"),
        (ALWAYS, rewriting("@.*$", ""), "removes realms"),
    ],
    ids=["some-requests", "another-realm", "every-realm"],
)
def test_other_removed_realms_are_left_out(
    tmp_path: Path, condition: str, profile_: dict[str, str | int | Sequence[str | int]], said: str
) -> None:
    """The domain refuses logins with a realm that it does not have, so the rules admit no more than before."""
    proxies = requests(policy("Strip", 1, [condition]), policy("All", 2, [ALWAYS]), Strip=profile_, All=OWN)
    found = read(tmp_path, export([], [policy("Staff", 1, [ALWAYS])], [profile("Staff")], proxies=proxies))
    (domain,) = [each for each in found.items if each.kind == "domain"]
    assert "realms" not in domain.fields
    assert said in " ".join(each.text for each in found.named(Weight.LEFT_OUT)) and not found.named(Weight.UNDECIDED)


@pytest.mark.parametrize(
    "profile_",
    [
        rewriting("^.+@", "guest@"),
        rewriting(r"@a\.example$", "@b.example", r"@c\.example", ""),
        rewriting("-", "", target=31),
        rewriting(r"@corp\.example"),
        rewriting(r"@(?:corp|lab)\.example$", ""),
    ],
    ids=["guest", "another-realm", "station", "no-replacement", "expression"],
)
def test_rewritten_names_need_a_decision(tmp_path: Path, profile_: dict[str, str | int | Sequence[str | int]]) -> None:
    """The network policies see another name than the rules would. `block` disables the rules that allow."""
    proxies = requests(policy("Other", 1, [ALWAYS]), Other=profile_)
    text = export([], [policy("Staff", 1, [ALWAYS])], [profile("Staff")], proxies=proxies)
    (undecided,) = read(tmp_path, text).named(Weight.UNDECIDED)
    assert undecided.name == DECIDED and "names Other would rewrite" in undecided.text
    decided = read(tmp_path, text, Options("corp", decisions={DECIDED: Decision.BLOCK}))
    assert [each.fields["enabled"] for each in rules(decided) if each.fields["action"] == "allow"] == [False]
    assert not [each for each in decided.items if each.kind == "domain" and "realms" in each.fields]


def test_empty_rules_rewrite_nothing(tmp_path: Path) -> None:
    """A policy whose rules for names are empty needs no decision."""
    proxies = requests(policy("All", 1, [ALWAYS]), All=rewriting("", ""))
    found = read(tmp_path, export([], [policy("Staff", 1, [ALWAYS])], [profile("Staff")], proxies=proxies))
    assert not found.named(Weight.UNDECIDED)


def test_a_realm_has_one_domain(tmp_path: Path) -> None:
    """A realm that an earlier policy keeps is not forwarded. As its later policy is left out, the import waits."""
    group = box("RADIUS_Server_Groups", [])
    proxies = group + requests(
        policy("Strip", 1, [REALM]), policy("Out", 2, [REALM]), policy("All", 3, [ALWAYS]),
        Strip=rewriting(r"@old\.example$", ""), Out=FORWARD, All=OWN,
    )  # fmt: skip
    found = read(tmp_path, export([], [policy("Staff", 1, [ALWAYS])], [profile("Staff")], proxies=proxies))
    assert [each.fields.get("realms") for each in found.items if each.kind == "domain"] == [["old.example"]]
    assert "Out would forward" in " ".join(each.text for each in found.named(Weight.UNDECIDED))


def test_forwarded_names_are_not_rewritten(tmp_path: Path) -> None:
    """The domain of a forwarded realm has its rule; the plan says that names stay as they were sent."""
    proxies = requests(
        policy("Out", 1, [REALM]), policy("All", 2, [ALWAYS]),
        Out={**rewriting(r"@old\.example$", ""), **FORWARD}, All=OWN,
    )  # fmt: skip
    found = read(tmp_path, export([], [policy("Staff", 1, [ALWAYS])], [profile("Staff")], proxies=proxies))
    assert "the names as they were sent" in " ".join(each.text for each in found.named(Weight.LEFT_OUT))
