"""Tests of the meaning of a client section: names, networks, secrets, products, settings, notes and findings."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from sallyport.areas.clients.freeradius import findings, read
from sallyport.base.errors import ClientsFileError

from .conf import GOOD, client, names, only, write


@pytest.mark.parametrize(
    ("written", "network"),
    [
        ("ipaddr = 192.0.2.1", "192.0.2.1/32"),
        ("ipaddr = 2001:db8::1", "2001:db8::1/128"),
        ("ipv4addr = 192.0.2.0/24", "192.0.2.0/24"),
        ("ipv6addr = 2001:db8::/32", "2001:db8::/32"),
        ("ipaddr = 2001:db8::/32", "2001:db8::/32"),
        ('"ipaddr" = "192.0.2.0/024"', "192.0.2.0/24"),
        ("ipaddr = 192.0.2.7/24", "192.0.2.0/24"),
        ("ipaddr = 10/8", "10.0.0.0/8"),
        ("ipaddr = 10.1/16", "10.1.0.0/16"),
        ("ipaddr = *", "0.0.0.0/0"),
        ("ipv4addr = *", "0.0.0.0/0"),
        ("ipv6addr = *", "::/0"),
        ("ipaddr = 0.0.0.0", "0.0.0.0/0"),
        ("ipaddr = 0.0.0.0/32", "0.0.0.0/0"),
        ("ipaddr = ::", "::/0"),
        ("ipaddr = 0.0.0.0/8", "0.0.0.0/8"),
        ("ipaddr = 192.0.2.0\nnetmask = 24", "192.0.2.0/24"),
        ("ipaddr = 192.0.2.7\nnetmask = 24", "192.0.2.0/24"),
        ("ipv6addr = 2001:db8::\nnetmask = 32", "2001:db8::/32"),
        ("ipaddr = 192.0.2.1\nipaddr = 192.0.2.2", "192.0.2.1/32"),
        ("ipaddr = 192.0.2.1\nipv4addr = 192.0.2.2", "192.0.2.2/32"),
        ("ipv6addr = ::1\nipv4addr = 192.0.2.2", "::1/128"),
    ],
)
def test_addresses_become_networks(tmp_path: Path, written: str, network: str) -> None:
    """Single addresses, prefixes, netmasks and `*` are converted to the network that FreeRADIUS serves."""
    assert only(tmp_path, client(address=written)).addresses == ip_network(network)


@pytest.mark.parametrize("name", ["192.0.2.0/24", '"192.0.2.0/24"', "192.0.2.9/24", "192.0.2/24"])
def test_a_section_without_ipaddr_has_its_address_as_name(tmp_path: Path, name: str) -> None:
    """In the old syntax, the name of the section is both the address and the name of the client."""
    entry = only(tmp_path, client(name, address="netmask = 8"))
    assert (entry.name, entry.addresses) == (name.strip('"'), ip_network("192.0.2.0/24"))
    assert "netmask is ignored, because the section has no ipaddr" in entry.notes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            client(address="ipaddr = radius.example.org"),
            "'radius.example.org' is not an IP address; host names are not resolved",
        ),
        (
            client("radius.example.org", address=""),
            "'radius.example.org' is not an IP address; host names are not resolved",
        ),
        (client(address="ipaddr = 192.0.2.1/"), "'192.0.2.1/' is not an IP address"),
        (client(address="ipaddr = 192.0.2.1/33"), "not an IP address"),
        (client(address="ipaddr = 010.0.0.1"), "not an IP address"),
        (client(address="ipaddr = 10.1"), "not an IP address"),
        (client(address="ipaddr = fe80::1%eth0"), "not an IP address"),
        (client(address='ipaddr = "192.0.2.1/\xb2"'), "not an IP address"),
        (client(address="ipv6addr = 192.0.2.1"), "not a value for ipv6addr"),
        (client(address="ipv4addr = ::1"), "not a value for ipv4addr"),
        (client(address="ipaddr = 192.0.2.0/24\nnetmask = 24"), "a prefix length, and netmask is set"),
        (client(address="ipaddr = 192.0.2.0\nnetmask = 255.255.255.0"), "netmask must be a prefix length, 0 to 32"),
        (client(address="ipv6addr = ::\nnetmask = 129"), "a prefix length, and netmask is set"),
        (client(secret=""), "no secret"),
        (client(secret='""'), "no secret"),
        (client(secret="#x"), "no secret"),
        (client(secret="${nothing}"), "secret: the reference '${nothing}' names no item"),
        (client(secret="$ENV{NOTHING}"), "secret: the environment variable 'NOTHING' is not set"),
        (client(more="require_message_authenticator = 1"), "require_message_authenticator must be yes, no or auto"),
        (client(more="proto = sctp"), "proto must be"),
        (client(more="dynamic_clients = discover"), "dynamic clients"),
        (client(""), "has no name"),
        (client('""'), "the name is empty"),
    ],
)
def test_a_bad_client_does_not_stop_the_import(tmp_path: Path, text: str, reason: str) -> None:
    """A client that cannot be imported is reported with its position and the reason. The next client is still read."""
    entries = read(write(tmp_path, f"\n{text}{client('next', address='ipaddr = 198.51.100.1')}"))
    assert names(entries) == ["next"]
    (bad,) = entries.unusable
    assert reason in bad.reason
    assert bad.where == f"{tmp_path / 'clients.conf'}:2"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a-b.c/d", "a-b.c/d"),
        ("'a b'", "a b"),
        ('"a\\"b"', 'a"b'),
        ('"caf\xc3\xa9"', "café"),
        ('"caf\xe9"', "café"),
        ('"${site}-1"', "north-1"),
    ],
)
def test_the_name_is_the_label_of_the_section(tmp_path: Path, written: str, name: str) -> None:
    """The name is decoded as UTF-8, or as Latin-1 if it is not valid UTF-8. A shortname takes precedence."""
    assert only(tmp_path, f"site = north\n{client(written)}").name == name
    assert only(tmp_path, f"site = north\n{client(written, more='shortname = core')}").name == "core"


@pytest.mark.parametrize(
    ("nas_type", "product"),
    [
        ("cisco", "Cisco IOS"),
        ("Mikrotik", "MikroTik RouterOS"),
        ("juniper", "Juniper Junos"),
        ("other", None),
        ("x", None),
    ],
)
def test_nas_type_gives_the_product(tmp_path: Path, nas_type: str, product: str | None) -> None:
    """A nas_type that is not a known product adds a note."""
    entry = only(tmp_path, client(more=f"nas_type = {nas_type}"))
    assert entry.product == product
    assert entry.notes == (() if product else (f"nas_type '{nas_type}' names no known product",))


@pytest.mark.parametrize(
    ("written", "setting"),
    [("yes", "yes"), ("TRUE", "yes"), ("on", "yes"), ("no", "no"), ("False", "no"), ("off", "no"), ("auto", "auto")],
)
@pytest.mark.parametrize("of_all", [False, True], ids=["client", "security section"])
def test_signature_settings_are_read(tmp_path: Path, written: str, setting: str, of_all: bool) -> None:
    """Both settings accept yes, no and auto in all spellings. The section `security` gives the default."""
    more = f"require_message_authenticator = {written}\nlimit_proxy_state = {written}"
    entry = only(tmp_path, f"security {{\n{more}\n}}\n{client()}" if of_all else client(more=more))
    assert (entry.require_message_authenticator, entry.limit_proxy_state) == (setting, setting)


def test_signature_settings_are_auto_by_default(tmp_path: Path) -> None:
    entry = only(tmp_path, client())
    assert (entry.require_message_authenticator, entry.limit_proxy_state) == ("auto", "auto")


def test_clients_of_lists_and_virtual_servers(tmp_path: Path) -> None:
    """Clients that FreeRADIUS uses only at some listeners are imported with a note."""
    entries = read(
        write(tmp_path, f"clients lan {{\n{client('a')}}}\nserver {{\n{client('b')}}}\nlisten {{\n{client('c')}}}\n")
    )
    assert [(entry.name, entry.notes) for entry in entries] == [
        ("a", ("FreeRADIUS uses the client only in clients 'lan'",)),
        ("b", ("FreeRADIUS uses the client only in server ''",)),
    ]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (client(more="virtual_server = x"), "virtual_server is ignored"),
        (client(more="coa_server = x"), "coa_server is ignored"),
        (client(more="proto = tcp"), "proto tcp is ignored: the client is imported for UDP"),
        (client(more="proto = tls"), "proto tls is ignored: the client is imported for UDP"),
        (client(secret="testing123"), "the secret is a well-known example secret"),
        (client(secret="8fT2kQ9zLw4XbN7"), "the secret is shorter than 16 octets"),
        (client(secret="abababababababababab"), "the secret repeats a few octets"),
        (
            client(secret=f'"{GOOD}\\n"'),
            "the backslash in the secret is part of the secret, as in FreeRADIUS 3; it is not an escape",
        ),
        (client(address="ipaddr = 192.0.2.7/24"), "'192.0.2.7/24' is read as the network 192.0.2.0/24"),
        (client(address="ipaddr = 0.0.0.0"), "'0.0.0.0' is read as the network 0.0.0.0/0"),
        (client(address="ipaddr = ::1\nipv6addr = ::2"), "ipaddr is ignored, because ipv6addr is set"),
        (client(more="secret = x"), "secret is set twice; the first value is used"),
        (client(secret=f"{GOOD},tail"), "an item with an unknown name is ignored ({}:3)"),
        (client(more="tls {\n}"), "a section is ignored ({}:4)"),
    ],
)
def test_ignored_items_are_noted(tmp_path: Path, text: str, note: str) -> None:
    """Notes and warnings contain no secret."""
    assert only(tmp_path, text).notes == (note.format(tmp_path / "clients.conf"),)


def test_a_usual_client_has_no_notes(tmp_path: Path) -> None:
    """proto = * and the limit section of FreeRADIUS's example add no note."""
    assert only(tmp_path, client(more="proto = *\nlimit {\nlifetime = 0\n}")).notes == ()


def test_weaknesses_are_found(tmp_path: Path) -> None:
    """The findings report weak secrets, equal names and networks, overlaps, ranges that never latch, and wide
    ranges."""
    text = client("a", address="ipaddr = 10.0.0.0/8", secret="testing123")
    text += client("a", address="ipaddr = 10.1.0.0/16", more="require_message_authenticator = yes")
    text += client("b", address="ipaddr = 10.1.2.3") + client("c", address="ipaddr = 10.1.2.3")
    path = write(tmp_path, text + client("all", address="ipv6addr = *", more="require_message_authenticator = no"))
    a, wide = f"'a' 10.0.0.0/8 ({path}:1)", f"'a' 10.1.0.0/16 ({path}:6)"
    b, c = f"'b' 10.1.2.3/32 ({path}:11)", f"'c' 10.1.2.3/32 ({path}:16)"
    latch = "require_message_authenticator is auto, which has no effect for a network; set yes or no"
    assert findings(read(path)) == [
        f"{a}: the secret is a well-known example secret",
        f"the name 'a' is used twice: {a}, {wide}",
        f"the network 10.1.2.3/32 is used twice: {b}, {c}",
        f"{a} contains {wide}: the longest prefix wins",
        f"{wide} contains {b}: the longest prefix wins",
        f"{a}: {latch}",
        f"{a}: the network is very wide",
        f"'all' ::/0 ({path}:21): the network contains all addresses, so other tenants cannot register any",
    ]


def test_findings_are_short(tmp_path: Path) -> None:
    """A network that contains thousands of other networks is reported in one line and found quickly.

    Single addresses are not reported.
    """
    inner = "".join(client(f"n{n}", address=f"ipaddr = 10.0.{n >> 8}.{n & 255}") for n in range(3000))
    found = findings(read(write(tmp_path, client("lan", address="ipaddr = 10.0.0.0/16") + inner)))
    assert len(found) == 2
    assert found[0].endswith("and 2995 more: the longest prefix wins")
    assert findings(read(write(tmp_path, inner))) == []


TAIL = "kLm0pQr5tUv"


def test_the_results_contain_no_secret(tmp_path: Path) -> None:
    entries = read(write(tmp_path, client(secret=f"short1,{TAIL}", more=f"secret = {TAIL}")))
    assert TAIL not in f"{entries}{findings(entries)}{entries.unusable}"


@pytest.mark.parametrize(
    "wrong",
    [f"x {TAIL}", f'"x"{TAIL}', f'"x{TAIL}', f"x, {TAIL} = y z", f"x, {TAIL} == y"],
    ids=["two words", "behind a quote", "open quote", "two values", "operator"],
)
def test_an_error_contains_no_secret(tmp_path: Path, wrong: str) -> None:
    """The message for a malformed secret does not contain any part of the secret."""
    with pytest.raises(ClientsFileError) as caught:
        read(write(tmp_path, client(secret=wrong)))
    assert TAIL not in str(caught.value)
