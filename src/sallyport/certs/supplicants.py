"""The faults of a server certificate for EAP, by the kinds of supplicants that refuse it.

The rules follow these documents:

    Windows  Microsoft Learn, "Certificate requirements when you use EAP-TLS or PEAP with EAP-TLS" (KB 814394) and
             "Configure certificate templates for PEAP and EAP": a subject, serverAuth, the DNS name in the SAN if used
    Apple    Apple Support 103769: RSA of 2048 bits or more, SHA-2, DNS names in the SAN only; for certificates issued
             after 2019-07-01 serverAuth and at most 825 days. 102028: at most 398 days if the authority comes with the
             system. That limit does not apply to authorities that users and admins install
    Android  developer.android.com "Wi-Fi infrastructure for enterprises": since 11, an authority and a domain suffix
             are required. AOSP InsecureEapNetworkHandler.java: trust on first use
    Linux    wpa_supplicant.conf: domain_suffix_match compares the dNSNames, and the common name only if there are none
    all      GEANT, "EAP Server Certificate considerations": same name in CN and SAN, no wildcards; RFC 5280; RFC 5216
             section 5.3. RFC 4334: id-kp-eapOverLAN is for other uses than a server's, and no substitute for serverAuth

The names of devices that do not follow their documents are not known here. The check does no I/O: no supplicant can
fetch anything before it is connected, so neither an intermediate certificate nor a revocation list is fetched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from math import ceil
from typing import Final, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sallyport.certs.authority import UNREADABLE, common_name

MAX_VALIDITY: Final = timedelta(days=825)
MAX_PUBLIC_VALIDITY: Final = timedelta(days=398)
SOON: Final = timedelta(days=30)
SIZES: Final = (1020, 1300)
"""Octets of an EAP packet: without Framed-MTU, and the most that the service sends."""
ExtensionT = TypeVar("ExtensionT", bound=x509.ExtensionType)
_SINCE: Final = datetime(2019, 7, 1, tzinfo=UTC)
_EAP_OVER_LAN: Final = x509.ObjectIdentifier("1.3.6.1.5.5.7.3.14")
_ANY_USAGE: Final = x509.ObjectIdentifier("2.5.29.37.0")
_CURVES: Final = {"secp256r1", "secp384r1"}
_WEAK: Final = {"md5", "sha1"}
_HANDSHAKE_OCTETS: Final = 140
"""Octets of the server's first flight beside its certificates and its signature, measured with PEAP in TLS 1.2. EAP-TLS
takes 80 octets more, and TLS 1.3 with a post-quantum key exchange 1,240."""
_HEAD: Final = 10  # of an EAP packet with TLS: code, identifier, length, type, flags, length of the message


class Supplicant(StrEnum):
    """A kind of supplicant."""

    ALL = "all"
    WINDOWS = "Windows 10, 11"
    APPLE = "iOS, macOS"
    ANDROID = "Android 11 and newer"
    FIRST_USE = "Android with trust on first use"
    LINUX = "wpa_supplicant, NetworkManager"


class Verdict(StrEnum):
    """What a supplicant does: it refuses the server, it may refuse it, or it works and the finding is a note."""

    REFUSES = "refuses"
    MAY_REFUSE = "may refuse"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Remark:
    """What a kind of supplicant says about a certificate."""

    supplicant: Supplicant
    verdict: Verdict
    text: str

    def __str__(self) -> str:
        subject = "supplicants" if self.supplicant is Supplicant.ALL else self.supplicant.value
        verb = {Verdict.REFUSES: "refuse it", Verdict.MAY_REFUSE: "may refuse it", Verdict.NOTE: "note"}[self.verdict]
        return f"{subject} {verb}: {self.text}"


def remarks(chain: Sequence[x509.Certificate], now: datetime, server_name: str = "") -> list[Remark]:
    """Return what supplicants say about a chain, the worst first.

    chain: what the server sends, its own certificate first. server_name: the name in the profiles of the supplicants;
    empty for none. The time is that of 1 ms for each certificate: call the function in a worker thread.
    """
    found, own, has_unreadable_part = list[Remark](), chain[0], False
    for part in (
        lambda: _chain(chain),
        lambda: _names(own, server_name),
        lambda: _usage(own),
        lambda: _dates(chain, now),
        lambda: _keys(chain),
        lambda: _pointers(own),
        lambda: [Remark(Supplicant.ALL, Verdict.NOTE, _size(chain))],
    ):
        try:
            found += part()
        except UNREADABLE:
            has_unreadable_part = True
    if has_unreadable_part:
        text = "a name, an extension or an algorithm in the chain cannot be read"
        found.append(Remark(Supplicant.ALL, Verdict.REFUSES, text))
    order = list(Verdict)
    return sorted(found, key=lambda each: order.index(each.verdict))


def warnings(chain: Sequence[x509.Certificate], now: datetime) -> list[str]:
    """Return the remarks for which a supplicant refuses the server or may refuse it, as sentences."""
    return [str(each) for each in remarks(chain, now) if each.verdict is not Verdict.NOTE]


def handshake_packets(chain: Sequence[x509.Certificate], size: int) -> int:
    """Return the number of EAP packets that the server's first flight takes in a handshake. It is an estimate, because
    the supplicant decides on the cipher suite and on extensions. size: the length of an EAP packet in octets."""
    return ceil(_flight(chain) / (size - _HEAD))


def name_of(name: x509.Name) -> str:
    """Return the common name in a name, or the whole name if it has none."""
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else name.rfc4514_string()


def key_name(certificate: x509.Certificate) -> str:
    """Return the kind and the size of a certificate's key, such as `RSA 2048` or `EC secp256r1`."""
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return f"RSA {key.key_size}"
    return f"EC {key.curve.name}" if isinstance(key, ec.EllipticCurvePublicKey) else type(key).__name__.strip("_")


def _chain(chain: Sequence[x509.Certificate]) -> Iterator[Remark]:
    for lower, upper in pairwise(chain):
        if not is_signed(lower, upper):
            yield Remark(
                Supplicant.ALL,
                Verdict.REFUSES,
                f"{name_of(upper.subject)} follows {name_of(lower.subject)} in the chain, but has not signed it; put "
                "each signer after the certificate that it has signed",
            )
            return
    last = chain[-1]
    has_root = is_signed(last, last)
    if has_root and len(chain) > 1:
        yield Remark(
            Supplicant.ALL,
            Verdict.NOTE,
            f"the chain contains the root {name_of(last.subject)}: {_length(last)} octets in each login, which only "
            "trust on first use needs",
        )
    elif has_root:
        yield Remark(
            Supplicant.ALL,
            Verdict.MAY_REFUSE,
            "the certificate has signed itself: each device must install it, again after each renewal",
        )
    else:
        yield Remark(
            Supplicant.ALL,
            Verdict.NOTE,
            f"devices must trust {name_of(last.issuer)}; if this is an intermediate authority, append its certificate, "
            "because no supplicant fetches it",
        )
        yield Remark(
            Supplicant.FIRST_USE,
            Verdict.NOTE,
            "the root is not in the chain: the first builds of Android 13 refuse the network, and newer ones ask the "
            "user again after each renewal; other devices do not need the root",
        )


def _names(own: x509.Certificate, server_name: str) -> Iterator[Remark]:
    dns, common = _dns_names(own), common_name(own)
    if not own.subject.rdns:
        yield Remark(Supplicant.WINDOWS, Verdict.REFUSES, "the certificate has no subject")
    if not dns:
        yield Remark(
            Supplicant.APPLE, Verdict.REFUSES, "the certificate has no host name as subject alternative name (dNSName)"
        )
        yield Remark(
            Supplicant.ANDROID,
            Verdict.MAY_REFUSE,
            "the certificate has no host name as subject alternative name (dNSName); only the common name is compared",
        )
    elif common not in dns:
        yield Remark(
            Supplicant.WINDOWS,
            Verdict.MAY_REFUSE,
            f"the common name {common!r} is not among the alternative names; PEAP compares the server name with the "
            "common name, and other supplicants with the alternative names",
        )
    wildcards = [each for each in {*dns, common} if "*" in each]
    if wildcards:
        yield Remark(Supplicant.WINDOWS, Verdict.MAY_REFUSE, f"{min(wildcards)} is a wildcard; name the server in full")
        yield Remark(
            Supplicant.LINUX,
            Verdict.NOTE,
            f"{min(wildcards)} is a wildcard: domain_suffix_match accepts its suffix, domain_match accepts no name",
        )
    if server_name:
        yield from _matches(dns, common, server_name.casefold().rstrip("."))


def _matches(dns: Sequence[str], common: str, wanted: str) -> Iterator[Remark]:
    names = [each.casefold() for each in dns]
    if wanted not in {*names, common.casefold()}:
        yield Remark(
            Supplicant.WINDOWS,
            Verdict.REFUSES,
            f"the certificate is for {', '.join(dns) or common or 'no name'}, not for {wanted}",
        )
    fits = any(_covers(name, wanted) for name in names)
    if not fits:
        yield Remark(Supplicant.APPLE, Verdict.REFUSES, f"no alternative name (dNSName) is {wanted}")
    if not any(name == wanted or name.endswith(f".{wanted}") for name in names or [common.casefold()]):
        text = f"no alternative name (dNSName) ends with {wanted} (domain_suffix_match)"
        yield Remark(Supplicant.ANDROID, Verdict.REFUSES, text)
        yield Remark(Supplicant.LINUX, Verdict.REFUSES, text)


def _covers(name: str, wanted: str) -> bool:
    """Return whether a name, which may be a wildcard for one label, is the wanted name."""
    return name == wanted or (name.startswith("*.") and wanted.partition(".")[2] == name[2:])


def _usage(own: x509.Certificate) -> Iterator[Remark]:
    usage = _extension(own, x509.ExtendedKeyUsage)
    purposes = set[x509.ObjectIdentifier]() if usage is None else set(usage.value)
    if ExtendedKeyUsageOID.SERVER_AUTH not in purposes:
        has = "has only id-kp-eapOverLAN as" if _EAP_OVER_LAN in purposes else "lacks serverAuth in"
        text = f"the certificate {has} its extended key usage; have it issued with serverAuth (1.3.6.1.5.5.7.3.1)"
        yield Remark(Supplicant.WINDOWS, Verdict.REFUSES, text)
        if own.not_valid_before_utc >= _SINCE:
            yield Remark(Supplicant.APPLE, Verdict.REFUSES, text)
        if usage is not None and _ANY_USAGE not in purposes:
            yield Remark(Supplicant.ANDROID, Verdict.REFUSES, text)
            yield Remark(Supplicant.LINUX, Verdict.REFUSES, text)
    key_usage = _extension(own, x509.KeyUsage)
    if key_usage is not None and not key_usage.value.digital_signature:
        yield Remark(
            Supplicant.ALL, Verdict.REFUSES, "the certificate lacks the key usage digitalSignature, which TLS needs"
        )


def _dates(chain: Sequence[x509.Certificate], now: datetime) -> Iterator[Remark]:
    own = chain[0]
    life = own.not_valid_after_utc - own.not_valid_before_utc
    for each in chain:
        name, ends = name_of(each.subject), each.not_valid_after_utc
        if ends <= now:
            yield Remark(Supplicant.ALL, Verdict.REFUSES, f"{name} expired at {ends:%Y-%m-%d}")
        elif each.not_valid_before_utc > now:
            begins = each.not_valid_before_utc
            yield Remark(Supplicant.ALL, Verdict.REFUSES, f"{name} is not valid before {begins:%Y-%m-%d %H:%M} UTC")
        elif ends - now < SOON:
            yield Remark(
                Supplicant.ALL, Verdict.MAY_REFUSE, f"{name} expires at {ends:%Y-%m-%d}; devices refuse it from then on"
            )
    if life > MAX_VALIDITY and own.not_valid_before_utc >= _SINCE:
        yield Remark(
            Supplicant.APPLE,
            Verdict.REFUSES,
            f"the certificate is valid for {life.days} days; Apple's systems accept {MAX_VALIDITY.days}",
        )
    elif life > MAX_PUBLIC_VALIDITY:
        yield Remark(
            Supplicant.APPLE,
            Verdict.NOTE,
            f"the certificate is valid for {life.days} days: more than {MAX_PUBLIC_VALIDITY.days} are refused if its "
            "authority comes with the system; the limit is not for an authority that an admin or a user installs",
        )


def _keys(chain: Sequence[x509.Certificate]) -> Iterator[Remark]:
    for each in chain:
        key, digest, name = each.public_key(), each.signature_hash_algorithm, name_of(each.subject)
        if isinstance(key, rsa.RSAPublicKey):
            if key.key_size < 2048:
                yield Remark(
                    Supplicant.ALL, Verdict.REFUSES, f"the RSA key of {name} has {key.key_size} bits; 2048 are needed"
                )
        elif not isinstance(key, ec.EllipticCurvePublicKey):
            yield Remark(
                Supplicant.ALL, Verdict.REFUSES, f"the key of {name} is {key_name(each)}; supplicants know RSA and EC"
            )
        elif key.curve.name not in _CURVES:
            yield Remark(
                Supplicant.ALL,
                Verdict.MAY_REFUSE,
                f"the key of {name} is on the curve {key.curve.name}; all supplicants know P-256 and P-384",
            )
        if digest is not None and digest.name in _WEAK and not is_signed(each, each):
            yield Remark(Supplicant.ALL, Verdict.REFUSES, f"{name} is signed with {digest.name}; SHA-256 is needed")


def _pointers(own: x509.Certificate) -> Iterator[Remark]:
    lists = _extension(own, x509.CRLDistributionPoints) is not None
    status = _extension(own, x509.AuthorityInformationAccess) is not None
    if lists or status:
        kinds = " and ".join(each for each, has in (("CRL", lists), ("OCSP or issuer", status)) if has)
        yield Remark(
            Supplicant.ALL,
            Verdict.NOTE,
            f"the certificate has addresses ({kinds}) that no supplicant can reach before it is connected; a profile "
            "that demands a revocation check fails",
        )


def _size(chain: Sequence[x509.Certificate]) -> str:
    octets = sum(map(_length, chain))
    packets = [f"{handshake_packets(chain, size)} of {size:,} octets" for size in SIZES]
    named = "certificate" if len(chain) == 1 else "certificates"
    return (
        f"the server sends {len(chain)} {named} with {octets:,} octets ({key_name(chain[0])}); its part of the "
        f"handshake takes about {_flight(chain):,} octets, in EAP packets: {' or '.join(packets)}"
    )


def _flight(chain: Sequence[x509.Certificate]) -> int:
    key = chain[0].public_key()
    signature = key.key_size // 8 if isinstance(key, rsa.RSAPublicKey) else 72
    return _HANDSHAKE_OCTETS + signature + sum(_length(each) + 3 for each in chain)


def _length(certificate: x509.Certificate) -> int:
    return len(certificate.public_bytes(Encoding.DER))


def is_signed(lower: x509.Certificate, upper: x509.Certificate) -> bool:
    """Return whether the key of one certificate has signed another one."""
    try:
        lower.verify_directly_issued_by(upper)
    except (*UNREADABLE, InvalidSignature):
        return False
    return True


def _dns_names(own: x509.Certificate) -> list[str]:
    names = _extension(own, x509.SubjectAlternativeName)
    return [] if names is None else names.value.get_values_for_type(x509.DNSName)


def _extension(certificate: x509.Certificate, kind: type[ExtensionT]) -> x509.Extension[ExtensionT] | None:
    try:
        return certificate.extensions.get_extension_for_class(kind)
    except x509.ExtensionNotFound:
        return None
