"""Tests of RADIUS clients in memory: the client of a source address, and the settings that a client may learn."""

from ipaddress import ip_address, ip_network
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretBytes, TypeAdapter, ValidationError

from sallyport.areas.clients.bodies import AnySignatures, ClientSecret, Fingerprint, NetworkText, Product, TlsName
from sallyport.areas.clients.client import _MEMO, Client, ClientTable
from sallyport.areas.clients.issued import Issued
from sallyport.base.addresses import Network

NETWORKS = st.one_of(
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)).map(lambda each: ip_network(each, strict=False)),
    st.tuples(st.integers(0, 2**128 - 1), st.integers(0, 128)).map(lambda each: ip_network(each, strict=False)),
)


def make(
    id: int,
    network: str,
    *,
    tenant_id: int = 1,
    signature: str = "auto",
    limit: str = "auto",
    signed_since: int | None = None,
    limited_since: int | None = None,
    tls_name: str = "",
    tls_fingerprint: str = "",
) -> Client:
    """Return a client as it is read from the store."""
    return Client(
        id=id,
        tenant_id=tenant_id,
        name=f"c{id}",
        network=network,
        secret=b"s",
        all_domains=1,
        domain_ids=(),
        product="",
        require_message_authenticator=signature,
        limit_proxy_state=limit,
        password_verified=0,
        signed_since=signed_since,
        proxy_state_limited_since=limited_since,
        tls_name=tls_name,
        tls_fingerprint=tls_fingerprint,
    )


def found(table: ClientTable, host: str) -> str:
    """Return the network of the client that has an address, or an empty text if no client has it."""
    client = table.find(host)
    return "" if client is None else str(client.network)


def test_the_longest_prefix_wins() -> None:
    """The narrowest match is found first: a single address before its network, and a network before a wider one.

    This holds in IPv4 and IPv6.
    """
    networks = (
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.1.2.0/24",
        "10.1.2.3/32",
        "2001:db8::/32",
        "2001:db8:1::/48",
        "2001:db8:1::7/128",
    )
    table = ClientTable(make(number, network) for number, network in enumerate(networks))
    assert {host: found(table, host) for host in (
        "10.1.2.3", "10.1.2.4", "10.1.3.1", "10.255.255.255", "10.0.0.0", "11.0.0.1", "9.255.255.255",
        "2001:db8:1::7", "2001:db8:1::8", "2001:db8:2::1", "2001:db9::1", "::1",
    )} == {
        "10.1.2.3": "10.1.2.3/32", "10.1.2.4": "10.1.2.0/24", "10.1.3.1": "10.1.0.0/16",
        "10.255.255.255": "10.0.0.0/8", "10.0.0.0": "10.0.0.0/8", "11.0.0.1": "", "9.255.255.255": "",
        "2001:db8:1::7": "2001:db8:1::7/128", "2001:db8:1::8": "2001:db8:1::/48", "2001:db8:2::1": "2001:db8::/32",
        "2001:db9::1": "", "::1": "",
    }  # fmt: skip


def test_address_families_are_separate() -> None:
    """A network of all IPv4 addresses contains no IPv6 address.

    An IPv4 address does not equal the IPv6 address with the same numeric value.
    """
    table = ClientTable([make(1, "0.0.0.0/0"), make(2, "::a00:1/128")])
    assert (found(table, "10.0.0.1"), found(table, "::a00:1"), found(table, "::2")) == ("0.0.0.0/0", "::a00:1/128", "")


def test_the_zone_of_an_address_is_ignored() -> None:
    """The address of a link-local sender has a zone, which the look-up ignores."""
    assert found(ClientTable([make(1, "fe80::/10")]), "fe80::1%eth0") == "fe80::/10"


@given(networks=st.lists(NETWORKS, max_size=30, unique=True), data=st.data())
def test_the_table_finds_the_narrowest_network(networks: list[Network], data: st.DataObject) -> None:
    """For any networks, the table finds the narrowest network that contains an address.

    The second look-up returns the same result.
    """
    table = ClientTable(make(number, str(network)) for number, network in enumerate(networks))
    inside = [network[data.draw(st.integers(0, network.num_addresses - 1))] for network in networks[:5]]
    for address in (*inside, ip_address(data.draw(st.integers(0, 2**32 - 1)))):
        containing = [each for each in networks if each.version == address.version and address in each]
        narrowest = max(containing, key=lambda each: each.prefixlen, default=None)
        for _ in range(2):
            assert found(table, str(address)) == (str(narrowest) if narrowest else "")


def test_the_cache_of_senders_is_bounded() -> None:
    """A flood from random addresses does not make the cache larger than its limit, and every look-up stays right."""
    table = ClientTable([make(1, "10.0.0.0/8")])
    for number in range(_MEMO + 1000):
        host = str(ip_address((10 << 24) + number if number % 2 else (11 << 24) + number))
        assert (table.find(host) is None) is (number % 2 == 0)
    assert len(table._found) <= _MEMO


@pytest.mark.parametrize(
    ("own", "foreign", "touches"),
    [
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("10.1.0.0/16", "10.0.0.0/8", True),
        ("10.1.0.0/16", "10.1.0.0/16", True),
        ("10.1.255.255/32", "10.1.0.0/16", True),
        ("10.2.0.0/32", "10.1.0.0/16", False),
        ("10.0.255.255/32", "10.1.0.0/16", False),
        ("0.0.0.0/0", "2001:db8::/32", False),
        ("::/0", "2001:db8::1/128", True),
        ("::/0", "10.0.0.1/32", False),
    ],
)
def test_ranges_of_tenants_overlap_if_one_contains_the_other(own: str, foreign: str, touches: bool) -> None:
    """Ranges of the same tenant may overlap."""
    table = ClientTable([make(1, foreign, tenant_id=2)])
    assert table.foreign_ranges(1).touch(ip_network(own)) is touches
    assert not table.foreign_ranges(2).touch(ip_network(own))


@given(networks=st.lists(NETWORKS, max_size=20, unique=True), network=NETWORKS)
def test_the_overlap_check_agrees_with_comparing_each_pair(networks: list[Network], network: Network) -> None:
    table = ClientTable(make(number, str(each), tenant_id=2) for number, each in enumerate(networks))
    slow = any(each.version == network.version and each.overlaps(network) for each in networks)
    assert table.foreign_ranges(1).touch(network) is slow


@pytest.mark.parametrize(
    ("signature", "since", "network", "required", "learns"),
    [
        ("auto", None, "192.0.2.1/32", False, True),
        ("auto", 1, "192.0.2.1/32", True, False),
        ("auto", None, "192.0.2.0/31", False, False),
        ("auto", 1, "192.0.2.0/31", True, False),
        ("auto", None, "2001:db8::1/128", False, True),
        ("yes", None, "192.0.2.1/32", True, False),
        ("yes", None, "192.0.2.0/24", True, False),
        ("no", 1, "192.0.2.1/32", False, False),
        ("no", None, "192.0.2.0/24", False, False),
    ],
)
def test_auto_is_learned_by_a_single_address_only(
    signature: str, since: int | None, network: str, required: bool, learns: bool
) -> None:
    """The values yes and no are set by the admin and are not learned. The rule is the same for both settings."""
    client = make(1, network, signature=signature, signed_since=since)
    assert (client.signature_required, client.learns_signature) == (required, learns)
    client = make(1, network, limit=signature, limited_since=since)
    assert (client.proxy_state_limited, client.learns_limit) == (required, learns)


def test_a_single_address_is_shown_without_its_prefix_length() -> None:
    """A network is shown with its prefix length."""
    shown = [make(1, network).address for network in ("192.0.2.1/32", "192.0.2.0/24", "2001:db8::1/128", "0.0.0.0/0")]
    assert shown == ["192.0.2.1", "192.0.2.0/24", "2001:db8::1", "0.0.0.0/0"]


def test_the_repr_has_no_secret() -> None:
    """The repr of a client and the repr of its secret do not contain the secret."""
    assert repr(make(1, "192.0.2.1/32").secret) == "***"


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        (" 192.0.2.7/24 ", "192.0.2.0/24"),
        ("192.0.2.7/255.255.255.0", "192.0.2.0/24"),
        ("2001:DB8:0::1", "2001:db8::1/128"),
        ("2001:db8::1/64", "2001:db8::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
        ("::ffff:0:0/95", "::fffe:0:0/95"),
    ],
)
def test_an_address_is_normalized(text: str, network: str) -> None:
    """Host bits are removed, an IPv6 address has one notation, and an IPv4-mapped address becomes IPv4."""
    assert TypeAdapter(NetworkText).validate_python(text) == network


@pytest.mark.parametrize(
    "text",
    ["", "192.0.2", "192.0.2.256", "192.0.2.1/33", "host.example", "1.2.3.4-1.2.3.9", "::/129", "fe80::1%eth0"],
)
def test_a_malformed_address_is_refused(text: str) -> None:
    """Names, address ranges, malformed numbers and addresses with a zone are refused."""
    with pytest.raises(ValidationError):
        TypeAdapter(NetworkText).validate_python(text)


@pytest.mark.parametrize(
    ("text", "product"),
    [("cisco ISE ", "Cisco ISE"), ("MIKROTIK routeros", "MikroTik RouterOS"), ("Lucent MAX", "Lucent MAX"), (" ", "")],
)
def test_a_known_product_is_normalized(text: str, product: str) -> None:
    """A known product is accepted in upper or lower case, and is stored with its usual spelling.

    Another product is stored unchanged.
    """
    assert TypeAdapter(Product).validate_python(text) == product


def test_a_secret_has_up_to_128_octets() -> None:
    """The limit counts octets. A text is UTF-8 without control characters. A secret in hex may contain any octets."""
    adapter: TypeAdapter[SecretBytes] = TypeAdapter(ClientSecret)
    assert adapter.validate_python("ü" * 64).get_secret_value() == ("ü" * 64).encode()
    assert adapter.validate_python({"hex": "fc0a"}).get_secret_value() == b"\xfc\n"


@pytest.mark.parametrize(
    "value",
    ["ü" * 65, "x" * 129, "a\nb", {"hex": "00" * 129}, {"hex": "no"}, {}, ["61"], True],
    ids=["130 octets", "129 octets", "line end", "129 octets in hex", "no hex", "empty object", "array", "boolean"],
)
def test_other_secrets_are_refused(value: object) -> None:
    """A secret with control characters, with malformed hex or with more than 128 octets is refused."""
    with pytest.raises(ValidationError):
        TypeAdapter[SecretBytes](ClientSecret).validate_python(value)


@pytest.mark.parametrize(
    ("value", "meaning"), [(True, "yes"), (False, "no"), ("YES", "yes"), ("Auto", "auto"), ("no", "no")]
)
def test_a_signature_setting_is_a_word_or_a_boolean(value: object, meaning: str) -> None:
    """The values yes, no, auto, true and false are accepted in upper or lower case."""
    assert TypeAdapter(AnySignatures).validate_python(value) == meaning


# --- over TLS -----------------------------------------------------------------------------------------------------


def test_a_certificate_identifies_one_client() -> None:
    """The fingerprint is compared before the names.

    The names are compared in the order of the certificate. An empty value matches no client.
    """
    table = ClientTable(
        [make(1, "10.0.0.1/32", tls_name="a"), make(2, "10.0.0.2/32", tls_fingerprint="f"), make(3, "10.0.0.3/32")]
    )

    def certified(fingerprint: str, *names: str) -> int:
        client = table.certified(fingerprint, names)
        return 0 if client is None else client.id

    assert [certified("f", "a"), certified("g", "b", "a"), certified("g", "b"), certified("", ""), certified("")] == [
        2, 1, 0, 0, 0,
    ]  # fmt: skip


def test_a_certificate_of_two_tenants_identifies_no_client() -> None:
    """If a client of one tenant has a name of a certificate, and a client of another tenant has its fingerprint or
    another of its names, neither tenant receives the other's logins."""
    table = ClientTable(
        [
            make(1, "10.0.0.1/32", tls_name="a", tls_fingerprint="e"),
            make(2, "10.0.0.2/32", tls_fingerprint="f", tenant_id=2),
            make(3, "10.0.0.3/32", tls_name="b", tenant_id=2),
        ]
    )
    assert [table.certified("f", ["a"]), table.certified("g", ["b", "a"]), table.certified("e", ["b"])] == [None] * 3
    own = table.certified("e", ["a"])
    assert own is not None
    assert own.id == 1


@pytest.mark.parametrize(
    ("issued", "fingerprint", "names", "found"),
    [
        (Issued(), "e", ["a"], 1),
        (Issued({"e": 1}, {"a": 1}), "e", ["a"], 1),
        (Issued({"e": 2}, {"a": 2}), "e", ["a"], 0),
        (Issued({}, {"a": 2}), "e", ["a"], 0),
        (Issued({"e": 1}, {"a": 2}), "e", ["a"], 1),
        (Issued({}, {"a": 1, "b": 2}), "e", ["a", "b"], 0),
        (Issued({"f": 2}, {"b": 2}), "f", ["a", "b"], 0),
        (Issued({"f": 2}, {"b": 2}), "f", ["c", "b"], 2),
    ],
    ids=[
        "not issued", "own", "another's", "another's name", "the certificate before its name", "names of two tenants",
        "another's with this name", "the other's own",
    ],
)  # fmt: skip
def test_a_peer_is_a_client_of_the_certificates_tenant(
    issued: Issued, fingerprint: str, names: list[str], found: int
) -> None:
    """A certificate that was issued for one tenant never identifies a client of another tenant, even if that client has
    its name or fingerprint."""
    clients = [make(1, "10.0.0.1/32", tls_name="a"), make(2, "10.0.0.2/32", tls_name="b", tenant_id=2)]
    client = ClientTable(clients, issued).certified(fingerprint, names)
    assert (client.id if client else 0) == found


def test_a_client_over_tls_is_authenticated_by_its_certificate() -> None:
    """Over TLS the secret is `radsec`. Signature settings are learned only over UDP."""
    table = ClientTable([make(1, "10.0.0.1/32", tls_name="a")])
    secure, plain = table.certified("", ["a"]), table.find("10.0.0.1")
    assert secure is not None
    assert plain is not None
    assert (secure.secret.octets, secure.learns_signature, secure.learns_limit) == (b"radsec", False, False)
    assert (plain.secret.octets, plain.learns_signature, plain.learns_limit) == (b"s", True, True)


@pytest.mark.parametrize(
    ("kind", "text", "meant"),
    [
        (TlsName, " Proxy.Example.org ", "proxy.example.org"),
        (TlsName, "2001:DB8:0::1", "2001:db8::1"),
        (TlsName, "Main Proxy", "main proxy"),
        (TlsName, "proxy.example.org.", "proxy.example.org"),
        (TlsName, "::ffff:192.0.2.1", "192.0.2.1"),
        (TlsName, "*.Example.org", "*.example.org"),
        (TlsName, "xn--bcher-KVA.example", "xn--bcher-kva.example"),
        (TlsName, "", ""),
        (Fingerprint, "AB:" * 31 + "cd", "ab" * 31 + "cd"),
        (Fingerprint, "", ""),
    ],
)
def test_a_certificate_name_is_normalized(kind: object, text: str, meant: str) -> None:
    """Common notations of names and fingerprints are converted to the form in which they are compared."""
    assert TypeAdapter(kind).validate_python(text) == meant


@pytest.mark.parametrize(
    ("kind", "text"),
    [(TlsName, "a" * 254), (TlsName, "a\n"), (TlsName, "ä"), (Fingerprint, "ab" * 31), (Fingerprint, "x" * 64)],
)
def test_a_malformed_certificate_name_is_refused(kind: object, text: str) -> None:
    """A malformed name is refused, because it would never match a certificate."""
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(text)


class Watched(ClientTable):
    """A table that records the addresses for which it searches its networks."""

    looked: ClassVar[list[str]] = []

    def look_up(self, host: str) -> Client | None:
        self.looked.append(host)
        return super().look_up(host)


def test_unknown_addresses_do_not_evict_a_client() -> None:
    """The networks are searched once for the address of a client, however many unknown addresses send packets."""
    table = Watched([make(1, "192.0.2.1/32")])
    assert found(table, "192.0.2.1") == "192.0.2.1/32"
    for number in range(_MEMO + 1):
        table.find(str(ip_address(0x0A000000 + number)))
    assert found(table, "192.0.2.1") == "192.0.2.1/32"
    assert table.looked.count("192.0.2.1") == 1
