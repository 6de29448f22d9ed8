"""The index over the rules of a domain.

A domain may have 1,000 rules with 1,000 values each, and a user may have 1,000 groups. To keep a login fast, each
group, OU and address of the login is looked up in the index only once. The index returns the rules that name the value.
They are an integer in which each bit is a rule.
"""

from functools import lru_cache

from sallyport.areas.policy.rules.patterns import Patterns, add_name
from sallyport.base.addresses import Network, parse_address, parse_network

Names = frozenset[str]
Networks = dict[tuple[int, int], dict[int, int]]


class Index:
    """An index from values to the rules of a domain that name these values. A set of rules is an integer in which each
    bit is a rule.

    groups, ous: the rules by the case-folded name of the group or OU. sender, nas, addresses: the rules by network. The
    key of the outer table is (IP version, number of host bits). The key of the inner table is the network's prefix.
    ports: the rules by the pattern of NAS-Port-Id. tags, certificates: the rules by the folded text `key=value`.
    attributes: the rules by the name of an attribute, and by the pattern of its value.
    """

    __slots__ = ("addresses", "attributes", "certificates", "groups", "nas", "ous", "ports", "sender", "tags")

    def __init__(self) -> None:
        self.groups: dict[str, int] = {}
        self.ous: dict[str, int] = {}
        self.sender: Networks = {}
        self.nas: Networks = {}
        self.addresses: Networks = {}
        self.ports = Patterns()
        self.tags: dict[str, int] = {}
        self.certificates: dict[str, int] = {}
        self.attributes: dict[str, Patterns] = {}


def network_of(entry: str) -> Network | None:
    """Parse an entry of `clients` as a network or an address. Return None if it is a name."""
    try:
        return parse_network(entry)
    except ValueError:
        return None


def add_network(networks: Networks, network: Network, bit: int) -> None:
    """Add a rule, as a bit, to the rules that name a network."""
    shift = network.max_prefixlen - network.prefixlen
    add_name(networks.setdefault((network.version, shift), {}), int(network.network_address) >> shift, bit)


def naming(rules: dict[str, int], names: Names | None) -> int | None:
    """Return the rules, as bits, that name at least one of these groups or OUs. Return None if `names` is None."""
    if names is None:
        return None
    bits = 0
    for name in names if rules else ():
        bits |= rules.get(name, 0)
    return bits


def holding(networks: Networks, address: tuple[int, int] | None) -> int:
    """Return the rules, as bits, that name a network in which this address lies."""
    bits = 0
    if address is not None:
        version, number = address
        for (of, shift), rules in networks.items():
            if of == version:
                bits |= rules.get(number >> shift, 0)
    return bits


@lru_cache(4096)
def address_of(text: str) -> tuple[int, int] | None:
    """Return (IP version, address as a number), or None if the text is not an address."""
    try:
        address = parse_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.version, int(address)
