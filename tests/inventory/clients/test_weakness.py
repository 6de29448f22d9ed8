"""The weaknesses of clients, without a part of their secrets; and overlapping networks."""

from ipaddress import IPv4Network, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.inventory.clients import weakness
from sallyport.inventory.clients.client import Client, Ranges


def client(network: str = "192.0.2.1/32", secret: bytes = b"a-Secret-of-22-octets!", **more: str) -> Client:
    """A client with the defaults of `add`."""
    settings = {"require_message_authenticator": "auto", "limit_proxy_state": "auto", **more}
    return Client(
        id=1,
        tenant_id=1,
        name="nas",
        network=network,
        secret=secret,
        all_domains=1,
        domain_ids=(),
        product="",
        password_verified=0,
        signed_since=None,
        proxy_state_limited_since=None,
        **settings,
    )


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        (b"testing123", "everybody knows"),
        (b"TESTING123", "everybody knows"),
        (b"testing123-1", "everybody knows"),
        (b"Cisco", "everybody knows"),
        (b"fifteen-octets!", "shorter than 16"),
        (b"abababababababababab", "repeats"),
        (b"a-Secret-of-22-octets!", ""),
    ],
)
def test_secrets_are_judged(secret: bytes, told: str) -> None:
    """Known, short or repetitive secrets are reported without showing them."""
    found = weakness.of_secret(secret)
    assert told in found
    assert bool(told) == bool(found)
    assert secret.decode() not in found


@pytest.mark.parametrize(
    ("made", "parts"),
    [
        (client(), []),
        (client("192.0.2.0/24"), ["never becomes yes"]),
        (client("192.0.2.0/24", require_message_authenticator="yes"), []),
        (client("0.0.0.0/0", require_message_authenticator="yes"), ["every address"]),
        (client("2001::/16", require_message_authenticator="yes"), ["very wide"]),
        (client(require_message_authenticator="no"), ["unsigned requests"]),
        (client(limit_proxy_state="no"), ["Proxy-State"]),
        (client(limit_proxy_state="no", require_message_authenticator="yes"), []),
        (client(secret=b"radius"), ["everybody knows"]),
    ],
)
def test_clients_are_judged(made: Client, parts: list[str]) -> None:
    """One line for each thing that is weak."""
    found = weakness.of_client(made)
    assert len(found) == len(parts)
    assert all(part in text for part, text in zip(parts, found, strict=True))


def test_the_closest_range_contains_a_network() -> None:
    """A network belongs to the next one around it, not to all."""
    names = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "10.1.2.4/32", "192.0.2.1/32"]
    wide, middle, one, other, alone = map(ip_network, names)
    assert weakness.enclosing([wide, middle, one, other, alone]) == {wide: [middle], middle: [one, other]}


@st.composite
def networks(draw: st.DrawFn) -> IPv4Network | IPv6Network:
    """Networks close enough to each other to touch."""
    if draw(st.booleans()):
        return IPv4Network((draw(st.integers(0, 255)), draw(st.integers(24, 32))), strict=False)
    return IPv6Network((draw(st.integers(0, 255)), draw(st.integers(120, 128))), strict=False)


@given(st.lists(networks(), max_size=8), networks())
def test_touching_is_what_ipaddress_calls_overlapping(known: list[IPv4Network | IPv6Network], one: IPv4Network) -> None:
    """The bisection agrees with comparing each pair."""
    wanted = any(each.version == one.version and each.overlaps(one) for each in known)
    assert Ranges(known).touch(one) is wanted
