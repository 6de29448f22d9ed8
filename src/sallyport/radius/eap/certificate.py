"""The user's name in a client certificate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

UPN: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")
"""The type of the otherName that contains the user principal name in certificates of Active Directory."""
_UTF8_STRING: Final = 0x0C


class NamedBy(StrEnum):
    """A field of a certificate that can contain the user's name."""

    UPN = "upn"
    EMAIL = "email"
    DNS = "dns"
    COMMON_NAME = "cn"


@dataclass(frozen=True, slots=True)
class Named:
    """A user's name from a certificate, and the field that contains it."""

    name: str
    by: NamedBy


@dataclass(frozen=True, slots=True)
class UserNames:
    """The fields in which a user's name is searched, in order of precedence."""

    order: tuple[NamedBy, ...] = (NamedBy.UPN, NamedBy.EMAIL, NamedBy.DNS, NamedBy.COMMON_NAME)

    def of(self, certificate: x509.Certificate) -> Named:
        """Return the user's name in a certificate, and its field. The name is empty if no field contains a name."""
        try:
            alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (x509.ExtensionNotFound, ValueError):
            alternatives = x509.SubjectAlternativeName([])
        found = (Named(_FINDERS[each](certificate, alternatives), each) for each in self.order)
        return next((each for each in found if each.name), Named("", NamedBy.COMMON_NAME))


def _upn(_certificate: x509.Certificate, alternatives: x509.SubjectAlternativeName) -> str:
    for other in alternatives.get_values_for_type(x509.OtherName):
        if other.type_id == UPN:
            return _utf8_string(other.value)
    return ""


def _utf8_string(value: bytes) -> str:
    """Return the text of a DER-encoded UTF8String of at most 255 octets. Return "" for other octets."""
    head = 3 if value[1:2] == b"\x81" else 2
    if len(value) <= head or value[0] != _UTF8_STRING or value[head - 1] != len(value) - head:
        return ""
    return value[head:].decode(errors="replace")


def _email(_certificate: x509.Certificate, alternatives: x509.SubjectAlternativeName) -> str:
    return next(iter(alternatives.get_values_for_type(x509.RFC822Name)), "")


def _dns(_certificate: x509.Certificate, alternatives: x509.SubjectAlternativeName) -> str:
    return next(iter(alternatives.get_values_for_type(x509.DNSName)), "")


def _common_name(certificate: x509.Certificate, _alternatives: x509.SubjectAlternativeName) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""


_FINDERS: Final[Mapping[NamedBy, Callable[[x509.Certificate, x509.SubjectAlternativeName], str]]] = {
    NamedBy.UPN: _upn,
    NamedBy.EMAIL: _email,
    NamedBy.DNS: _dns,
    NamedBy.COMMON_NAME: _common_name,
}
