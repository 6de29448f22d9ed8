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
