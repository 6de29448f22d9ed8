"""The user's name in a client certificate, and the facts of a client certificate that rules compare."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

UPN: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")
"""The type of the otherName that contains the user principal name in certificates of Active Directory."""
_UTF8_STRING: Final = 0x0C
_BMP_STRING: Final = 0x1E
CERTIFICATE_KEYS: Final = ("issuer", "template", "eku", "san", "sid")
MAX_FACTS: Final = 64
MAX_FACT: Final = 255
"""Maximum number of facts of a certificate, and of characters in a fact. Others are left out."""
_TEMPLATE_NAME: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2")
"""The name of a template of version 1, as a BMPString or UTF8String."""
_SID: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.25.2")
"""The security identifier of the account: an otherName with an OCTET STRING (KB5014754)."""
_SID_URI: Final = "tag:microsoft.com,2022-09-14:sid:"
"""The beginning of the URI with which Intune writes the security identifier into the subject alternative name."""
_SID_TEXT: Final = re.compile(rb"S-1-[0-9]+(?:-[0-9]+)+")


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


def certificate_facts(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the facts of a client certificate that rules compare, as texts `key=value`. See CERTIFICATE_KEYS.

    A part of the certificate that cannot be read has no facts, so that a rule treats it as missing. This function
    raises no errors.
    """
    found: dict[str, None] = {}
    for key, value in _facts(certificate):
        if value and len(value) <= MAX_FACT and len(found) < MAX_FACTS:
            found[f"{key}={value}"] = None
    return tuple(found)


def _facts(certificate: x509.Certificate) -> Iterator[tuple[str, str]]:
    for read in (_issuer, _of_extensions):
        with suppress(*UNREADABLE):
            yield from read(certificate)


def _issuer(certificate: x509.Certificate) -> Iterator[tuple[str, str]]:
    issuer = certificate.issuer
    yield "issuer", issuer.rfc4514_string()
    for name in issuer.get_attributes_for_oid(NameOID.COMMON_NAME):
        yield "issuer", str(name.value)


def _of_extensions(certificate: x509.Certificate) -> Iterator[tuple[str, str]]:
    for extension in certificate.extensions:
        value = extension.value
        if isinstance(value, x509.ExtendedKeyUsage):
            for usage in value:
                yield "eku", usage.dotted_string
                yield "eku", usage._name if usage._name != "Unknown OID" else ""
        elif isinstance(value, x509.SubjectAlternativeName):
            yield from _alternatives(value)
        elif isinstance(value, x509.MSCertificateTemplate):  # 1.3.6.1.4.1.311.21.7
            yield "template", value.template_id.dotted_string
        elif isinstance(value, x509.UnrecognizedExtension):
            yield from _of_microsoft(value)


def _alternatives(names: x509.SubjectAlternativeName) -> Iterator[tuple[str, str]]:
    for name in names:
        if isinstance(name, x509.OtherName):
            yield "san", _utf8_string(name.value) if name.type_id == UPN else ""
        elif isinstance(name, x509.DirectoryName):
            yield "san", name.value.rfc4514_string()
        else:
            yield "san", str(name.value)
            if isinstance(name, x509.UniformResourceIdentifier) and name.value.startswith(_SID_URI):
                yield "sid", name.value.removeprefix(_SID_URI)


def _of_microsoft(extension: x509.UnrecognizedExtension) -> Iterator[tuple[str, str]]:
    octets = extension.value
    if extension.oid == _TEMPLATE_NAME:
        yield "template", _bmp_string(octets) or _utf8_string(octets)
    elif extension.oid == _SID:
        texts = _SID_TEXT.findall(octets)
        yield "sid", texts[0].decode() if len(texts) == 1 else ""


def _bmp_string(value: bytes) -> str:
    """Return the text of a DER-encoded BMPString of at most 127 octets. Return "" for other octets."""
    is_whole = len(value) > 2 and value[0] == _BMP_STRING and value[1] == len(value) - 2
    return value[2:].decode("utf-16-be", errors="replace") if is_whole else ""


UNREADABLE: Final = (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
"""The errors of a certificate that an authority has signed and OpenSSL accepts, although it violates X.509: a subject
that is not UTF-8, or an extension that occurs twice."""
