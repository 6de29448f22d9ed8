"""Checks of the certificates for EAP and RadSec. They look for reasons why a supplicant or a RADIUS server would reject
a certificate."""

import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from sallyport.areas.certificates.certificate import MAX_BITS
from sallyport.base.text import counted
from sallyport.certs.authority import common_name, host_names
from sallyport.certs.credentials import Credentials
from sallyport.certs.expiry import certificates_of
from sallyport.certs.folder import (
    CLIENT,
    CertificateFolder,
    Issued,
    present,
    read_certificates,
    read_list,
    read_lists,
)
from sallyport.cli.checks.model import Examination, Finding, ok, problem, warning
from sallyport.shell.command import entries

SOON: Final = timedelta(days=30)
MAX_PROFILES: Final = 100
MAX_VALIDITY: Final = timedelta(days=825)  # the longest validity that Apple's systems accept from a private authority
WEAK: Final = {"md5", "sha1"}


def check_certificates(examination: Examination) -> Iterator[Finding]:
    """Check that supplicants accept the server's certificate, and that the clients' certificates are valid."""
    settings, now = examination.settings, present()
    used = certificates_of(settings).server()
    if used is None:
        missing = "no certificate for EAP and RadSec: run sallyport cert init"
        yield problem(missing) if settings.radsec_bind or settings.eap_certificate else ok(missing)
        return
    chain, authorities = read_certificates(used.certificate_file), _authorities(used)
    flaws = [*_of_server(chain, authorities, used.certificate_file, now), *_of_key(chain[0], used.key_file)]
    for each in authorities:
        flaws += of_time(f"{used.ca_file}: {common_name(each)}", each.not_valid_before_utc, each, now)
    if used.crl_file is not None:
        flaws += _of_list(used.crl_file, now, chain[0])
    if used.ca_file is not None:
        flaws += _of_their_lists(used.ca_file, authorities, now)
    issued = _newest_of_clients(CertificateFolder(settings.data_dir))
    flaws += _of_clients(issued, now)
    if used.ca_file is None:
        missing = "no authority for the certificates of clients: set eap_ca, or run sallyport cert init"
        flaws.append(problem(f"RadSec does not start: {missing}") if settings.radsec_bind else ok(missing))
    names = ", ".join(host_names(chain[0]))
    yield ok(f"{used.certificate_file}: {names}, until {chain[0].not_valid_after_utc:%Y-%m-%d}")
    yield from flaws
    yield from _of_realms(issued, examination, now)


def check_server_certificates(examination: Examination) -> Iterator[Finding]:
    """Check the server certificates of the domains."""
    for domain in examination.domains:
        found = examination.line.run("/ad/ListServerCertificates", domain=str(domain["domainId"]))
        for each in entries(found["certificates"]):
            name = f"{domain['domainName']}: server certificate {each['realm'] or 'of the domain'}"
            faults = each["warnings"] if isinstance(each["warnings"], list) else []
            if not each["usable"]:
                yield problem(f"{name}: the key cannot be read; run sallyport cert add")
            yield from (warning(f"{name}: {fault}; run sallyport cert check, then cert add") for fault in faults)
            if each["usable"] and not faults:
                yield ok(f"{name}: until {str(each['expires'])[:10]}")


def check_profiles(examination: Examination) -> Iterator[Finding]:
    """Check that the files of network profiles can be made, and the certificate that signs them. At most MAX_PROFILES
    profiles are looked at."""
    line, looked_at, flaws = examination.line, 0, list[Finding]()
    for domain in examination.domains:
        scope = str(domain["domainId"])
        for each in line.listed("/ad/ListProfiles", "profiles", domain=scope) if looked_at < MAX_PROFILES else ():
            looked_at += 1
            why = line.run("/ad/ShowProfile", {"name": each["name"]}, domain=scope)["problem"]
            if why:
                text = f"profile {each['name']} has no files: {why}; sallyport profile set changes it"
                flaws.append(warning(f"{domain['domainName']}: {text}"))
    if looked_at:
        yield ok(f"{counted(looked_at, 'network profile')}, {len(flaws)} without files")
    yield from flaws
    if examination.settings.profile_certificate is not None:
        yield from of_signing(examination.settings.profile_certificate, present())


def of_signing(path: Path, now: datetime) -> Iterator[Finding]:
    """Check the certificates that sign network profiles. Devices show a profile as not verified after their end."""
    for each in read_certificates(path):
        yield from of_time(f"profile_certificate {path}: {common_name(each)}", each.not_valid_before_utc, each, now)


def _authorities(used: Credentials) -> list[x509.Certificate]:
    return [] if used.ca_file is None else read_certificates(used.ca_file)


def _of_server(
    chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate], path: Path, now: datetime
) -> Iterator[Finding]:
    own = chain[0]
    yield from of_time(str(path), own.not_valid_before_utc, own, now)
    if own.not_valid_after_utc - own.not_valid_before_utc > MAX_VALIDITY:
        yield warning(
            f"{path} is valid for more than {MAX_VALIDITY.days} days: Apple's systems reject it; "
            "run sallyport cert renew"
        )
    if not host_names(own):
        yield problem(
            f"{path} has no host name as subject alternative name: Android and Apple's systems reject "
            "it; renew it with a host name"
        )
    if not _holds(own, x509.ExtendedKeyUsage, lambda usage: ExtendedKeyUsageOID.SERVER_AUTH in usage, absent=False):
        yield problem(f"{path} has no extended key usage serverAuth: Windows rejects it; renew it with serverAuth")
    if not _holds(own, x509.KeyUsage, lambda usage: usage.digital_signature, absent=True):
        yield problem(f"{path} lacks the key usage digitalSignature, which TLS needs; renew it with digitalSignature")
    key = own.public_key()
    if isinstance(key, rsa.RSAPublicKey) and key.key_size > MAX_BITS:
        yield warning(
            f"{path}: the RSA key has {key.key_size} bits: each handshake delays other logins; renew it with a key on "
            f"P-256, or of at most {MAX_BITS} bits"
        )
    for each in chain:
        yield from _of_strength(path, each)
    for lower, upper in pairwise(chain):
        if not _signed(lower, upper):
            yield problem(
                f"{path}: {common_name(upper)} follows {common_name(lower)}, but has not signed it;"
                " put the server's certificate first, and each signer after the certificate that it has signed"
            )
    if len(chain) == 1 and not _signed(own, own) and not any(_signed(own, each) for each in authorities):
        yield warning(
            f"{path} contains no chain: supplicants cannot find the certificate's authority; append the authority's "
            "certificates to it"
        )


def _of_strength(path: Path, certificate: x509.Certificate) -> Iterator[Finding]:
    key, digest = certificate.public_key(), certificate.signature_hash_algorithm
    if (isinstance(key, rsa.RSAPublicKey) and key.key_size < 2048) or (
        isinstance(key, ec.EllipticCurvePublicKey) and key.key_size < 256
    ):
        yield problem(
            f"{path}: the key of {common_name(certificate)} has {key.key_size} bits: too few; 2048 are enough"
        )
    if digest is not None and digest.name in WEAK:
        yield problem(f"{path}: {common_name(certificate)} is signed with {digest.name}; have it signed with SHA-256")


def _of_key(certificate: x509.Certificate, path: Path) -> Iterator[Finding]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield problem(f"{path} has mode {mode:04o}: other users can read it; chmod 600")
    try:
        own = load_pem_private_key(path.read_bytes(), None).public_key()
    except (ValueError, TypeError):
        yield problem(f"{path} holds no private key in PEM without a password; decrypt it: openssl pkey -in FILE")
        return
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if own.public_bytes(*form) != certificate.public_key().public_bytes(*form):
        yield problem(f"{path} is not the key of the certificate; set the key that belongs to the certificate")


def _of_list(path: Path, now: datetime, own: x509.Certificate) -> Iterator[Finding]:
    found = read_list(path)
    if found.issuer == own.issuer and found.get_revoked_certificate_by_serial_number(own.serial_number) is not None:
        yield problem("the server's certificate was revoked: sallyport cert renew creates a new one with a new key")
    ends = found.next_update_utc
    if ends is not None and ends <= now:
        yield problem(
            f"{path} expired at {ends:%Y-%m-%d}: all client certificates are rejected; run sallyport cert renew"
        )
    elif ends is not None and ends - now < SOON:
        yield warning(f"{path} expires at {ends:%Y-%m-%d}: run sallyport cert renew")


def _of_their_lists(path: Path, authorities: Sequence[x509.Certificate], now: datetime) -> Iterator[Finding]:
    """Check the revocation lists of external authorities. Such an authority usually publishes a new list each week."""
    lists = {each.issuer: each.next_update_utc for each in read_lists(path)}
    for issuer, ends in lists.items():
        if ends is not None and ends <= now:
            name = issuer.rfc4514_string()
            yield problem(
                f"{path}: the revocation list of {name} expired at {ends:%Y-%m-%d}: clients of this authority are "
                "rejected; fetch the new list"
            )
    for each in authorities if lists else ():
        if each.subject not in lists:
            yield warning(
                f"{path} has revocation lists, but none of {common_name(each)}: clients of this authority are "
                "rejected; append the list"
            )


def _newest_of_clients(folder: CertificateFolder) -> dict[str, Issued]:
    if not folder.ca.exists():
        return {}
    return {each.name: each for each in folder.issued() if each.kind == CLIENT and not each.revoked}


def _of_realms(issued: Mapping[str, Issued], examination: Examination, now: datetime) -> Iterator[Finding]:
    """If there are several domains, report users whose certificates have no realm. The service rejects the EAP-TLS
    logins of these users, because it cannot find their domain."""
    if len(examination.domains) < 2:
        return
    peers = {each["tlsName"] for each in examination.clients}
    for name, each in issued.items():
        is_users = "@" not in name and name.lower() not in peers and not host_names(each.certificate)
        if is_users and each.state(now) == "valid":
            yield warning(
                f"the certificate of {name} has no realm, but there are several domains: EAP-TLS logins with it are "
                f"rejected; run sallyport cert issue {shlex.quote(f'{name}@REALM')}"
            )


def _of_clients(issued: Mapping[str, Issued], now: datetime) -> Iterator[Finding]:
    """Report clients whose newest certificate has expired or expires soon."""
    for name, each in issued.items():
        ends = each.certificate.not_valid_after_utc
        if ends - now < SOON:
            word = "expired" if ends <= now else "expires"
            yield warning(f"the certificate of {name} {word} at {ends:%Y-%m-%d}: run sallyport cert renew '{name}'")


def of_time(name: str, begins: datetime, certificate: x509.Certificate, now: datetime) -> Iterator[Finding]:
    """Check the validity period of a certificate."""
    ends = certificate.not_valid_after_utc
    if ends <= now:
        yield problem(f"{name} expired at {ends:%Y-%m-%d}: renew it")
    elif begins > now:
        yield problem(f"{name} is not valid before {begins:%Y-%m-%d %H:%M} UTC; set the clock, or wait")
    elif ends - now < SOON:
        yield warning(f"{name} expires at {ends:%Y-%m-%d}: renew it")


def _signed(lower: x509.Certificate, upper: x509.Certificate) -> bool:
    try:
        lower.verify_directly_issued_by(upper)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _holds(
    certificate: x509.Certificate, kind: type[x509.ExtensionType], test: Callable[..., bool], *, absent: bool
) -> bool:
    """Return whether an extension of a certificate passes a test. kind: the type of the extension. If the certificate
    does not have the extension, return `absent`."""
    try:
        return test(certificate.extensions.get_extension_for_class(kind).value)
    except x509.ExtensionNotFound:
        return absent
