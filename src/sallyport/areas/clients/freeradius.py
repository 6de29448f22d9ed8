"""Reader of the RADIUS clients in a FreeRADIUS 3 clients.conf. The reader stores nothing and resolves no host names.

`freeradius_syntax` reads lines and tokens. `freeradius_tree` builds sections from the tokens. This module interprets
the `client` sections in the same way as FreeRADIUS 3.2 (sources: raddb/clients.conf, and tests with the server). A file
with invalid syntax is an error. A client that cannot be imported is listed with the reason; the other clients are
imported.

The reader does not import a client if FreeRADIUS reads the client's address in a surprising way. Examples: `ipaddr =
192.0.2.1/` means all addresses, `netmask = 255.255.255.0` means a single address, and `010.0.0.1` means 8.0.0.1.

A client without signature settings gets `auto`, the default of FreeRADIUS since 3.2.5.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from sallyport.areas.clients import weakness
from sallyport.areas.clients.freeradius_tree import Parser, Section
from sallyport.base.secret import Secret

Network = IPv4Network | IPv6Network
Setting = Literal["yes", "no", "auto"]

EMPTY: Final[Mapping[str, str]] = MappingProxyType({})

# The product for each nas_type of FreeRADIUS's checkrad. Its types `dot1x` and `other` mean no product.
PRODUCTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ascend": "Lucent MAX",
        "bay": "Bay Networks",
        "cisco": "Cisco IOS",
        "cisco_l2tp": "Cisco IOS",
        "computone": "Computone IntelliServer",
        "cvx": "Nortel CVX",
        "digitro": "Digitro NXC",
        "juniper": "Juniper Junos",
        "livingston": "Livingston PortMaster",
        "max40xx": "Lucent MAX",
        "max40xx_snmp": "Lucent MAX",
        "mikrotik": "MikroTik RouterOS",
        "mikrotik_snmp": "MikroTik RouterOS",
        "multitech": "MultiTech CommPlete",
        "netserver": "USRobotics NETServer",
        "pathras": "Cyclades PathRAS",
        "patton": "Patton RAS",
        "portslave": "Portslave",
        "pr3000": "Cyclades PR3000",
        "pr4000": "Cyclades PR4000",
        "redback": "Redback SmartEdge",
        "tc": "USRobotics Total Control",
        "usrhiper": "USRobotics HiPer ARC",
        "versanet": "VersaNet",
    }
)
_ADDRESSES: Final = ("ipv6addr", "ipv4addr", "ipaddr")  # FreeRADIUS uses the first of these that the section contains
_SIGNATURES: Final = ("require_message_authenticator", "limit_proxy_state")
_KNOWN: Final = frozenset({*_ADDRESSES, *_SIGNATURES, "netmask", "secret", "shortname", "nas_type", "proto"})
_IGNORED: Final = frozenset(
    {"virtual_server", "coa_server", "src_ipaddr", "response_window", "rate_limit", "login", "password", "lifetime"}
)
_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {"yes": "yes", "true": "yes", "on": "yes", "no": "no", "false": "no", "off": "no", "auto": "auto"}
)
_PREFIX: Final = re.compile(r"(?P<address>[^/]+)(?:/(?P<length>[0-9]{1,3}))?")


@dataclass(frozen=True, slots=True)
class Entry:
    """A client to import.

    addresses: the client's network; a single address has the prefix length 32 or 128. product: None if nas_type names
    no known product. where: the position of the section, as `file:line`. notes: warnings, and notes about ignored
    items.
    """

    name: str
    addresses: Network
    secret: Secret
    product: str | None
    require_message_authenticator: Setting
    limit_proxy_state: Setting
    where: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unusable:
    """A client that cannot be imported."""

    name: str
    where: str
    reason: str


class Entries(list[Entry]):
    """The clients of a file that can be imported, in the order of the file. unusable: the clients that cannot be
    imported."""

    def __init__(self, entries: Iterable[Entry] = (), unusable: Iterable[Unusable] = ()) -> None:
        super().__init__(entries)
        self.unusable = tuple(unusable)


class _UnusableError(Exception):
    """A client section cannot be imported; the message is the reason."""


def read(path: Path, *, environ: Mapping[str, str] = EMPTY, within: Path | None = None) -> Entries:
    """Return the clients of a clients.conf or a radiusd.conf, including the files that it includes.

    environ: the values of `$ENV{NAME}`. within: the folder that has all included files; None if they may be anywhere.

    Raises ClientsFileError if the syntax is invalid, if a reference in a section's name or in an include is unknown, or
    if a limit of `freeradius_tree` is exceeded. The message has the form `file:line: error`.
    """
    top = Parser(environ, within=within).parse(path)
    entries: list[Entry] = []
    unusable: list[Unusable] = []
    for section, notes in _clients(top):
        try:
            entries.append(_entry(section, top, notes))
        except _UnusableError as reason:
            unusable.append(Unusable(_decoded(section.label or ""), section.where, str(reason)))
    return Entries(entries, unusable)


def _clients(top: Section) -> Iterator[tuple[Section, list[str]]]:
    """Yield each client section, together with the notes about it.

    If a client is defined in a `clients` or `server` section, FreeRADIUS uses this client only for the listeners of
    that section. In this case a note says so.
    """
    for section in top.sections:
        if section.kind == "client":
            yield section, []
        elif section.kind in ("clients", "server"):
            note = f"FreeRADIUS uses the client only in {section.kind} {_decoded(section.label or '')!r}"
            yield from ((inner, [note]) for inner in section.sections if inner.kind == "client")


def _entry(section: Section, top: Section, notes: list[str]) -> Entry:
    if section.label is None:
        raise _UnusableError("a client section has no name")
    if "dynamic_clients" in section.items:
        raise _UnusableError("dynamic clients cannot be imported, because they have no secret of their own")
    name = _decoded(_value(section, "shortname") or section.label)
    if not name:
        raise _UnusableError("the name is empty")
    addresses = _addresses(section, notes)
    secret = _secret(section, notes)
    product = _product(section, notes)
    _note_ignored(section, notes)
    message_authenticator = _setting(section, top, "require_message_authenticator")
    proxy_state = _setting(section, top, "limit_proxy_state")
    return Entry(name, addresses, secret, product, message_authenticator, proxy_state, section.where, tuple(notes))


def _value(section: Section, name: str) -> str:
    """Return an item's octets as Latin-1 text. Return an empty string if the item is absent."""
    item = section.items.get(name)
    if item is None:
        return ""
    if item.problem:
        raise _UnusableError(f"{name}: {item.problem}")
    return item.value


def _decoded(text: str) -> str:
    octets = text.encode("latin-1")
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return text


def _addresses(section: Section, notes: list[str]) -> Network:
    given = [name for name in _ADDRESSES if _value(section, name)]
    notes.extend(f"{name} is ignored, because {given[0]} is set" for name in given[1:])
    netmask = _value(section, "netmask")
    if not given:  # FreeRADIUS 1 style: the name of the section is the address
        if netmask:
            notes.append("netmask is ignored, because the section has no ipaddr")
        return _network(section.label or "", "ipaddr", notes)
    network = _network(_value(section, given[0]), given[0], notes)
    return _masked(network, _value(section, given[0]), netmask, notes) if netmask else network


def _network(text: str, kind: str, notes: list[str]) -> Network:
    """Return the network in a value of ipaddr, ipv4addr or ipv6addr. The values `*`, 0.0.0.0 and `::` mean all
    addresses."""
    written, network = _prefix(text, kind)
    if network.version not in {"ipv4addr": (4,), "ipv6addr": (6,)}.get(kind, (4, 6)):
        raise _UnusableError(f"{_decoded(text)!r} is not a value for {kind}")
    if network == written and written.network_address.is_unspecified:
        network = written.supernet(new_prefix=0)
    if network.network_address != written.network_address or (network.prefixlen == 0 and text != "*"):
        notes.append(f"{_decoded(text)!r} is read as the network {network}")
    return network


def _prefix(text: str, kind: str) -> tuple[Network, Network]:
    """Parse an address with an optional prefix length. Return the network of the single address, and the network with
    the prefix length."""
    found = _PREFIX.fullmatch(text)
    if found is None or "%" in text:  # an IPv6 zone; FreeRADIUS does not accept it either
        raise _UnusableError(f"{_decoded(text)!r} is not an IP address")
    address, length = found["address"], found["length"]
    if address == "*" and length is None:
        address, length = ("::" if kind == "ipv6addr" else "0.0.0.0"), "0"
    elif length and re.fullmatch(r"[0-9]+(\.[0-9]+){0,2}", address):
        address += ".0" * (3 - address.count("."))  # FreeRADIUS reads 10/8 as 10.0.0.0/8
    try:
        written = ip_network(address)
        return written, written.supernet(new_prefix=int(length)) if length else written
    except ValueError:
        raise _UnusableError(f"{_decoded(text)!r} is not an IP address; host names are not resolved") from None


def _masked(network: Network, text: str, netmask: str, notes: list[str]) -> Network:
    if network.prefixlen != network.max_prefixlen:
        raise _UnusableError("the address has a prefix length, and netmask is set; remove one of them")
    if not re.fullmatch(r"[0-9]{1,3}", netmask) or int(netmask) > network.max_prefixlen:
        raise _UnusableError(f"netmask must be a prefix length, 0 to {network.max_prefixlen}")
    return _network(f"{text.partition('/')[0]}/{netmask}", "ipaddr", notes)


def _secret(section: Section, notes: list[str]) -> Secret:
    octets = _value(section, "secret").encode("latin-1")
    if not octets:
        raise _UnusableError("the client has no secret")
    if b"\\" in octets:
        notes.append("the backslash in the secret is part of the secret, as in FreeRADIUS 3; it is not an escape")
    weak = weakness.of_secret(octets)
    if weak:
        notes.append(f"the secret {weak}")
    return Secret(octets)


def _product(section: Section, notes: list[str]) -> str | None:
    nas_type = _value(section, "nas_type")
    product = PRODUCTS.get(nas_type.lower())
    if nas_type and product is None:
        notes.append(f"nas_type {_decoded(nas_type)!r} names no known product")
    return product


def _setting(section: Section, top: Section, name: str) -> Setting:
    """Return the setting of a client: yes, no or auto.

    The client's own value comes first, then the value in the `security` section. The default is auto.
    """
    value = _value(section, name)
    if value:
        setting = _SETTINGS.get(value.lower())
        if setting is None:
            raise _UnusableError(f"{name} must be yes, no or auto")
        return setting
    security = top.first("security")
    return _SETTINGS.get(_value(security, name).lower(), "auto") if security else "auto"


def _note_ignored(section: Section, notes: list[str]) -> None:
    """Add a note for each ignored item.

    A note about an unknown item does not show the item's name. The name may be part of a secret: in `secret = a,b`,
    FreeRADIUS reads `b` as a name.
    """
    proto = _value(section, "proto")
    if proto not in ("", "udp", "tcp", "tls", "*"):
        raise _UnusableError("proto must be udp, tcp, tls or *")
    if proto in ("tcp", "tls"):
        notes.append(f"proto {proto} is ignored: the client is imported for UDP")
    for name, item in section.items.items():
        if name in _IGNORED:
            notes.append(f"{name} is ignored")
        elif name not in _KNOWN:
            notes.append(f"an item with an unknown name is ignored ({item.where})")
    notes.extend(f"{name} is set twice; the first value is used" for name in section.repeated if name in _KNOWN)
    notes.extend(f"a section is ignored ({inner.where})" for inner in section.sections if inner.kind != "limit")


def findings(entries: Iterable[Entry]) -> list[str]:
    """Return a line for each problem that an admin should examine before the import. The lines show no secret.

    The problems are weak secrets, duplicate names and networks, networks within other networks, and very wide networks.
    The setting require_message_authenticator `auto` is a problem for a network, because the service learns the setting
    only for a single address.
    """
    clients = list(entries)
    return [*_weak(clients), *_twice(clients), *_overlaps(clients), *_ranges(clients)]


def _shown(entry: Entry) -> str:
    return f"{entry.name!r} {entry.addresses} ({entry.where})"


def _listed(entries: list[Entry]) -> str:
    more = f" and {len(entries) - 5} more" if len(entries) > 5 else ""
    return ", ".join(_shown(entry) for entry in entries[:5]) + more


def _weak(clients: list[Entry]) -> Iterator[str]:
    for entry in clients:
        weak = weakness.of_secret(entry.secret.reveal())
        if weak:
            yield f"{_shown(entry)}: the secret {weak}"


def _twice(clients: list[Entry]) -> Iterator[str]:
    names: dict[str, list[Entry]] = {}
    networks: dict[Network, list[Entry]] = {}
    for entry in clients:
        names.setdefault(entry.name, []).append(entry)
        networks.setdefault(entry.addresses, []).append(entry)
    yield from (f"the name {name!r} is used twice: {_listed(same)}" for name, same in names.items() if same[1:])
    yield from (
        f"the network {network} is used twice: {_listed(same)}" for network, same in networks.items() if same[1:]
    )


def _overlaps(clients: list[Entry]) -> Iterator[str]:
    """Yield a warning for each client whose network contains the networks of other clients."""
    first: dict[Network, Entry] = {}
    for entry in clients:
        first.setdefault(entry.addresses, entry)
    for network, within in weakness.enclosing(first).items():
        yield f"{_shown(first[network])} contains {_listed([first[each] for each in within])}: the longest prefix wins"


def _ranges(clients: list[Entry]) -> Iterator[str]:
    for entry in clients:
        if entry.addresses.num_addresses > 1 and entry.require_message_authenticator == "auto":
            yield f"{_shown(entry)}: {weakness.NEVER_LATCHES}"
        width = weakness.of_width(entry.addresses)
        if width:
            yield f"{_shown(entry)}: {width}"
