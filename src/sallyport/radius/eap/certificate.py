"""The user's name in a client certificate, and the facts of a client certificate that rules compare."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from sallyport.radius.eap.certificate_names import MAX_FACT, MAX_FACTS, MORE, NamedBy

UPN: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")
"""The type of the otherName that contains the user principal name in certificates of Active Directory."""
_UTF8_STRING: Final = 0x0C
_BMP_STRING: Final = 0x1E
MAX_OCTETS: Final = 16_384
MAX_ALTERNATIVES: Final = 100
MAX_NAME: Final = 253
MAX_SUBJECT: Final = 2048
MAX_SERIAL: Final = 20
"""Maximum size of a certificate of a client's chain, of each of its numbers of names and of addresses of revocation
lists, of the user's name in octets, of the subject and of the serial number in octets. The event
loop reads certificates, and an authority of one tenant could hold up the logins of all others by large ones."""
_TEMPLATE_NAME: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2")
"""The name of a template of version 1, as a BMPString or UTF8String."""
_SID: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.25.2")
"""The security identifier of the account: an otherName with an OCTET STRING (KB5014754)."""
_SID_URI: Final = "tag:microsoft.com,2022-09-14:sid:"
"""The beginning of the URI with which Intune writes the security identifier into the subject alternative name."""
_UUID_URI: Final = "urn:uuid:"
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SID_TEXT: Final = re.compile(rb"S-1-[0-9]+(?:-[0-9]+)+")


@dataclass(frozen=True, slots=True)
class Named:
    """A user's name from a certificate, and the field that contains it."""

    name: str
    by: NamedBy


@dataclass(frozen=True, slots=True)
class UserNames:
    """The fields in which a user's name is searched, in order of precedence."""

    order: tuple[NamedBy, ...] = (NamedBy.UPN, NamedBy.MAIL, NamedBy.DNS, NamedBy.COMMON_NAME)

    def of(self, certificate: x509.Certificate) -> Named:
        """Return the user's name in a certificate, and its field. The name is empty if no field contains a name. Raises
        UNREADABLE, also if the name is longer than MAX_NAME."""
        try:
            alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (x509.ExtensionNotFound, ValueError):
            alternatives = x509.SubjectAlternativeName([])
        found = (Named(_FINDERS[each](certificate, alternatives), each) for each in self.order)
        named = next((each for each in found if each.name), Named("", NamedBy.COMMON_NAME))
        if len(named.name) > MAX_NAME or len(named.name.encode(errors="replace")) > MAX_NAME:
            raise ValueError(f"the user's name is longer than {MAX_NAME} octets")
        return named


def check_size(certificate: x509.Certificate) -> None:
    """Check the limits of a certificate of a client's chain. Raises ValueError if it exceeds one, and UNREADABLE."""
    check_serial(certificate)
    if len(certificate.public_bytes(Encoding.DER)) > MAX_OCTETS:
        raise ValueError(f"it is larger than {MAX_OCTETS:,} octets")
    if len(certificate.subject.public_bytes()) > MAX_SUBJECT:
        raise ValueError(f"its subject is longer than {MAX_SUBJECT:,} octets")
    for extension in certificate.extensions:
        value = extension.value
        if isinstance(value, x509.SubjectAlternativeName) and len(value) > MAX_ALTERNATIVES:
            raise ValueError(f"it has more than {MAX_ALTERNATIVES} alternative names")
        if isinstance(value, x509.CRLDistributionPoints | x509.FreshestCRL) and len(value) > MAX_ALTERNATIVES:
            raise ValueError(f"it has more than {MAX_ALTERNATIVES} addresses of revocation lists")
        if isinstance(value, x509.NameConstraints) and _constraints(value) > MAX_ALTERNATIVES:
            raise ValueError(f"it has more than {MAX_ALTERNATIVES} name constraints")


def _constraints(value: x509.NameConstraints) -> int:
    return len(value.permitted_subtrees or ()) + len(value.excluded_subtrees or ())


def check_serial(certificate: x509.Certificate) -> None:
    """Check the serial number of a certificate. Raises ValueError unless it is positive and has at most MAX_SERIAL
    octets (RFC 5280 section 4.1.2.2). OpenSSL accepts any number."""
    serial = certificate.serial_number
    if serial <= 0 or serial.bit_length() > 8 * MAX_SERIAL:
        raise ValueError(f"its serial number is not a positive number of at most {MAX_SERIAL} octets")


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


def _sid(certificate: x509.Certificate, alternatives: x509.SubjectAlternativeName) -> str:
    """Return the security identifier. Raises ValueError if a certificate has several: it would have two holders."""
    found = {value.upper() for key, value in _sids(certificate, alternatives) if value}
    if len(found) > 1:
        raise ValueError("it has several security identifiers")
    return next(iter(found), "")


def _sids(certificate: x509.Certificate, alternatives: x509.SubjectAlternativeName) -> Iterator[tuple[str, str]]:
    for uri in alternatives.get_values_for_type(x509.UniformResourceIdentifier):
        text = uri.removeprefix(_SID_URI)
        yield "sid", text if text != uri and _SID_TEXT.fullmatch(text.encode()) else ""
    for extension in certificate.extensions:
        if extension.oid == _SID and isinstance(extension.value, x509.UnrecognizedExtension):
            yield from _of_microsoft(extension.value)


def _object_id(certificate: x509.Certificate, alternatives: x509.SubjectAlternativeName) -> str:
    """Return the object id: a URI `urn:uuid:ID`, or a common name that is a UUID."""
    uris = alternatives.get_values_for_type(x509.UniformResourceIdentifier)
    texts = [uri[len(_UUID_URI) :] for uri in uris if uri.lower().startswith(_UUID_URI)]
    found = next((text for text in [*texts, _common_name(certificate, alternatives)] if _UUID.fullmatch(text)), "")
    return found.lower()


def _serial(certificate: x509.Certificate, _alternatives: x509.SubjectAlternativeName) -> str:
    numbers = certificate.subject.get_attributes_for_oid(NameOID.SERIAL_NUMBER)
    return str(numbers[-1].value) if numbers else ""


_FINDERS: Final[Mapping[NamedBy, Callable[[x509.Certificate, x509.SubjectAlternativeName], str]]] = {
    NamedBy.SID: _sid,
    NamedBy.OBJECT_ID: _object_id,
    NamedBy.UPN: _upn,
    NamedBy.MAIL: _email,
    NamedBy.DNS: _dns,
    NamedBy.COMMON_NAME: _common_name,
    NamedBy.SERIAL: _serial,
}


def certificate_facts(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the facts of a client certificate that rules compare, as texts `key=value`. See CERTIFICATE_KEYS.

    A part of the certificate that cannot be read has no facts, so that a rule treats it as missing. So does it treat
    the facts that are left out. This function raises no errors.
    """
    found: dict[str, None] = {}
    more: dict[str, None] = {}
    for key, value in _facts(certificate):
        fact = f"{key}={value}"
        if value and fact not in found:
            if len(value) <= MAX_FACT and len(found) < MAX_FACTS:
                found[fact] = None
            else:
                more[f"{MORE}={key}"] = None
    return (*found, *more)


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
