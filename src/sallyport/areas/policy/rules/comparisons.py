"""How the conditions of login rules compare facts: one function for each entry of `conditions.CONDITIONS`.

A function takes the values of a rule's condition, and returns the test of logins (`facts.Test`). Names, networks and
patterns go into the index that all rules of a domain share. The test then only looks up the rule's bit.
"""

import re
from collections.abc import Mapping
from typing import Final

from sallyport.areas.policy.rules.facts import Facts, Preparation, Seen, Test, Values, user_names
from sallyport.areas.policy.rules.index import add_network, network_of
from sallyport.areas.policy.rules.patterns import Patterns, add_name, folded_pattern
from sallyport.base.mac import station_key
from sallyport.base.tags import folded_tag
from sallyport.base.text import fold, folded
from sallyport.radius.password import Method
from sallyport.radius.vendors import UNKNOWN

UNKNOWN_MEDIA: Final = frozenset({"", UNKNOWN.casefold()})
_WITH_SSID: Final = frozenset({*UNKNOWN_MEDIA, "wireless"})
_ATTRIBUTE: Final = re.compile(r"\s*([A-Za-z0-9._/-]{1,64})\s*([=~])(.*)", re.DOTALL)
MAX_NAMES: Final = 8
"""Maximum number of different attributes that a rule compares."""
_OF_EAP: Final = ("eap-", "peap-", "ttls-")
EAP: Final = "eap"
METHODS: Final[Mapping[str, str]] = {
    "pap": "PAP",
    "chap": "CHAP",
    "mschap": "MS-CHAP",
    "mschapv2": "MS-CHAPv2",
    EAP: "EAP, all methods",
    "eap-tls": "EAP-TLS",
    "peap": "PEAP, all inner methods",
    "peap-mschapv2": "PEAP with MS-CHAPv2",
    "peap-gtc": "PEAP with GTC",
    "ttls": "TTLS, all inner methods",
    "ttls-pap": "TTLS with PAP",
    "ttls-chap": "TTLS with CHAP",
    "ttls-mschapv2": "TTLS with MS-CHAPv2",
    "ttls-eap-mschapv2": "TTLS with EAP-MSCHAPv2",
    "ttls-eap-gtc": "TTLS with EAP-GTC",
    "ttls-eap-md5": "TTLS with EAP-MD5",
    "eap-mschapv2": "EAP-MSCHAPv2",
    "eap-gtc": "EAP-GTC",
    "eap-md5": "EAP-MD5",
    "mab": "MAC authentication bypass",
}
"""The methods that a rule may name, with their labels."""


def method_in_rules(method: str) -> str:
    """Return the method of a login in the spelling of rules. Return an empty text if it is unknown.

    method: the method of an event, such as `eap-peap-mschapv2`. Rules say `peap-mschapv2`, as most products do.
    """
    if method.startswith(("eap-peap", "eap-ttls")):
        return method.removeprefix("eap-")
    return "" if method == Method.NONE else method


def texts_of(values: Values) -> tuple[str, ...]:
    """Return the values of a condition as texts."""
    return tuple(map(str, values))


def users(values: Values, _: Preparation) -> Test:
    """Return the test of `users`. A login that takes part under several names matches by each of them."""
    wanted = user_names(texts_of(values))

    def holds(seen: Seen) -> bool | None:
        if not seen.user:
            return None
        return seen.user in wanted or not wanted.isdisjoint(seen.facts.names)

    return holds


def groups(values: Values, prepared: Preparation) -> Test:
    """Return the test of `groups`."""
    bit = prepared.bit
    for name in folded(texts_of(values)):
        add_name(prepared.index.groups, name, bit)
    return lambda seen: None if seen.groups is None else bool(seen.groups & bit)


def ous(values: Values, prepared: Preparation) -> Test:
    """Return the test of `ous`."""
    bit = prepared.bit
    for name in folded(texts_of(values)):
        add_name(prepared.index.ous, name, bit)
    return lambda seen: None if seen.ous is None else bool(seen.ous & bit)


def kinds(values: Values, _: Preparation) -> Test:
    """Return the test of `kinds`, which no login lacks."""
    wanted = frozenset(values)
    return lambda seen: seen.facts.kind in wanted


def service_types(values: Values, _: Preparation) -> Test:
    """Return the test of `serviceTypes`."""
    wanted = frozenset(values)
    return lambda seen: None if seen.facts.service_type is None else seen.facts.service_type in wanted


def media(values: Values, _: Preparation) -> Test:
    """Return the test of `media`."""
    wanted = folded(texts_of(values))
    return lambda seen: None if seen.medium in UNKNOWN_MEDIA else seen.medium in wanted


def products(values: Values, _: Preparation) -> Test:
    """Return the test of `products`, which are those of the sender and of the NAS."""
    wanted = folded(texts_of(values))

    def holds(seen: Seen) -> bool | None:
        first, second = seen.products
        if first in wanted or second in wanted:
            return True
        return None if first in UNKNOWN_MEDIA or second in UNKNOWN_MEDIA else False

    return holds


def stations(values: Values, _: Preparation) -> Test:
    """Return the test of `stations`."""
    wanted = frozenset(map(station_key, texts_of(values)))
    return lambda seen: seen.station in wanted if seen.station else None


def clients(values: Values, prepared: Preparation) -> Test:
    """Return the test of `clients`. It compares the sender's name and address, and the NAS address in the request.

    A network in an `allow` rule matches only the sender's address. Otherwise an external gateway would be exempt if it
    sent an internal NAS-IP-Address.
    """
    entries, index, bit = texts_of(values), prepared.index, prepared.bit
    names = folded(tuple(entry for entry in entries if network_of(entry) is None))
    networks = [network for network in map(network_of, entries) if network is not None]
    for network in networks:
        add_network(index.sender, network, bit)
        if not prepared.exempts or network.prefixlen == network.max_prefixlen:
            add_network(index.nas, network, bit)

    def holds(seen: Seen) -> bool | None:
        if names and seen.client in names:
            return True
        if networks and ((seen.sender or 0) | seen.nas) & bit:
            return True
        unknown = (bool(names) and not seen.client) or (bool(networks) and seen.sender is None)
        return None if unknown else False

    return holds


def ssids(values: Values, _: Preparation) -> Test:
    """Return the test of `ssids`. A port whose medium is not Wi-Fi surely has no SSID."""
    wanted = folded(texts_of(values))

    def holds(seen: Seen) -> bool | None:
        if seen.facts.ssid:
            return seen.ssid in wanted
        return None if seen.medium in _WITH_SSID else False

    return holds


def ports(values: Values, prepared: Preparation) -> Test:
    """Return the test of `ports`, which are patterns of NAS-Port-Id."""
    bit = prepared.bit
    for pattern in texts_of(values):
        prepared.index.ports.add(folded_pattern(pattern), bit)
    return lambda seen: None if seen.port is None else bool(seen.port & bit)


def realms(values: Values, _: Preparation) -> Test:
    """Return the test of `realms`. A name without a realm is a missing fact, because the user may leave it out."""
    wanted = folded(texts_of(values))
    return lambda seen: seen.realm in wanted if seen.realm else None


def addresses(values: Values, prepared: Preparation) -> Test:
    """Return the test of `addresses`, which are addresses and networks."""
    bit = prepared.bit
    for network in map(network_of, texts_of(values)):
        if network is not None:
            add_network(prepared.index.addresses, network, bit)
    return lambda seen: None if seen.address is None else bool(seen.address & bit)


def methods(values: Values, _: Preparation) -> Test:
    """Return the test of `methods`. If the inner method of a login is not known, it may be any that fits the rest."""
    wanted = frozenset(texts_of(values))
    inner = frozenset(each.partition("-")[0] for each in wanted if each.startswith(("peap-", "ttls-")))
    is_about_eap = EAP in wanted or any(each.startswith(_OF_EAP) or each in ("peap", "ttls") for each in wanted)

    def holds(seen: Seen) -> bool | None:
        method = seen.facts.method
        if not method:
            return None
        outer, _, rest = method.partition("-")
        if method in wanted or outer in wanted or (EAP in wanted and outer in ("peap", "ttls")):
            return True
        if method == EAP:
            return None if is_about_eap else False
        return None if rest in ("", "resumed") and outer in inner else False

    return holds


def method_shown(facts: Facts) -> tuple[str, ...]:
    """Return the method of a login as a text."""
    return (facts.method,) if facts.method else ()


def tags(values: Values, prepared: Preparation) -> Test:
    """Return the test of `tags`. A device without the key surely does not have the tag."""
    bit = prepared.bit
    for tag in texts_of(values):
        add_name(prepared.index.tags, folded_tag(tag), bit)
    return lambda seen: None if seen.tags is None else bool(seen.tags & bit)


def certificates(values: Values, prepared: Preparation) -> Test:
    """Return the test of `certificates`. A key that the certificate does not have, or of which it has more facts than
    are compared, is a missing fact. So is the whole certificate, because a user may log in in another way."""
    bit = prepared.bit
    keys = frozenset(each.partition("=")[0] for each in texts_of(values))
    for each in folded(texts_of(values)):
        add_name(prepared.index.certificates, each, bit)

    def holds(seen: Seen) -> bool | None:
        if seen.certificates & bit:
            return True
        return False if keys <= seen.certificate_keys else None

    return holds


def attributes(values: Values, prepared: Preparation) -> Test:
    """Return the test of `attributes`. An attribute that the request does not have is a missing fact."""
    bit, names = prepared.bit, set[str]()
    for each in texts_of(values):
        name, sign, wanted = split_attribute(each)
        patterns = prepared.index.attributes.setdefault(name, Patterns())
        names.add(name)
        if sign == "=":
            patterns.add_exact(fold(wanted), bit)
        else:
            patterns.add(folded_pattern(wanted), bit)

    def holds(seen: Seen) -> bool | None:
        if seen.attributes & bit:
            return True
        return False if names <= (seen.facts.attributes or {}).keys() else None

    return holds


def split_attribute(value: str) -> tuple[str, str, str]:
    """Return the name, the sign and the value of `NAME=VALUE`, or of `NAME~PATTERN`. The sign is empty if the text has
    another form."""
    found = _ATTRIBUTE.fullmatch(value)
    return (found[1], found[2], found[3].strip()) if found else (value, "", "")


def attribute_facts(facts: Facts) -> list[str]:
    """Return the compared attributes of a login as texts."""
    return [f"{name}={value}" for name, values in (facts.attributes or {}).items() for value in values]
