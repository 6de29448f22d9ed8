"""The tests of the conditions about the request itself: SSID, port, method, realm and address of the endpoint."""

from collections.abc import Mapping
from typing import Final

from sallyport.areas.policy.rules.facts import Facts, Preparation, Seen, Test, Values
from sallyport.areas.policy.rules.index import add_network, network_of
from sallyport.areas.policy.rules.patterns import folded_pattern
from sallyport.base.text import folded
from sallyport.radius.password import Method
from sallyport.radius.vendors import UNKNOWN

WITHOUT_MEDIUM: Final = frozenset({"", UNKNOWN.casefold()})
_WITH_SSID: Final = frozenset({*WITHOUT_MEDIUM, "wireless"})
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
