"""Tests of the import from NPS, with files of our own that have the structure of real exports."""

import json
from pathlib import Path

import pytest

from sallyport.areas.migration import nps
from sallyport.areas.migration.groups import resolved, sids_of
from sallyport.areas.migration.translation import INCOMPLETE, Decision, Options, Translation, Weight
from sallyport.base.errors import Invalid
from tests.areas.migration import (
    ALWAYS,
    GUESTS,
    STAFF,
    box,
    client,
    export,
    named,
    policy,
    profile,
    properties,
    rules,
    texts,
)

OPTIONS = Options("corp", timezone="Europe/Berlin")
WIFI = 'MATCH("NAS-Port-Type=^19$")'


def read(tmp_path: Path, text: str, options: Options = OPTIONS, encoding: str = "utf-8") -> Translation:
    """Return the translation of an export."""
    path = tmp_path / "nps.xml"
    path.write_text(text, encoding=encoding)
    return nps.translate(path, options)


def clients_of(found: Translation) -> dict[str, dict[str, object]]:
    """Return the fields of the clients by name."""
    return {each.name: dict(each.fields) for each in found.items if each.kind == "client"}


@pytest.mark.parametrize("flat", [False, True], ids=["below the protocol", "below the service"])
def test_clients_are_read_in_both_layouts(tmp_path: Path, flat: bool) -> None:
    """A client has its address or network, its secret, its signature setting, and a tag for its vendor."""
    given = [
        client("Switch - Halle 3", "192.0.2.7", Require_Signature=1, NAS_Manufacturer=9),
        client("WLAN", "198.51.100.0/24", "überlang"),
        client("v6", "2001:db8::1"),
    ]
    found = read(tmp_path, export(given, flat=flat))
    own = clients_of(found)
    assert own["Switch - Halle 3"] == {
        "name": "Switch - Halle 3", "address": "192.0.2.7", "secret": {"hex": b"radius-secret-77".hex()},
        "requireMessageAuthenticator": "yes", "tags": ["vendor=Contoso"], "domains": ["corp"],
    }  # fmt: skip
    assert own["WLAN"]["address"] == "198.51.100.0/24"
    assert own["v6"]["address"] == "2001:db8::1"
    assert "the secret has characters outside ASCII" in texts(found)


def test_clients_that_cannot_be_imported_are_findings(tmp_path: Path) -> None:
    """A disabled client, a host name, a missing secret, a second client with the same address, and a name that is used
    twice are listed with their lines. No finding has a secret."""
    given = [
        client("off", "192.0.2.1", Radius_Client_Enabled=0),
        client("host", "switch.corp.example"),
        client("bare", "192.0.2.3", ""),
        client("one", "192.0.2.4"),
        client("ONE", "192.0.2.5"),
        client("again", "192.0.2.4"),
    ]
    found = read(tmp_path, export(given))
    assert list(clients_of(found)) == ["one", "ONE (2)"]
    said = texts(found)
    for part in (
        "off (nps.xml:1): the client is disabled",
        "'switch.corp.example' is no address",
        "bare",
        "same address",
    ):
        assert part in said
    assert "radius-secret-77" not in said


def test_a_secret_may_be_in_a_template(tmp_path: Path) -> None:
    """A client without a secret of its own names a template. A template that is missing is a finding."""
    guid, other = "{1A1917B8-0000-43B3-8144-FAE167CE9316}", "{99999999-0000-43B3-8144-FAE167CE9316}"
    shared = named("Branches", properties({"RADIUS_Shared_Secret": "from the template", "Template_Guid": guid}))
    name = "Microsoft_Internet_Authentication_Service_Templates"
    templates = (
        f'<{name} name="{name}"><Children>{box("RADIUS_Shared_Secrets_Templates", [shared])}</Children></{name}>'
    )
    given = [
        client("a", "192.0.2.1", "", Client_Secret_Template_Guid=guid),
        client("b", "192.0.2.2", "", Client_Secret_Template_Guid=other),
    ]
    found = read(tmp_path, export(given, templates=templates))
    assert clients_of(found)["a"]["secret"] == {"hex": b"from the template".hex()}
    assert "the template of its secret is not in the file" in texts(found)


def test_policies_become_rules_in_their_order(tmp_path: Path) -> None:
    """The sequence orders the rules. A grant allows, a deny blocks, the last rule blocks everyone, and the domain reads
    its rules as listed."""
    found = read(
        tmp_path,
        export(
            policies=[
                policy("Rest", 30, [ALWAYS]),
                policy("Staff", 10, [f'NTGROUPS("{STAFF}")', WIFI]),
                policy("Guests", 20, [f'USERNTGROUPS("{GUESTS};{STAFF}")']),
            ],
            profiles=[profile("Rest", grants=False), profile("Staff"), profile("Guests", grants=False)],
        ),
    )
    assert [(each.name, each.fields["action"]) for each in rules(found)] == [
        ("Staff", "allow"), ("Guests", "block"), ("Rest", "block"), ("NPS: no policy matches", "block"),
    ]  # fmt: skip
    staff, guests, rest, last = [each.fields for each in rules(found)]
    assert (staff["groups"], staff["media"], staff["enabled"]) == ([STAFF], ["Wireless"], True)
    assert (guests["groups"], guests["kinds"]) == ([GUESTS, STAFF], ["user"])
    assert rest["everyone"] is last["everyone"] is True
    (domain,) = [each for each in found.items if each.kind == "domain"]
    assert domain.fields == {"domainName": "corp", "ruleOrder": "listed"}


def test_a_renamed_policy_has_the_profile_of_its_name(tmp_path: Path) -> None:
    """NPS renames the profile with its policy, but not msNPAction. If another policy has the former name now, its
    profile is not that of the renamed one."""
    found = read(
        tmp_path,
        export(
            policies=[policy("Printers", 10, [WIFI], msNPAction="Staff"), policy("Staff", 20, [ALWAYS])],
            profiles=[profile("Staff"), profile("Printers", grants=False)],
        ),
    )
    printers, staff, _ = rules(found)
    assert (printers.fields["action"], staff.fields["action"]) == ("block", "allow")


def test_a_profile_that_denies_with_an_unknown_setting_is_a_finding(tmp_path: Path) -> None:
    """No setting of a profile is dropped in silence, also where access is denied."""
    given = export(policies=[policy("No", 1, [ALWAYS])], profiles=[profile("No", grants=False, msUnknown=7)])
    assert "left out: No (nps.xml:1): its setting msUnknown (line 1) cannot be expressed" in texts(
        read(tmp_path, given)
    )


def test_parts_of_nps_itself_are_one_finding(tmp_path: Path) -> None:
    """Its log and its components have no place here. One line names them."""
    auditor = named("Microsoft NT Event Log Auditor", properties({"Log_Verbose": 1}))
    found = read(tmp_path, export(proxies=box("Auditors", [auditor]) + box("RequestHandlers", [auditor])))
    assert "such as its log and components: Auditors, RequestHandlers" in texts(found)
    assert len(found.findings) == 1


def test_constraints_of_a_profile_block_what_they_exclude(tmp_path: Path) -> None:
    """NPS rejects a login whose method the profile does not permit, and reads no further policy. So a rule that blocks
    follows, with the same conditions."""
    methods = {"msNPAuthenticationType2": [5, 4, 10], "msNPAllowedEapType": [f"19{'0' * 30}", f"0d{'0' * 30}"]}
    found = read(tmp_path, export(policies=[policy("Wi-Fi", 1, [WIFI])], profiles=[profile("Wi-Fi", **methods)]))
    allow, block, _ = rules(found)
    assert allow.fields["methods"] == ["mschapv2", "peap", "eap-tls"]
    assert (block.name, block.fields["action"], block.fields["media"]) == ("Wi-Fi: otherwise", "block", ["Wireless"])
    assert "methods" not in block.fields


def test_a_profile_becomes_the_answer(tmp_path: Path) -> None:
    """The attributes of a VLAN become the VLAN. Other attributes and those of vendors are sent as NPS sends them."""
    answers = {
        "msRADIUSTunnelType": 13, "msRADIUSTunnelMediumType": 6, "msRADIUSTunnelPrivateGroupId": "20",
        "msRADIUSFilterId": "staff", "msRADIUSSessionTimeout": 3600, "msCiscoAV": "shell:priv-lvl=15",
        "msRADIUSAnyVSA": "0100003044010Astaffvpn",
    }  # fmt: skip
    found = read(tmp_path, export(policies=[policy("A", 1, [WIFI])], profiles=[profile("A", **answers)]))
    (rule, _) = rules(found)
    assert rule.fields["vlan"] == "20"
    assert rule.fields["replyAttributes"] == [
        {"name": "Filter-Id", "value": "staff"},
        {"name": "Session-Timeout", "value": "3600"},
        {"name": "Cisco-AVPair", "value": "shell:priv-lvl=15"},
        {"name": "Attr-26.12356.1", "value": f"0x{b'staffvpn'.hex()}"},
    ]
    assert not found.named(Weight.DISABLED)


@pytest.mark.parametrize(
    ("constraints", "answers", "reason"),
    [
        (['MATCH("Called-Station-Id=^[0-9]+$")'], {}, "the regular expression Called-Station-Id=^[0-9]+$ uses ["),
        (['MATCH("User-Name=^a")', 'MATCH("NAS-Identifier=^b")'], {}, "two attributes at once"),
        ([f'NTGROUPS("{STAFF}")', f'USERNTGROUPS("{GUESTS}")'], {}, "two groups at once"),
        (['HCAPGROUPS("x")'], {}, 'the condition HCAPGROUPS("x") is not known'),
        ([WIFI], {"msRASFilter": "0100"}, "msRASFilter"),
        ([WIFI], {"msRADIUSAnyVSA": "nonsense"}, "msRADIUSAnyVSA"),
        ([WIFI], {"msIgnoreUserDialinProperties": 0}, "--no-dial-in-permissions"),
        ([WIFI], {"msNPAuthenticationType2": [7]}, "without authentication"),
        (['MATCH("Client-Friendly-Name=^gone$")'], {}, "no RADIUS client of the file"),
    ],
    ids=["set", "two attributes", "two groups", "unknown", "filter", "vendor", "dial-in", "no method", "client"],
)
def test_a_grant_that_cannot_be_expressed_is_disabled(
    tmp_path: Path, constraints: list[str], answers: dict[str, str], reason: str
) -> None:
    """The rule is disabled, and a finding says why. If the conditions are known, a rule blocks what the policy decides,
    so that no rule behind it admits more."""
    found = read(tmp_path, export(policies=[policy("P", 1, constraints)], profiles=[profile("P", **answers)]))
    own = rules(found)
    assert (own[0].name.removesuffix(INCOMPLETE), own[0].fields["enabled"]) == ("P", False)
    assert not any(each.fields["action"] == "allow" and each.fields["enabled"] for each in own)
    assert reason in " ".join(each.text for each in found.named(Weight.DISABLED))
    if answers:
        assert (own[1].name, own[1].fields["action"], own[1].fields["enabled"]) == ("P: otherwise", "block", True)


def test_a_deny_that_cannot_be_expressed_needs_a_decision(tmp_path: Path) -> None:
    """Without a decision it is undecided. `block` blocks what its other conditions select, `skip` leaves it out."""
    text = export(
        policies=[policy("P", 1, ['MATCH("Calling-Station-Id=^(00|\\d\\d)")', WIFI])],
        profiles=[profile("P", grants=False)],
    )
    found = read(tmp_path, text)
    (open_,) = found.named(Weight.UNDECIDED)
    assert "--decide 'P=block'" in open_.text and "uses \\d" in open_.text
    blocked = read(tmp_path, text, Options("corp", decisions={"P": Decision.BLOCK}))
    assert not blocked.named(Weight.UNDECIDED)
    assert (rules(blocked)[0].fields["media"], rules(blocked)[0].fields["enabled"]) == (["Wireless"], True)
    skipped = read(tmp_path, text, Options("corp", decisions={"P": Decision.SKIP}))
    assert [each.name for each in rules(skipped)] == ["NPS: no policy matches"]
    assert "left out as decided" in texts(skipped)


def test_times_become_one_rule_each(tmp_path: Path) -> None:
    """Rules have one time, so a policy becomes one rule for each. Without the time zone, a grant is disabled."""
    time = 'TIMEOFDAY("1 08:00-18:00; 2 08:00-18:00; 6 10:00-12:00 22:00-24:00")'
    text = export(policies=[policy("P", 1, [time])], profiles=[profile("P")])
    first, second, third, _ = [each.fields for each in rules(read(tmp_path, text))]
    zone = {"timezone": "Europe/Berlin"}
    assert first["time"] == {"days": ["mon", "tue"], "from": "08:00", "until": "18:00", **zone}
    assert second["time"] == {"days": ["sat"], "from": "10:00", "until": "12:00", **zone}
    assert third["time"] == {"days": ["sat"], "from": "22:00", "until": "24:00", **zone}
    assert "give it with --timezone" in texts(read(tmp_path, text, Options("corp")))


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        (f'NTGROUPS("{STAFF}")', {"groups": [STAFF]}),
        (f'USERNTGROUPS("{STAFF};{GUESTS}")', {"groups": [STAFF, GUESTS], "kinds": ["user"]}),
        (f'MACHINENTGROUPS("{STAFF}")', {"groups": [STAFF], "kinds": ["machine"]}),
        ('MATCH("NAS-Port-Type=^15$|^19$")', {"media": ["Ethernet", "Wireless"]}),
        ('MATCH("NAS-Port-Type=^0$")', {"attributes": ["NAS-Port-Type=0"]}),
        ('MATCH("Service-Type=^2$")', {"serviceTypes": ["2"]}),
        ('MATCH("Authentication-Type=^4$")', {"methods": ["mschapv2"]}),
        ('MATCH("NAS-Port-Id=^Gi1/0/.*")', {"ports": ["Gi1/0/*"]}),
        ('MATCH("Called-Station-Id=.*:Tools$")', {"ssids": ["Tools"]}),
        ('MATCH("Calling-Station-Id=^02-00-00-00-00-01$")', {"stations": ["02-00-00-00-00-01"]}),
        ('MATCH("Calling-Station-Id=^02-00")', {"attributes": ["Calling-Station-Id~02-00*"]}),
        ('MATCH("NAS-IPv4-Address=^192\\.0\\.2\\.1$")', {"attributes": ["NAS-IP-Address=192.0.2.1"]}),
        ('MATCH("NAS-Identifier=^ap-")', {"attributes": ["NAS-Identifier~ap-*"]}),
        ('MATCH("Framed-Protocol=^1$")', {"attributes": ["Framed-Protocol=1"]}),
        ('MATCH("Tunnel-Type=^13$")', {"attributes": ["Tunnel-Type=13"]}),
        ('MATCH("User-Name=^adm-")', {"attributes": ["User-Name~adm-*"]}),
        ('MATCH("Client-Friendly-Name=^vpn$")', {"clients": ["vpn"]}),
        ('MATCH("Client-IP-Address=^192\\.0\\.2\\.1$")', {"clients": ["vpn"]}),
        ('MATCH("Client-Vendor=^9$")', {"clients": ["vpn"]}),
    ],
)
def test_every_condition_has_its_place(tmp_path: Path, constraint: str, fields: dict[str, object]) -> None:
    """Each kind of condition of NPS becomes a condition of the rule, which is enabled."""
    clients = [client("vpn", "192.0.2.1", NAS_Manufacturer=9), client("wlc", "192.0.2.2")]
    found = read(tmp_path, export(clients, policies=[policy("P", 1, [constraint])], profiles=[profile("P")]))
    expected = {"name": "P", "action": "allow", "enabled": True, "domain": "corp", "priority": 1000, **fields}
    assert dict(rules(found)[0].fields) == expected


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ({"msNPAuthenticationType2": [1, 2, 3, 4]}, {"methods": ["pap", "chap", "mschap", "mschapv2"]}),
        ({"msNPCalledStationId": "02-AA-00-00-00-01"}, {"attributes": ["Called-Station-Id=02-AA-00-00-00-01"]}),
        ({"msNPCallingStationId": "02-00-00-00-00-01"}, {"stations": ["02-00-00-00-00-01"]}),
        ({"msNPAllowedPortTypes": [15]}, {"media": ["Ethernet"]}),
        (
            {"msNPTimeOfDay": "1 08:00-18:00"},
            {"time": {"days": ["mon"], "from": "08:00", "until": "18:00", "timezone": "Europe/Berlin"}},
        ),
    ],
)
def test_every_constraint_of_a_profile_has_its_place(
    tmp_path: Path, constraint: dict[str, str | list[str | int]], fields: dict[str, object]
) -> None:
    """Each constraint is a condition of the rule that allows. The rule behind it blocks what the constraint refuses."""
    group = f'NTGROUPS("{STAFF}")'
    found = read(tmp_path, export(policies=[policy("P", 1, [group])], profiles=[profile("P", **constraint)]))
    allow, block, _ = [dict(each.fields) for each in rules(found)]
    assert {name: allow[name] for name in fields} == fields and allow["enabled"] is True
    assert (block["action"], block["groups"], set(block) & {*fields}) == ("block", [STAFF], set())


def test_conditions_about_clients_name_the_clients_of_the_file(tmp_path: Path) -> None:
    """Expressions on the name, the address or the vendor select clients. A network is not selected by its address."""
    given = [client("ap-1", "10.1.0.1"), client("ap-2", "10.1.0.2", NAS_Manufacturer=9), client("net", "10.1.0.0/24")]

    def selected(constraint: str) -> object:
        text = export(given, policies=[policy("P", 1, [constraint])], profiles=[profile("P")])
        return rules(read(tmp_path, text))[0].fields["clients"]

    assert selected('MATCH("Client-Friendly-Name=^AP-")') == ["ap-1", "ap-2"]
    assert selected('MATCH("Client-IP-Address=^10\\.1\\.0\\..*")') == ["ap-1", "ap-2"]
    assert selected('MATCH("Client-Vendor=^9$")') == ["ap-2"]


def test_sids_become_names_of_groups(tmp_path: Path) -> None:
    """A SID without a name disables a grant, and needs a decision for a deny."""
    text = export(
        policies=[policy("A", 1, [f'NTGROUPS("{STAFF}")']), policy("B", 2, [f'NTGROUPS("{GUESTS}")'])],
        profiles=[profile("A"), profile("B", grants=False)],
    )
    found = read(tmp_path, text)
    assert sids_of(found) == [STAFF, GUESTS]
    known = resolved(found, {STAFF: "Staff", GUESTS: "Guests"})
    assert [each.fields.get("groups") for each in rules(known)] == [["Staff"], ["Guests"], None]
    assert not known.named(Weight.UNDECIDED)
    unknown = resolved(found, {})
    assert [each.fields.get("enabled", True) for each in rules(unknown)] == [False, False, True]
    assert [each.name for each in unknown.named(Weight.UNDECIDED)] == ["B"]
    decided = resolved(found, {}, {"B": Decision.BLOCK})
    assert rules(decided)[1].fields["everyone"] is True and rules(decided)[1].fields["groups"] == []
    assert [each.name for each in rules(resolved(found, {}, {"B": Decision.SKIP}))] == ["A", "NPS: no policy matches"]


def test_the_refusals_of_an_unknown_group_need_a_decision(tmp_path: Path) -> None:
    """NPS rejects a login of the group by another method. A policy behind it that grants would admit this login."""
    policies = [policy("A", 1, [f'NTGROUPS("{STAFF}")']), policy("B", 2, [f'NTGROUPS("{GUESTS}")'])]
    profiles = [profile("A", msNPAuthenticationType2=4), profile("B")]
    found = read(tmp_path, export(policies=policies, profiles=profiles))
    unknown = resolved(found, {GUESTS: "Guests"})
    assert [each.name for each in unknown.named(Weight.UNDECIDED)] == ["A: otherwise"]
    decided = resolved(found, {GUESTS: "Guests"}, {"A": Decision.BLOCK})
    assert [(each.name, each.fields.get("enabled", True)) for each in rules(decided)[:3]] == [
        ("A", False), ("A: otherwise", True), ("B", True),
    ]  # fmt: skip
    for nobody_behind in (
        export(policies=policies[:1], profiles=profiles),
        export(policies=policies, profiles=profiles),
    ):
        assert not resolved(read(tmp_path, nobody_behind), {}).named(Weight.UNDECIDED)


def test_realms_that_are_forwarded_become_domains(tmp_path: Path) -> None:
    """A connection request policy for a realm becomes a domain. Upstream servers are findings without their secrets."""
    server = named("10.9.0.1", properties({"Address": "10.9.0.1", "Authentication_Secret": "upstream-secret"}))
    forward = properties({"msAuthProviderType": 2, "msAuthProviderName": "Partners"})
    proxies = box("Proxy_Policies", [
        policy("Partner", 1, ['MATCH("User-Name=@partner\\.example$|@p\\.example$")']),
        policy("Windows", 5, [ALWAYS]),
        policy("Late", 9, [WIFI]),
    ])  # fmt: skip
    proxies += box("Proxy_Profiles", [
        named("Partner", forward), named("Windows", properties({"msAuthProviderType": 1})), named("Late", forward),
    ])  # fmt: skip
    proxies += box("RADIUS_Server_Groups", [named("Partners", box("Servers", [server]))])
    found = read(tmp_path, export([client("a", "192.0.2.1")], proxies=proxies))
    partner = next(each for each in found.items if each.kind == "domain" and each.name == "partner.example")
    assert partner.fields["realms"] == ["p.example"]
    assert clients_of(found)["a"]["domains"] == ["corp", "partner.example"]
    said = texts(found)
    assert "10.9.0.1" in said and "upstream-secret" not in said
    assert "is never read" in said


def test_german_windows_and_utf_16(tmp_path: Path) -> None:
    """Names come from the attribute `name`, in any language and in both encodings of exports."""
    text = export(
        policies=[policy("Verbindungen für Außenstellen", 1, [WIFI])],
        profiles=[profile("Verbindungen für Außenstellen")],
        head='<?xml version="1.0" encoding="UTF-16"?>',
    )
    for encoding in ("utf-16", "utf-8"):
        found = read(tmp_path, text, encoding=encoding)
        assert rules(found)[0].name == "Verbindungen für Außenstellen"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (export()[:-40], r"line 1: the file is not valid XML.*"),
        ("", "truncated"),
        ("hello", "not valid XML"),
        ("<Root/>", "netsh nps export"),
        (export(head='<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]>'), "document type"),
        (export(head='<!DOCTYPE x SYSTEM "file:///etc/passwd">'), "document type"),
        ("<a>" * 100, "nested more than"),
        (f"<a>{'x' * 70_000}</a>", "a text has more than"),
    ],
    ids=["truncated", "empty", "no XML", "other XML", "entity bomb", "outside entity", "deep", "long text"],
)
def test_a_hostile_or_broken_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    """The error says what is wrong."""
    with pytest.raises(Invalid, match=reason):
        read(tmp_path, text)


def test_each_element_is_in_an_object_or_a_finding(tmp_path: Path) -> None:
    """An element that the reader does not know is a finding, wherever it is."""
    odd = box("Odd_Things", [named("Odd", properties({"Strange": "17"}))])
    found = read(tmp_path, export([client("a", "192.0.2.1", Extra_Setting="on")], proxies=odd))
    left = {each.name for each in found.named(Weight.LEFT_OUT)}
    assert {"Odd_Things", "Extra_Setting"} <= left


def test_the_translation_survives_the_way_from_the_child_process(tmp_path: Path) -> None:
    """The objects and findings are the same after JSON. So are the options."""
    found = read(
        tmp_path, export([client("a", "192.0.2.1"), client("b", "host")], [policy("P", 1, [WIFI])], [profile("P")])
    )
    assert Translation.parse(json.loads(json.dumps(found.as_json()))) == found
    options = Options("corp", "UTC", {STAFF: "Staff"}, {"P": Decision.SKIP}, True, {"name": "Name"})
    assert Options.parse(json.loads(json.dumps(options.as_json()))) == options
