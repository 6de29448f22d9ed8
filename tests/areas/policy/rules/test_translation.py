"""Tests of how request bodies are translated to numbers and octets."""

import pytest

from sallyport.areas.policy.rules.comparisons import MAX_NAMES
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.policy.rules.rule import MAX_REPLY_OCTETS, Reply
from sallyport.areas.policy.rules.translation import MAX_COMPARED, Translation, check_clients
from sallyport.base.errors import Invalid
from sallyport.radius.attributes import (
    EAP_MESSAGE,
    REPLY_MESSAGE,
    STATE,
    pull_attributes,
    pull_vendor_attributes,
    push_attribute,
    push_vendor_attribute,
)
from tests.areas import dictionary
from tests.packets import attributes, opened, pap

WORDS = Translation(dictionary())


def replies(*pairs: tuple[str, str], vlan: str = "") -> bytes:
    """Return reply attributes encoded in octets."""
    return WORDS.replies(vlan, [Reply(name=name, value=value) for name, value in pairs])


def refusal(*pairs: tuple[str, str], vlan: str = "") -> str:
    """Return the message with which these reply attributes are refused."""
    with pytest.raises(Invalid) as refused:
        replies(*pairs, vlan=vlan)
    assert refused.value.fields
    return str(refused.value)


def test_service_types_are_names_or_numbers() -> None:
    """Names of the RFC and of FreeRADIUS are accepted in any case, and numbers are accepted too.

    Each value is stored once.
    """
    names = ["Login", "login-user", "1", "Framed", "2", "NAS Prompt", "Authorize-Only", "Administrative", "99"]
    assert WORDS.service_types(names) == [1, 2, 7, 17, 6, 99]
    assert [WORDS.service_type_name(number) for number in (1, 99)] == ["Login-User", "99"]


@pytest.mark.parametrize(
    ("attributes", "shown"),
    [
        pytest.param(b"", "", id="none"),
        pytest.param(
            replies(("Filter-Id", "staff"), vlan="20"),
            "Tunnel-Type = VLAN\nTunnel-Medium-Type = IEEE-802\nTunnel-Private-Group-Id = 20\nFilter-Id = staff",
            id="of a rule",
        ),
        pytest.param(
            push_attribute(STATE, bytes(16)) + push_attribute(EAP_MESSAGE, b"\3\1\0\4"), "", id="of the method"
        ),
        pytest.param(
            push_vendor_attribute(311, 16, bytes(50)) + push_vendor_attribute(311, 17, bytes(50)), "", id="keys"
        ),
        pytest.param(push_attribute(69, b"\0" + bytes(18)), "Tunnel-Password = ***", id="password"),
        pytest.param(push_vendor_attribute(9, 1, b"psk=one"), "Cisco-AVPair = ***", id="key in a text"),
        pytest.param(push_vendor_attribute(9, 1, b"ssid=one"), "Cisco-AVPair = ssid=one", id="text"),
        pytest.param(push_vendor_attribute(99999, 1, b"one"), "Attr-26.99999.1 = ***", id="unknown"),
        pytest.param(push_attribute(REPLY_MESSAGE, b"a\nb = c"), "Reply-Message = 0x610a62203d2063", id="line break"),
    ],
)
def test_attributes_are_shown_without_secrets(attributes: bytes, shown: str) -> None:
    """Each attribute has a line. Attributes of the authentication method are left out, and secrets are hidden."""
    assert WORDS.shown(attributes) == shown


@pytest.mark.parametrize("entry", ["Loggin", "-1", "4294967296", "1.5", "User"])
def test_an_unknown_service_type_is_refused(entry: str) -> None:
    """The error message has the position of the unknown entry."""
    with pytest.raises(Invalid, match="invalid serviceTypes: entry 2"):
        WORDS.service_types(["Login", entry])


def test_media_have_the_names_of_the_inventory() -> None:
    """Names of NAS-Port-Type are accepted too. Both kinds of Wi-Fi are the same medium."""
    assert WORDS.media(["ethernet", "Wireless-802.11", "18", "VIRTUAL", "Wireless-Other"]) == [
        "Ethernet", "Wireless", "Virtual",
    ]  # fmt: skip


@pytest.mark.parametrize("entry", ["Unknown", "WiFi", "77"])
def test_an_unknown_medium_is_refused(entry: str) -> None:
    """The error message has the position of the unknown entry."""
    with pytest.raises(Invalid, match="invalid media: entry 1"):
        WORDS.media([entry])


def test_clients_are_names_addresses_and_networks() -> None:
    """The name of a client may contain dots, spaces and one colon."""
    check_clients(["vpn", "192.0.2.1", "192.0.2.7/24", "2001:db8::/32", "switch 3.floor", "a:b"])


@pytest.mark.parametrize(
    "entry", ["192.0.2.256", "192.0.2.0/33", "192.0.2", "2001:db8::/129", "2001:db8::g/32", "1:2:3", "vpn/24"]
)
def test_a_malformed_client_address_is_refused(entry: str) -> None:
    """A malformed address is refused. Otherwise it would be read as a name, and the rule would never match."""
    with pytest.raises(Invalid, match="invalid clients: entry 2"):
        check_clients(["vpn", entry])


def test_conditions_are_kept_in_one_form() -> None:
    """However an admin writes a value, a rule keeps one form of it, once."""
    words = Translation(dictionary())
    for field, entries, kept in (
        ("users", ["Ann"], ("Ann",)),
        ("serviceTypes", ["Login", "1"], (1,)),
        ("media", ["wireless", "19"], ("Wireless",)),
        ("methods", ["PAP", "eap-peap-gtc", "peap-gtc"], ("pap", "peap-gtc")),
        ("tags", ["Site = Berlin", "site=Berlin"], ("site=Berlin",)),
        ("certificates", [" SAN = x ", "san=x"], ("san=x",)),
        ("attributes", ["nas-port-type=15", "NAS-Port-Type=Ethernet"], ("NAS-Port-Type=Ethernet",)),
        ("addresses", ["192.0.2.1/32", "192.0.2.1", "10.0.0.7/8"], ("192.0.2.1", "10.0.0.0/8")),
    ):
        assert words.condition(field, entries) == kept, field


@pytest.mark.parametrize(
    ("field", "right", "wrong", "says"),
    [
        ("attributes", "Class=x", "Class", "must be NAME=VALUE or NAME~PATTERN"),
        ("attributes", "Class=x", "Class=", "must be NAME=VALUE or NAME~PATTERN"),
        ("attributes", "Class=x", "Clas=hunter2", "names no RADIUS attribute; Class?"),
        ("attributes", "Class=x", "User-Password=hunter2", "names User-Password, which a rule cannot compare"),
        ("attributes", "Class=x", "NAS-Port=hunter2", "has no value of the type integer of NAS-Port"),
        ("tags", "a=b", "hunter2", "must be KEY=VALUE, with a key of 1 to 32 letters"),
        ("certificates", "san=x", "hunter2=x", "must be KEY=VALUE with one of the keys issuer, template, eku"),
        ("certificates", "san=x", "san=", "must be KEY=VALUE with one of the keys"),
        ("methods", "pap", "hunter2", "must be a method such as pap"),
        ("addresses", "192.0.2.1", "hunter2", "must be an address, or a network such as 192.0.2.0/24"),
    ],
)
def test_a_malformed_condition_is_named(field: str, right: str, wrong: str, says: str) -> None:
    """The error names the field and the entry, and the expected form. It never has the submitted value."""
    with pytest.raises(Invalid) as refused:
        WORDS.condition(field, [right, wrong])
    (error,) = refused.value.fields
    assert error.field == f"{field}.1"
    assert error.message.startswith(says)
    assert "hunter2" not in str(refused.value)


def test_a_rule_compares_a_few_attributes() -> None:
    """Many values of one attribute are one name."""
    names = [f"Attr-26.99.{number}=0x00" for number in range(1, MAX_NAMES + 1)]
    more = [f"{names[0]}{number:02}" for number in range(10)]
    assert len(WORDS.condition("attributes", [*names, *more])) == MAX_NAMES + 10
    with pytest.raises(Invalid, match="must name at most 8 different attributes") as refused:
        WORDS.condition("attributes", [*names, "Class=x"])
    assert [each.field for each in refused.value.fields] == ["attributes"]


def test_a_fact_is_one_value() -> None:
    """In the test of a rule, an attribute has a value and no pattern. An error names the field of the test."""
    by_field = {each.field: each for each in CONDITIONS}
    assert WORDS.fact(by_field["attributes"], ["nas-port-type=15"]) == ("NAS-Port-Type=Ethernet",)
    assert WORDS.fact(by_field["serviceTypes"], ["Login"]) == "1"
    for field, wrong in (("attributes", "Class~a*"), ("attributes", "Class"), ("serviceTypes", "x")):
        with pytest.raises(Invalid) as refused:
            WORDS.fact(by_field[field], [wrong])
        assert [each.field for each in refused.value.fields] == [by_field[field].fact]


@pytest.mark.parametrize(("last", "is_kept"), [(MAX_COMPARED - 8 * 250, True), (MAX_COMPARED - 8 * 250 + 1, False)])
def test_the_compared_attributes_of_a_request_are_limited(last: int, is_kept: bool) -> None:
    """An attribute with which the texts are too long is as good as absent."""
    sent = b"".join(attributes(REPLY_MESSAGE=b"x" * size) for size in (*[250] * 8, last))
    found = WORDS.attributes_of(opened(pap("ann", "hello", sent)), frozenset({"Reply-Message"}))
    assert ("Reply-Message" in found) is is_kept


@pytest.mark.parametrize("vlan", ["20", "1", "4094", "guests"])
def test_a_vlan_is_three_attributes(vlan: str) -> None:
    """A VLAN is encoded as Tunnel-Type VLAN, Tunnel-Medium-Type IEEE-802 and the group, all without a tag (RFC 3580
    section 3.31)."""
    assert list(pull_attributes(replies(vlan=vlan))) == [
        (64, b"\0\0\0\x0d"), (65, b"\0\0\0\x06"), (81, vlan.encode()),
    ]  # fmt: skip


@pytest.mark.parametrize("vlan", ["0", "4095", "99999999999999999999"])
def test_an_invalid_vlan_is_refused(vlan: str) -> None:
    assert refusal(vlan=vlan) == "invalid vlan"


def test_reply_attributes_keep_their_order() -> None:
    """Attributes of the RFCs, tagged attributes, vendor attributes and octets keep their order.

    The attributes of the VLAN come first.
    """
    octets = replies(
        ("Filter-Id", "staff"),
        ("tunnel-type:1", "vlan"),
        ("Tunnel-Private-Group-Id:1", "30"),
        ("Class", "0x00ff"),
        ("Session-Timeout", "3600"),
        ("Cisco-AVPair", "shell:priv-lvl=15"),
        ("Framed-IP-Address", "192.0.2.7"),
        ("Reply-Message", "Grüße"),
    )
    found = list(pull_attributes(octets))
    assert [kind for kind, _ in found] == [11, 64, 81, 25, 27, 26, 8, 18]
    assert [value for _, value in found[:5]] == [b"staff", b"\x01\0\0\x0d", b"\x0130", b"\0\xff", b"\0\0\x0e\x10"]
    assert pull_vendor_attributes(found[5][1]) == (9, [(1, b"shell:priv-lvl=15")])
    assert found[7][1] == "Grüße".encode()
    with_vlan = replies(("Class", "a"), ("Class", "b"), vlan="20")
    assert [kind for kind, _ in pull_attributes(with_vlan)] == [64, 65, 81, 25, 25]


@pytest.mark.parametrize(
    "name",
    [
        "State", "Message-Authenticator", "Proxy-State", "EAP-Message", "User-Password", "CHAP-Password", "attr-24",
        "Attr-80", "Attr-26", "NAS-IP-Address", "Acct-Session-Id", "Calling-Station-Id", "MS-CHAP2-Success",
        "MS-MPPE-Send-Key", "Attr-26.311.17", "EAP-Key-Name", "Prompt", "ARAP-Challenge-Response",
        "Originating-Line-Info", "NAS-IPv6-Address",
    ],
)  # fmt: skip
def test_reserved_reply_attributes_are_refused(name: str) -> None:
    """Attributes that the service sets itself are refused under any name, and so are attributes that an Access-Accept
    cannot have."""
    shown = dictionary().attribute(name)
    shown = dictionary().find(shown.vendor, shown.number) or shown
    text = refusal(("Class", "a"), (name, "0x00"))
    assert text == f"invalid replyAttributes: entry 2: a rule or role cannot set {shown.name}"


@pytest.mark.parametrize("name", ["Tunnel-Password", "Tunnel-Password:1", "Attr-69", "Digest-HA1", "Ruckus-DPSK"])
def test_a_secret_reply_attribute_is_refused(name: str) -> None:
    """A secret attribute is refused, because it would be stored, listed and sent in plain text."""
    text = refusal((name, "hunter2"))
    assert "hunter2" not in text and ("secret" in text or "a rule or role cannot set" in text or "no RADIUS" in text)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("Filter-Idd", "x", "no RADIUS attribute of this name; Filter-Id?"),
        ("hunter2", "x", "no RADIUS attribute of this name"),
        ("Filter-Id:1", "hunter2", "Filter-Id takes no tag"),
        ("Tunnel-Type:32", "VLAN", "the tag of Tunnel-Type is 0 to 31"),
        ("Session-Timeout", "hunter2", "the value of Session-Timeout is of type integer, 1 to 253 octets"),
        ("Service-Type", "hunter2", "the value of Service-Type is of type integer or one of its names"),
        ("Framed-IP-Address", "hunter2", "the value of Framed-IP-Address is of type ipaddr"),
        ("Filter-Id", "", "the value of Filter-Id is of type string"),
        ("Filter-Id", "hunter2" * 40, "the value of Filter-Id is of type string"),
        ("Cisco-AVPair", "x" * 248, "the value of Cisco-AVPair is of type string, 1 to 247 octets"),
        ("Class", "0xhunter2", "the value of Class is of type octets"),
        ("IPv6-6rd-Prefix", "x", "IPv6-6rd-Prefix is a part of IPv6-6rd-Configuration"),
    ],
)
def test_malformed_entries_are_named(name: str, value: str, says: str) -> None:
    """The error message has the number of the entry and the name in the dictionary, but never the submitted value."""
    text = refusal(("Class", "a"), (name, value))
    assert text.startswith(f"invalid replyAttributes: entry 2: {says}")
    assert "hunter2" not in text


@pytest.mark.parametrize("name", ["Tunnel-Type", "Tunnel-Medium-Type:1", "tunnel-private-group-id"])
def test_a_vlan_and_its_attributes_are_refused_together(name: str) -> None:
    """A VLAN and its attributes are refused together, because the attributes would occur twice."""
    value = "20" if name.endswith("id") else "6"
    assert replies((name, value))
    assert "is already set by the field vlan" in refusal((name, value), vlan="20")


def test_the_total_length_of_reply_attributes_is_limited() -> None:
    """The limit is 2048 octets, which leaves room in the packet for other attributes."""
    fitting = [("Class", "x" * 253)] * (MAX_REPLY_OCTETS // 255)
    assert len(replies(*fitting)) <= MAX_REPLY_OCTETS
    assert "entry 9 must fit into 2048 octets" in refusal(*fitting, ("Class", "x" * 253))
