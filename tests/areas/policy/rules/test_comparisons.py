"""Tests of the conditions about the request: SSID, port, method, realm and address of the endpoint."""

import pytest

from sallyport.areas.policy.rules.comparisons import METHODS, method_in_rules
from sallyport.areas.policy.rules.conditions import CONDITIONS, shown_values
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.rule import Action
from sallyport.areas.preview import bodies as of_preview
from tests.areas.policy.rules import facts, matched, rule

KNOWN = {
    "ssid": "corp",
    "port": "GigabitEthernet1/0/7",
    "realm": "corp.example",
    "method": "peap-mschapv2",
    "address": "198.51.100.7",
    "medium": "Wireless",
    "certificates": ("issuer=CN=Corp CA", "issuer=Corp CA", "eku=clientAuth", "san=pc1.corp.example"),
    "attributes": {"NAS-Identifier": ("ap-7",), "Cisco-AVPair": ("a=1", "vlan-id=7")},
    "tags": ("role=lab", "site=Berlin/Floor 2"),
}
MATCHING = [
    ({"ssids": ["guests", "CORP"]}, {"ssid": "corp2"}),
    ({"ssids": ["corp"]}, {"ssid": "", "medium": "Ethernet"}),
    ({"ports": ["gigabitethernet1/0/7"]}, {"port": "GigabitEthernet1/0/71"}),
    ({"ports": ["x", "Gigabit*/0/?"]}, {"port": "GigabitEthernet1/0/71"}),
    ({"ports": ["*1/0/7"]}, {"port": "GigabitEthernet2/0/7"}),
    ({"realms": ["x", "Corp.Example"]}, {"realm": "example"}),
    ({"methods": ["pap", "peap-mschapv2"]}, {"method": "peap-gtc"}),
    ({"methods": ["peap"]}, {"method": "ttls-pap"}),
    ({"methods": ["eap"]}, {"method": "pap"}),
    ({"addresses": ["10.0.0.0/8", "198.51.100.0/24"]}, {"address": "198.51.101.7"}),
    ({"addresses": ["198.51.100.7"]}, {"address": "2001:db8::1"}),
    ({"tags": ["site=berlin"]}, {"tags": ("site=Berlin Mitte",)}),
    ({"tags": ["x=y", "ROLE=Lab"]}, {"tags": ()}),
    ({"certificates": ["issuer=corp ca"]}, {"certificates": ("issuer=Old CA",)}),
    ({"certificates": ["sid=x", "eku=CLIENTAUTH"]}, {"certificates": ("sid=y", "eku=serverAuth")}),
    ({"attributes": ["NAS-Identifier=AP-7"]}, {"attributes": {"NAS-Identifier": ("ap-77",)}}),
    ({"attributes": ["NAS-Identifier~ap-?"]}, {"attributes": {"NAS-Identifier": ("ap-77",)}}),
    ({"attributes": ["Cisco-AVPair~vlan-*=7", "Class=x"]}, {"attributes": {"Cisco-AVPair": (), "Class": ("y",)}}),
]
ABSENT = [
    ({"ssids": ["corp"]}, {"ssid": ""}),
    ({"ssids": ["corp"]}, {"ssid": "", "medium": "Unknown"}),
    ({"ssids": ["corp"]}, {"ssid": "", "medium": ""}),
    ({"media": ["Ethernet"]}, {"medium": ""}),
    ({"products": ["Aruba"]}, {"product": "", "nas_product": "Cisco IOS"}),
    ({"products": ["Aruba"]}, {"product": "Cisco IOS", "nas_product": ""}),
    *(({"time": {"timezone": zone, "until": "12:00"}}, {}) for zone in ("Mars/Base", "../etc/passwd", "Europe")),
    ({"ports": ["*"]}, {"port": ""}),
    ({"realms": ["corp.example"]}, {"realm": ""}),
    ({"methods": ["pap"]}, {"method": ""}),
    ({"methods": ["eap-tls"]}, {"method": "eap"}),
    ({"methods": ["peap-mschapv2"]}, {"method": "peap-resumed"}),
    ({"addresses": ["198.51.100.0/24"]}, {"address": ""}),
    ({"tags": ["site=berlin"]}, {"tags": None}),
    ({"certificates": ["issuer=x"]}, {"certificates": ()}),
    ({"certificates": ["issuer=x", "sid=x"]}, {}),
    ({"certificates": ["san=pc65"]}, {"certificates": ("san=pc1", "san=pc2", "more=san")}),
    ({"attributes": ["Class=x"]}, {}),
    ({"attributes": ["NAS-Identifier=x", "Class=x"]}, {}),
    ({"attributes": ["NAS-Identifier~*"]}, {"attributes": None}),
]
CLAIMED = [scope for scope, _ in MATCHING if not scope.keys() & {"realms", "certificates"}]


@pytest.mark.parametrize("action", list(Action))
@pytest.mark.parametrize(("scope", "other"), MATCHING)
def test_each_scope_matches_any_of_its_entries(action: str, scope: dict[str, object], other: dict[str, object]) -> None:
    """The comparison is case-insensitive. Another value does not match."""
    only = rule(1, action, **scope)
    assert matched(facts(**KNOWN), only) == 1
    assert matched(facts(**{**KNOWN, **other}), only) == 0


@pytest.mark.parametrize(("scope", "absent"), ABSENT)
def test_a_missing_fact_exempts_no_login_and_grants_nothing(
    scope: dict[str, object], absent: dict[str, object]
) -> None:
    """Rules that block or require a second factor apply, but give no attributes. Rules that allow do not apply."""
    known = facts(**{**KNOWN, **absent})
    assert matched(known, rule(1, "allow", **scope)) == 0
    assert matched(known, rule(1, "block", **scope)) == 1
    found = DomainRules([rule(1, "mfa_required", b"the VLAN", **scope)]).match(known)
    assert found is not None and found.attributes == b""


@pytest.mark.parametrize("scope", CLAIMED)
def test_a_claim_demands_and_blocks_but_does_not_exempt(scope: dict[str, object]) -> None:
    """A rule that allows is skipped, as if the fact were missing. Another rule matches, and gives its attributes."""
    known = facts(**KNOWN, claims=frozenset(scope))
    assert matched(known, rule(1, "allow", **scope)) == 0
    assert matched(known, rule(1, "block", **scope)) == 1
    found = DomainRules([rule(1, "mfa_required", b"the VLAN", **scope)]).match(known)
    assert found is not None and found.attributes == b"the VLAN"
    (step,) = DomainRules([rule(1, "allow", **scope)]).explain(known)
    assert (step.matches, step.scope) == (None, *scope)
    assert shown_values(known, step.scope, 3).endswith(" (a claim of the sender)")


def test_a_claim_that_differs_still_excludes_a_rule() -> None:
    """If the claim is another value, the rule surely does not match."""
    (step,) = DomainRules([rule(1, "allow", ssids=["corp"])]).explain(facts(ssid="guests", claims=frozenset({"ssids"})))
    assert step.matches is False


def test_a_claim_of_another_condition_does_not_matter() -> None:
    known = facts(**KNOWN, claims=frozenset({"ports"}))
    assert matched(known, rule(1, "allow", ssids=["corp"])) == 1
    assert matched(known, rule(1, "allow", ssids=["corp"], ports=["*"])) == 0


@pytest.mark.parametrize(
    ("recorded", "method"),
    [
        ("pap", "pap"),
        ("eap", "eap"),
        ("eap-tls", "eap-tls"),
        ("eap-md5", "eap-md5"),
        ("eap-peap-mschapv2", "peap-mschapv2"),
        ("eap-ttls-eap-gtc", "ttls-eap-gtc"),
        ("eap-ttls", "ttls"),
        ("mab", "mab"),
        ("none", ""),
    ],
)
def test_the_method_of_an_event_in_the_spelling_of_rules(recorded: str, method: str) -> None:
    assert method_in_rules(recorded) == method
    assert method in (*METHODS, "")


@pytest.mark.parametrize("method", [each for each in METHODS if each not in ("eap", "peap", "ttls")])
def test_an_outer_method_includes_its_inner_methods(method: str) -> None:
    """`eap`, `peap` and `ttls` include all methods of their kind."""
    broad = [each for each in ("eap", "peap", "ttls") if matched(facts(method=method), rule(methods=[each]))]
    is_eap = method.startswith(("eap-", "peap-", "ttls-"))
    assert broad == (["eap"] if is_eap else []) + [each for each in ("peap", "ttls") if method.startswith(each)]


def test_a_resumed_session_may_have_any_inner_method_of_its_tunnel() -> None:
    resumed = facts(method="ttls-resumed")
    assert matched(resumed, rule(methods=["ttls"])) == 1
    assert matched(resumed, rule(1, "block", methods=["peap-gtc"])) == 0


def test_a_port_pattern_is_matched_once_for_all_rules() -> None:
    """The first of 1,000 rules with 100 patterns each that matches decides."""
    rules = [
        rule(number, ports=[f"Gi{number}/0/{port}*" for port in range(100)], priority=number) for number in range(1000)
    ]
    assert matched(facts(port="gi999/0/99/1"), *rules) == 999


def test_a_login_with_many_rules_looks_up_its_facts_once() -> None:
    """1,000 rules with attributes, certificates and tags share one index."""
    rules = [
        rule(
            number,
            attributes=[f"NAS-Identifier~ap-{number}-*"],
            tags=[f"site={number}"],
            certificates=[f"san=pc{number}"],
            priority=number,
        )
        for number in range(1000)
    ]
    known = {"attributes": {"NAS-Identifier": ("ap-999-1",)}, "tags": ("site=999",), "certificates": ("san=pc999",)}
    assert matched(facts(**known), *rules) == 999


def test_a_login_may_surely_have_no_value_of_some_conditions() -> None:
    """A user may be in no group, a device may have no tag. A login without another fact has not sent it."""
    texts = (
        "ssid",
        "port",
        "realm",
        "method",
        "address",
        "client",
        "source",
        "nas",
        "station",
        "user",
        "product",
        "nas_product",
    )
    sets = {"groups": frozenset[str](), "ous": frozenset[str](), "tags": ()}
    empty = facts(**dict.fromkeys(texts, ""), medium="", service_type=None, **sets)
    shown = {each.field: shown_values(empty, each.field, 3) for each in CONDITIONS if each.field != "kinds"}
    none = {"groups", "ous", "tags", "ssids"}
    assert shown == {field: "none" if field in none else "not known" for field in shown}


def test_the_form_explains_each_condition() -> None:
    """It has a label, and choices or a hint. Units have the names that the directory has given them."""
    assert [each.field for each in CONDITIONS if not (each.description and each.title)] == []
    assert [each.field for each in CONDITIONS if not (each.hint or each.choices)] == ["ous"]


def test_the_word_before_the_values_of_a_condition() -> None:
    """The list of rules shows a condition as `product Cisco ISE`, and the rule test has a field `Product`."""
    words = "user group unit kind client product medium station Service-Type SSID tag port method certificate"
    assert [each.word for each in CONDITIONS] == [*words.split(), "attribute", "realm", "address"]


def test_the_facts_that_a_rule_test_takes() -> None:
    """The form and the command line show the description of each fact."""
    described = {name: field.description for name, field in of_preview.TestLoginRules.model_fields.items()}
    asked = {each.fact: each.asked for each in CONDITIONS if each.asked}
    assert asked.keys() == {"ssid", "tags", "port", "method", "certificates", "attributes", "address"}
    assert asked.items() <= described.items()


@pytest.mark.parametrize(
    ("scope", "shared", "flags"),
    [
        *(({field: ["x"]}, False, "") for field in ("users", "groups", "ous", "stations")),
        ({"addresses": ["10.0.0.1"]}, False, "claims"),
        ({"time": {"until": "12:00"}}, False, ""),
        ({"media": ["Ethernet"]}, True, ""),
        ({"kinds": ["machine"]}, True, "kind"),
        ({"clients": ["vpn"]}, True, "client device"),
        ({"products": ["Aruba"]}, True, "device"),
        ({"ssids": ["x"]}, True, "claims network"),
        ({"ports": ["x"]}, True, "claims network"),
        ({"realms": ["x"]}, True, "realm"),
        ({"tags": ["a=b"]}, True, "claims tags"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_only_the_facts_that_rules_compare_are_read(scope: dict[str, object], shared: bool, flags: str) -> None:
    """Logins with the same facts share a result, unless each login has a fact for itself."""
    reading = DomainRules([rule(1, **scope)]).read(frozenset())
    found = {
        name for name in ("claims", "client", "device", "kind", "network", "realm", "tags") if getattr(reading, name)
    }
    assert (reading.is_shared, found) == (shared, set(flags.split()))
