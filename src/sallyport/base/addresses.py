"""Normalized forms of IP addresses, networks and host names, so that equal values have equal texts.

IP addresses have the form of RFC 5952. An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) becomes an IPv4 address,
because dual-stack programs write IPv4 addresses as IPv4-mapped addresses.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
_MAPPED_PREFIX: Final = 96
_WITH_PORT: Final = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<v4>[0-9.]+))(?::[0-9]{1,5})?")
_LABEL: Final = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_HOST_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?", re.IGNORECASE)


def parse_address(text: str) -> Address:
    """Parse an IP address. An IPv4-mapped IPv6 address becomes an IPv4 address. Raises ValueError."""
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def parse_hop(text: str) -> Address:
    """Parse an address of X-Forwarded-For. It may have a port, as Azure Application Gateway and IIS write it:
    `198.51.100.7:4711`, `[2001:db8::1]:4711`. Raises ValueError."""
    text = text.strip().strip('"')
    with_port = _WITH_PORT.fullmatch(text)
    return parse_address(with_port["v6"] or with_port["v4"] if with_port else text)


def endpoint_address(text: str) -> str:
    """Return the IP address of an endpoint as VPN gateways send it, in canonical form: `198.51.100.7`,
    `198.51.100.7:4500`, `[2001:db8::1]:4500`, or `2001:db8::1[4500]` of strongSwan. Return "" for any other text."""
    try:
        return str(parse_hop(text if text.startswith("[") else text.partition("[")[0]))
    except ValueError:
        return ""


def parse_network(text: str) -> Network:
    """Parse a network such as `10.0.0.0/8`, or a single address. Bits after the prefix are cleared.

    Raises ValueError if the text is neither a network nor an address.
    """
    network = ip_network(text, strict=False)
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED_PREFIX:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((mapped, network.prefixlen - _MAPPED_PREFIX))
    return network


def network_bits(network: Network) -> str:
    """Return the IP version of a network, and then the bits of its prefix. If a network contains another one, its text
    is the beginning of the other text."""
    width = network.max_prefixlen
    return f"{network.version}{int(network.network_address):0{width}b}"[: network.prefixlen + 1]


def canonical(text: str) -> str:
    """Return an IP address in canonical form. Return any other text unchanged."""
    try:
        return str(parse_address(text.strip()))
    except ValueError:
        return text


def canonical_host(name: str) -> str:
    """Return a host name or IP address in canonical form: in lower case, without the dot of the DNS root."""
    return canonical(name.rstrip(".")).lower()


def is_loopback(host: str) -> bool:
    """Return whether a host is `localhost` or a loopback address. Host names are not resolved. host: without
    brackets."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_host(text: str) -> bool:
    """Return whether a text is an IP address without a zone, or has the form of a host name."""
    try:
        ip_address(text)
    except ValueError:
        # Some resolvers read a number as an IPv4 address: 2130706433 is 127.0.0.1.
        last = text.rstrip(".").rpartition(".")[2]
        return len(text) <= 253 and _HOST_NAME.fullmatch(text) is not None and not last.isdecimal()
    return "%" not in text
