"""The attributes of shadow logins: encoded from the texts of a log, or taken from a copy without its credentials."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from sallyport.areas.shadow.shadow_login import MAX_TEXT, REPLY_ATTRIBUTES
from sallyport.base.errors import DictionaryError, PacketError
from sallyport.radius.attributes import (
    CALLING_STATION_ID,
    CHAP_CHALLENGE,
    CHAP_PASSWORD,
    CLASS,
    EAP_MESSAGE,
    MESSAGE_AUTHENTICATOR,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
    PROXY_STATE,
    REPLY_MESSAGE,
    STATE,
    USER_NAME,
    USER_PASSWORD,
    VENDOR_SPECIFIC,
    pull_attributes,
    pull_vendor_attributes,
    push_attribute,
    push_vendor_attribute,
)
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.packet import as_text

MAX_OCTETS: Final = 2048
MAX_KNOWN: Final = 4096
_MICROSOFT: Final = 311
_LEFT_OUT: Final = frozenset(
    {
        *(USER_NAME, USER_PASSWORD, CHAP_PASSWORD, REPLY_MESSAGE, STATE, CLASS, PROXY_STATE, CHAP_CHALLENGE),
        *(EAP_MESSAGE, MESSAGE_AUTHENTICATOR),
        *range(69, 74),  # Tunnel-Password and ARAP (RFC 2868, RFC 2869)
        *(84, *range(103, 123)),  # ARAP-Challenge-Response; Digest (RFC 5090)
    }
)
_SECRET_WORDS: Final = (b"psk", b"pass", b"secret", b"pwd")


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a shadow login keeps of its request. octets: the encoded attributes. station: Calling-Station-Id. nas: the
    address of the NAS in canonical form, or an empty text."""

    octets: bytes
    station: str
    nas: str


class ShadowAttributes:
    """The attributes of requests, by one dictionary."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._known: dict[str, bytes] = {}

    def of_texts(self, texts: Sequence[str]) -> RequestFacts:
        """Encode attributes. texts: such as `NAS-Port-Type=19`. Attributes that the dictionary does not know, that do
        not fit their type, or that are credentials, are left out."""
        return _facts([octets for each in texts if (octets := self._encoded(each))])

    def replies(self, texts: Sequence[str]) -> str:
        """Return the policy attributes of an Access-Accept in a form for comparison: lines NAME=VALUE in order, without
        tags. texts: such as `Tunnel-Private-Group-Id=20`. Attributes that the dictionary does not know are left out."""
        found = list[str]()
        for text in texts:
            name, _, value = text.partition("=")
            try:
                attribute, octets = self._dictionary.attribute(name), self._dictionary.encode(name, value)
            except DictionaryError:
                continue
            found += self._reply(attribute.vendor, attribute.number, octets)
        return "\n".join(sorted(found))

    def replies_of(self, octets: bytes) -> str:
        """Return the policy attributes among encoded attributes; see `replies`."""
        found = list[str]()
        for kind, value in pull_attributes(octets):
            if kind == VENDOR_SPECIFIC:
                vendor, pairs = pull_vendor_attributes(value)
                found += [each for number, inner in pairs for each in self._reply(vendor, number, inner)]
            else:
                found += self._reply(0, kind, value)
        return "\n".join(sorted(found))

    def _reply(self, vendor: int, number: int, octets: bytes) -> list[str]:
        name = self._dictionary.name(vendor, number)
        return [f"{name}={self._dictionary.decode(vendor, number, octets)}"] if name in REPLY_ATTRIBUTES else []

    def of_request(self, body: bytes) -> RequestFacts:
        """Return the attributes of a copy without its credentials. body: the encoded attributes of the request."""
        found = list[bytes]()
        for kind, value in pull_attributes(body):
            if kind == VENDOR_SPECIFIC:
                found += self._of_vendor(value)
            elif kind not in _LEFT_OUT and self._is_open(0, kind):
                found.append(push_attribute(kind, value))
        return _facts(found)

    def _of_vendor(self, value: bytes) -> list[bytes]:
        try:
            vendor, pairs = pull_vendor_attributes(value)
        except PacketError:
            return []
        return [
            push_vendor_attribute(vendor, kind, inner)
            for kind, inner in pairs
            if vendor != _MICROSOFT and self._is_open(vendor, kind) and not _names_secret(inner)
        ]

    def _is_open(self, vendor: int, kind: int) -> bool:
        attribute = self._dictionary.find(vendor, kind)
        return attribute is not None and not attribute.secret

    def _encoded(self, text: str) -> bytes:
        octets = self._known.get(text)
        if octets is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            octets = self._known[text] = self._encode(text)
        return octets

    def _encode(self, text: str) -> bytes:
        name, _, value = text.partition("=")
        try:
            attribute = self._dictionary.attribute(name)
            octets = self._dictionary.encode(name, value)
        except DictionaryError:
            return b""
        if attribute.secret or (attribute.vendor == 0 and attribute.number in _LEFT_OUT):
            return b""
        if attribute.vendor == 0:
            return push_attribute(attribute.number, octets)
        if attribute.vendor == _MICROSOFT or _names_secret(octets):
            return b""
        return push_vendor_attribute(attribute.vendor, attribute.number, octets)


def _names_secret(octets: bytes) -> bool:
    folded = octets.lower()
    return any(word in folded for word in _SECRET_WORDS)


def _facts(found: Sequence[bytes]) -> RequestFacts:
    octets, station, nas = b"", "", ""
    for each in found:
        if len(octets) + len(each) > MAX_OCTETS:
            break
        octets += each
        kind, value = each[0], each[2:]
        if kind == CALLING_STATION_ID:
            station = station or as_text(value)[:MAX_TEXT]
        elif kind in (NAS_IP_ADDRESS, NAS_IPV6_ADDRESS) and len(value) in (4, 16):
            nas = nas or str(ip_address(value))
    return RequestFacts(octets, station, nas)
