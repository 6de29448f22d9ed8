"""Tests of weak clients and overlapping networks. The report contains no part of a secret."""

from ipaddress import IPv4Network, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.clients import weakness
from sallyport.areas.clients.client import Client, Ranges


def client(network: str = "192.0.2.1/32", secret: bytes = b"a-Secret-of-22-octets!", **more: str) -> Client:
    """Return a client with the defaults of `add`."""
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
    ("secret", "problem"),
    [
        (b"testing123", "well-known example secret"),
        (b"TESTING123", "well-known example secret"),
        (b"testing123-1", "well-known example secret"),
        (b"Cisco", "well-known example secret"),
        (b"fifteen-octets!", "shorter than 16"),
        (b"abababababababababab", "repeats"),
        (b"a-Secret-of-22-octets!", ""),
    ],
)
def test_weak_secrets_are_reported(secret: bytes, problem: str) -> None:
    """Known, short and repetitive secrets are reported without being shown."""
    found = weakness.of_secret(secret)
    assert problem in found
    assert bool(problem) == bool(found)
    assert secret.decode() not in found


@pytest.mark.parametrize(
    ("made", "parts"),
    [
        (client(), []),
        (client("192.0.2.0/24"), ["has no effect"]),
        (client("192.0.2.0/24", require_message_authenticator="yes"), []),
        (client("0.0.0.0/0", require_message_authenticator="yes"), ["contains all addresses"]),
        (client("2001::/16", require_message_authenticator="yes"), ["very wide"]),
        (client(require_message_authenticator="no"), ["unsigned requests"]),
        (client(limit_proxy_state="no"), ["Proxy-State"]),
        (client(limit_proxy_state="no", require_message_authenticator="yes"), []),
        (client(secret=b"radius"), ["well-known example secret"]),
    ],
)
def test_weak_clients_are_reported(made: Client, parts: list[str]) -> None:
    """The report has one line for each weakness."""
    found = weakness.of_client(made)
    assert len(found) == len(parts)
    assert all(part in text for part, text in zip(parts, found, strict=True))


def test_a_network_belongs_to_the_closest_range() -> None:
    """Each network is reported with the narrowest range that contains it."""
    names = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "10.1.2.4/32", "192.0.2.1/32"]
    wide, middle, one, other, alone = map(ip_network, names)
    assert weakness.enclosing([wide, middle, one, other, alone]) == {wide: [middle], middle: [one, other]}


@st.composite
def networks(draw: st.DrawFn) -> IPv4Network | IPv6Network:
    """Draw networks that are likely to overlap."""
    if draw(st.booleans()):
        return IPv4Network((draw(st.integers(0, 255)), draw(st.integers(24, 32))), strict=False)
    return IPv6Network((draw(st.integers(0, 255)), draw(st.integers(120, 128))), strict=False)


@given(st.lists(networks(), max_size=8), networks())
def test_the_overlap_search_agrees_with_ipaddress(known: list[IPv4Network | IPv6Network], one: IPv4Network) -> None:
    """The bisection finds the same overlaps as a comparison of all pairs."""
    wanted = any(each.version == one.version and each.overlaps(one) for each in known)
    assert Ranges(known).touch(one) is wanted
