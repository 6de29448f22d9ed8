"""Convert the names in a rule's body to numbers and octets, by the RADIUS dictionary.

An error message contains the field and the number of the wrong entry. It never contains a submitted value.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from sallyport.areas.policy.rules.comparisons import MAX_NAMES, METHODS, method_in_rules, split_attribute
from sallyport.areas.policy.rules.facts import Condition, Values
from sallyport.areas.policy.rules.index import network_of
from sallyport.areas.policy.rules.rule import MAX_REPLY_OCTETS, Reply
from sallyport.base.addresses import Network
from sallyport.base.errors import DictionaryError, FieldError, Invalid, invalid_field
from sallyport.base.tags import canonical_tag
from sallyport.radius.attributes import (
    VENDOR_SPECIFIC,
    pull_attributes,
    pull_vendor_attributes,
    push_attribute,
    push_vendor_attribute,
)
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.eap.certificate_names import CERTIFICATE_KEYS
from sallyport.radius.packet import Request
from sallyport.radius.values import Attribute
from sallyport.radius.vendors import MEDIA, UNKNOWN, medium_of

MICROSOFT: Final = 311
MAX_COMPARED: Final = 2048
"""Maximum number of characters in the attributes of a login that rules compare, and that its event records."""
# Attributes that a rule may not set in a reply (RFC 2865 section 5.44, 2866 section 5.13, 2869 section 5.19, 3579
# section 3.3): attributes that the service sets itself, attributes of a single request or challenge, names of the NAS
# and its port, accounting, Digest and ARAP. 26 and 241 to 246 contain other attributes.
_REFUSED: Final[Mapping[int, frozenset[int]]] = {
    0: frozenset(
        {
            *(
                0,
                2,
                3,
                4,
                5,
                24,
                26,
                30,
                31,
                32,
                33,
                *range(40, 54),
                55,
                60,
                61,
                68,
                70,
                73,
                74,
                75,
                76,
                77,
                79,
                80,
                84,
            ),
            *(86, 87, 94, 95, 101, 102, *range(103, 123), *range(241, 256)),
        }
    ),
    # RFC 2548: attributes of MS-CHAP, keys, and passwords.
    MICROSOFT: frozenset({1, 2, 3, 4, 5, 6, 10, 11, 12, 16, 17, 19, 20, 25, 26, 27}),
}
_NAMES_SECRET: Final = re.compile(r"(?i)(?:^|[-_:])(?:psk|key|secret|pass|passwd|password|passphrase)\s*=")
"""A text that contains a secret, such as the `psk=` of a Cisco-AVPair."""
_VLAN: Final = ("Tunnel-Type", "Tunnel-Medium-Type", "Tunnel-Private-Group-Id")
_TAG: Final = re.compile(r":[0-9]{1,2}$")
_NUMERAL: Final = re.compile(r"[0-9]{1,10}")
_LIKE_ADDRESS: Final = re.compile(r"[0-9.]+|.*/[0-9]+|(?=.*:.*:)[0-9A-Fa-f:.%]+")


class Translation:
    """A converter between names in bodies, and the numbers and octets in the store and in replies."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._service_type = dictionary.attribute("Service-Type")
        self._port_type = dictionary.attribute("NAS-Port-Type")
        self._conversions: Mapping[str, Callable[[Sequence[str]], Sequence[str | int]]] = {
            "serviceTypes": self.service_types,
            "media": self.media,
            "methods": methods,
            "tags": tags,
            "certificates": certificates,
            "attributes": self.attributes,
            "addresses": networks,
        }
        self._places = lru_cache(1024)(self._places_of)
        self._decoded = lru_cache(1024)(self._decode)  # devices send the same values again and again
        self.shown = lru_cache(1024)(self._shown)
        """The text of encoded attributes for people: `NAME = VALUE`, one attribute in each line. The attributes that
        rules may not set are left out, such as State, messages of the authentication method and its keys. The value
        of a secret, or of an attribute that the dictionary does not know, is `***`."""

    def condition(self, field: str, entries: Sequence[str]) -> Values:
        """Convert the values of a condition to the form in which rules keep them. Raises Invalid."""
        if field == "clients":
            check_clients(entries)
        convert = self._conversions.get(field)
        return tuple(entries) if convert is None else tuple(convert(entries))

    def attributes(self, entries: Sequence[str]) -> list[str]:
        """Return conditions on attributes, with the names and values that the dictionary shows. Raises Invalid."""
        found = [self._attribute_condition(index, *split_attribute(entry)) for index, entry in enumerate(entries)]
        names = {split_attribute(each)[0] for each in found}
        if len(names) > MAX_NAMES:
            message = f"must name at most {MAX_NAMES} different attributes"
            raise Invalid(f"invalid attributes: {message}", (FieldError("attributes", message),))
        return list(dict.fromkeys(found))

    def _attribute_condition(self, index: int, name: str, sign: str, value: str) -> str:
        if not sign or not value:
            raise _invalid("attributes", index, "must be NAME=VALUE or NAME~PATTERN")
        try:
            attribute = self._dictionary.attribute(name)
        except DictionaryError as error:
            near = str(error).partition("; ")[2]
            raise _invalid("attributes", index, "names no RADIUS attribute" + (f"; {near}" if near else "")) from None
        if attribute.secret or attribute.parent:
            raise _invalid("attributes", index, f"names {attribute.name}, which a rule cannot compare")
        shown = self._dictionary.name(attribute.vendor, attribute.number)
        if sign == "~":
            return f"{shown}~{value}"
        try:
            octets = self._dictionary.encode(shown, value)
        except DictionaryError:
            raise _invalid("attributes", index, f"has no value of the type {attribute.type} of {shown}") from None
        return f"{shown}={self._dictionary.decode(attribute.vendor, attribute.number, octets)}"

    def attributes_of(self, request: Request, names: frozenset[str]) -> dict[str, tuple[str, ...]]:
        """Return the values of these attributes in a request, as texts by name. Absent attributes are left out. If the
        values have over MAX_COMPARED characters, the rest is left out too, as if it were absent."""
        of_rfcs, of_vendors = self._places(names)
        own = [((0, kind), of_rfcs[kind], request.values(kind)) for kind in of_rfcs.keys() & request.first.keys()]
        if of_vendors and VENDOR_SPECIFIC in request.first:
            sent = request.vendor_values()
            own += [(number, of_vendors[number], [*sent[number]]) for number in of_vendors.keys() & sent.keys()]
        found: dict[str, tuple[str, ...]] = {}
        left = MAX_COMPARED
        for number, name, values in own:
            texts = tuple([self._decoded(number, value) for value in values])
            left -= sum(map(len, texts))
            if left < 0:
                break
            found[name] = texts
        return found

    def _decode(self, number: tuple[int, int], value: bytes) -> str:
        return self._dictionary.decode(*number, value)

    def _places_of(self, names: frozenset[str]) -> tuple[dict[int, str], dict[tuple[int, int], str]]:
        """Return the names of attributes of the RFCs by number, and those of vendors by (vendor, number). A custom
        dictionary may lack some of them now."""
        of_rfcs, of_vendors = dict[int, str](), dict[tuple[int, int], str]()
        for name in names:
            with suppress(DictionaryError):
                attribute = self._dictionary.attribute(name)
                if attribute.vendor:
                    of_vendors[attribute.vendor, attribute.number] = name
                else:
                    of_rfcs[attribute.number] = name
        return of_rfcs, of_vendors

    def types_of(self, names: frozenset[str]) -> frozenset[int]:
        """Return the types of the attributes with these names in a request: an attribute of a vendor is
        Vendor-Specific."""
        of_rfcs, of_vendors = self._places(names)
        return frozenset(of_rfcs) | (frozenset({VENDOR_SPECIFIC}) if of_vendors else frozenset())

    def fact(self, condition: Condition, values: Sequence[str]) -> str | tuple[str, ...]:
        """Convert the values of a fact, as an admin has given them for a rule test, to the form in `Facts`. Raises
        Invalid with the name of the fact."""
        try:
            found = tuple(map(str, self.condition(condition.field, values)))
        except Invalid as error:
            raise invalid_field(condition.fact, error.fields[0].message) from None
        if condition.field == "attributes" and any(split_attribute(each)[1] != "=" for each in found):
            raise invalid_field(condition.fact, "must be NAME=VALUE")
        return found if condition.asks_several else found[0]

    def service_types(self, entries: Sequence[str]) -> list[int]:
        """Convert names and numbers of Service-Types to numbers, without duplicates. Raises Invalid."""
        numbers = [_number(self._service_type, entry) for entry in entries]
        if None in numbers:
            raise _invalid(
                "serviceTypes", numbers.index(None), "must be a Service-Type, as a name such as Login or as a number"
            )
        return list(dict.fromkeys(number for number in numbers if number is not None))

    def service_type_name(self, number: int) -> str:
        """Return the name of a Service-Type, or its number as text."""
        return self._service_type.value_name(number) or str(number)

    def media(self, entries: Sequence[str]) -> list[str]:
        """Convert names of media to the names that the inventory uses. A NAS-Port-Type, as a name or number, becomes
        its medium. Raises Invalid."""
        known = {medium.casefold(): medium for medium in MEDIA.values()}
        media = []
        for index, entry in enumerate(entries):
            number = _number(self._port_type, entry)
            medium = known.get(entry.casefold()) or (UNKNOWN if number is None else medium_of(number))
            if medium == UNKNOWN:
                raise _invalid("media", index, "must be a medium such as Ethernet, Wireless or Virtual")
            media.append(medium)
        return list(dict.fromkeys(media))

    def replies(self, vlan: str, entries: Sequence[Reply], most: int = MAX_REPLY_OCTETS) -> bytes:
        """Return the encoded reply attributes of a rule or role, at most `most` octets. The attributes for the VLAN
        come first (RFC 3580 section 3.31). Raises Invalid."""
        octets = self.vlan_attributes(vlan)
        for index, entry in enumerate(entries):
            octets += self._reply(index, entry, with_vlan=bool(vlan))
            if len(octets) > most:
                raise _invalid(
                    "replyAttributes", index, f"must fit into {most} octets, together with the entries before"
                )
        return octets

    def vlan_attributes(self, vlan: str) -> bytes:
        """Return the encoded attributes for a VLAN; none if it is empty. Raises Invalid."""
        return b"".join(self._vlan(vlan)) if vlan else b""

    def _shown(self, attributes: bytes) -> str:
        parts = [
            (vendor, number, octets)
            for kind, value in pull_attributes(attributes)
            for vendor, number, octets in _parts(kind, value)
            if number not in _REFUSED.get(vendor, ())
        ]
        return "\n".join(" = ".join(self._shown_value(*each)) for each in parts)

    def _shown_value(self, vendor: int, number: int, octets: bytes) -> tuple[str, str]:
        name, text = self._dictionary.show(vendor, number, octets)
        is_known = self._dictionary.find(vendor, number) is not None
        return name, text if is_known and not _NAMES_SECRET.search(octets.decode("latin-1")) else "***"

    def _vlan(self, vlan: str) -> list[bytes]:
        if re.fullmatch("[0-9]+", vlan) and not 1 <= int(vlan) <= 4094:
            raise invalid_field("vlan", "must be a number from 1 to 4094, or a name")
        try:
            return [
                push_attribute(self._dictionary.attribute(name).number, self._dictionary.encode(name, value))
                for name, value in zip(_VLAN, ("VLAN", "IEEE-802", vlan), strict=True)
            ]
        except DictionaryError:  # a custom dictionary may have renamed the attribute
            raise Invalid.about("the RADIUS dictionary has no usable attributes for a VLAN", "vlan") from None

    def _reply(self, index: int, entry: Reply, *, with_vlan: bool) -> bytes:
        attribute = self._attribute(index, entry)
        if attribute.number in _REFUSED.get(attribute.vendor, ()):
            raise _wrong_reply(index, f"a rule or role cannot set {attribute.name}")
        if attribute.secret:
            raise _wrong_reply(index, f"{attribute.name} is a secret, and rules and roles do not store secrets")
        if with_vlan and attribute.name in _VLAN:
            raise _wrong_reply(index, f"{attribute.name} is already set by the field vlan")
        try:
            value = self._dictionary.encode(entry.name, entry.value)
        except DictionaryError:
            raise _wrong_reply(index, _wanted(attribute, entry.name), ".value") from None
        if attribute.vendor:
            return push_vendor_attribute(attribute.vendor, attribute.number, value)
        return push_attribute(attribute.number, value)

    def _attribute(self, index: int, entry: Reply) -> Attribute:
        """Return the dictionary's definition of the attribute in an entry. The entry gives a name or Attr-N. Raises
        Invalid."""
        try:
            found = self._dictionary.attribute(_TAG.sub("", entry.name))
        except DictionaryError as error:
            near = str(error).partition("; ")[2]
            unknown = "no RADIUS attribute of this name" + (f"; {near}" if near else "")
            raise _wrong_reply(index, unknown, ".name") from None
        if found.parent:
            raise _wrong_reply(
                index,
                f"{found.name} is a part of {found.parent}; set {found.parent} as a whole, in octets written as 0x...",
                ".name",
            )
        return self._dictionary.find(found.vendor, found.number) or found


def check_clients(entries: Sequence[str]) -> None:
    """Raise Invalid if an entry looks like an address but is malformed. Without this check, the entry would be read as
    the name of a client."""
    for index, entry in enumerate(entries):
        if network_of(entry) is None and _LIKE_ADDRESS.fullmatch(entry):
            raise _invalid("clients", index, "must be a name, an address, or a network such as 192.0.2.0/24")


def methods(entries: Sequence[str]) -> list[str]:
    """Return authentication methods in the spelling of rules, without duplicates. The spelling of events is accepted
    too. Raises Invalid."""
    found = []
    for index, entry in enumerate(entries):
        method = method_in_rules(entry.casefold())
        if method not in METHODS:
            raise _invalid("methods", index, "must be a method such as pap, eap-tls or peap-mschapv2")
        found.append(method)
    return list(dict.fromkeys(found))


def tags(entries: Sequence[str]) -> list[str]:
    """Return tags in canonical form, without duplicates. Raises Invalid."""
    return _keyed("tags", entries, canonical_tag)


def certificates(entries: Sequence[str]) -> list[str]:
    """Return facts of certificates with their keys in lower case, without duplicates. Raises Invalid."""
    return _keyed("certificates", entries, certificate_fact)


def _keyed(field: str, entries: Sequence[str], canonical: Callable[[str], str]) -> list[str]:
    """Return texts KEY=VALUE in canonical form. canonical: raises Invalid for a wrong text."""
    found = []
    for index, entry in enumerate(entries):
        try:
            found.append(canonical(entry))
        except Invalid as error:
            raise _invalid(field, index, error.fields[0].message) from None
    return list(dict.fromkeys(found))


def certificate_fact(text: str) -> str:
    """Return a fact of a certificate with its key in lower case. Raises Invalid."""
    key, sign, value = text.partition("=")
    key, value = key.strip().lower(), value.strip()
    if not sign or not value or key not in CERTIFICATE_KEYS:
        raise invalid_field("certificates", f"must be KEY=VALUE with one of the keys {', '.join(CERTIFICATE_KEYS)}")
    return f"{key}={value}"


def networks(entries: Sequence[str]) -> list[str]:
    """Return addresses and networks in canonical form, without duplicates. Raises Invalid."""
    found = [network_of(entry) for entry in entries]
    if None in found:
        raise _invalid("addresses", found.index(None), "must be an address, or a network such as 192.0.2.0/24")
    return list(dict.fromkeys(_network_text(network) for network in found if network is not None))


def _network_text(network: Network) -> str:
    return str(network.network_address if network.prefixlen == network.max_prefixlen else network)


def _wanted(attribute: Attribute, name: str) -> str:
    """Return the part of an error message that describes the valid values of an attribute."""
    if _TAG.search(name):
        if not attribute.has_tag:
            return f"{attribute.name} takes no tag"
        if int(name.rpartition(":")[2]) > 0x1F:
            return f"the tag of {attribute.name} is 0 to 31"
    names = " or one of its names" if attribute.values else ""
    return f"the value of {attribute.name} is of type {attribute.type}{names}, 1 to {attribute.room} octets"


def _number(attribute: Attribute, entry: str) -> int | None:
    """Return the number of an attribute's value. The entry is the number in digits, or a name in the dictionary. Return
    None if the name is unknown.

    The suffix `-User` of a name is optional, because `Login` in the RFC is `Login-User` in FreeRADIUS.
    """
    if _NUMERAL.fullmatch(entry):
        return int(entry) if int(entry) < 1 << 32 else None
    name = entry.replace(" ", "-")
    short = name[: -len("-user")] if name.casefold().endswith("-user") else f"{name}-User"
    found = attribute.value_number(name)
    return attribute.value_number(short) if found is None else found


def _invalid(field: str, index: int, message: str) -> Invalid:
    """Return an error for an entry, with the message `invalid FIELD: entry N MESSAGE`. message: a predicate of the
    entry. index: the index of the entry, from 0."""
    return Invalid(f"invalid {field}: entry {index + 1} {message}", (FieldError(f"{field}.{index}", message),))


def _wrong_reply(index: int, sentence: str, part: str = "") -> Invalid:
    """Return an error for a reply attribute. index: the index of the entry, from 0. part: the name of the wrong field
    with a leading dot, or empty."""
    wrong = FieldError(f"replyAttributes.{index}{part}", sentence)
    return Invalid(f"invalid replyAttributes: entry {index + 1}: {sentence}", (wrong,))


def _parts(kind: int, value: bytes) -> list[tuple[int, int, bytes]]:
    """Return the (vendor, type, value) of an attribute, or of each attribute in a Vendor-Specific attribute."""
    if kind != VENDOR_SPECIFIC:
        return [(0, kind, value)]
    vendor, parts = pull_vendor_attributes(value)
    return [(vendor, number, octets) for number, octets in parts]
