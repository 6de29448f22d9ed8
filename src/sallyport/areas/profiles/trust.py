"""What a device must know of the server: the names in its certificate, and the authority that issued it."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from sallyport.areas.profiles.profile import HOST, MAX_ANCHORS, Anchor, Profile, Trust
from sallyport.base.bounded import BoundedMap
from sallyport.base.errors import Conflict, Invalid, StartError
from sallyport.certs.authority import common_name, host_names
from sallyport.certs.credentials import Credentials
from sallyport.certs.folder import present, read_certificates
from sallyport.outgoing.errors import PemError
from sallyport.outgoing.pem import certificates, certificates_pem
from sallyport.radius.eap.server_certificate import ServerCertificate

_MAX_NAME_LENGTH: Final = 64
MAX_KNOWN: Final = 256
"""Maximum number of results in memory. The signatures of many long chains take a second to verify."""


def checked_anchors(pem: str, field: str) -> str:
    """Return the certificates of authorities in a PEM text, encoded again. Raises Invalid about `field`.

    Call this function in a worker thread.
    """
    try:
        found = certificates(pem)
        if len(found) > MAX_ANCHORS:
            raise PemError(f"must have at most {MAX_ANCHORS} certificates")
        return certificates_pem(pem)
    except PemError as error:
        raise Invalid.about(f"{field} {error}", field) from None


@dataclass(frozen=True, slots=True)
class _Authorities:
    """The authorities of the files, with their certificates, and hints on them."""

    anchors: Sequence[Anchor]
    certificates: Sequence[x509.Certificate]
    warnings: Sequence[str] = ()


class ServerTrust:
    """Reads what devices must know of the server.

    credentials: a function that returns the present files of the installation's server certificate, or None without
    one. certificates: a function that returns the server certificates of a domain by realm, or None. own_authority: the
    file with the authority that `sallyport cert init` made. now: the present time.
    """

    def __init__(
        self,
        credentials: Callable[[], Credentials | None],
        certificates: Callable[[int], Mapping[str, ServerCertificate] | None],
        own_authority: Path,
        now: Callable[[], datetime] = present,
    ) -> None:
        self._credentials = credentials
        self._certificates = certificates
        self._own_authority = own_authority
        self._now = now
        self._known = BoundedMap[Hashable, _Authorities | str](MAX_KNOWN)

    def of(self, profile: Profile) -> Trust:
        """Return the names and authorities for the files of a profile. Call this function in a worker thread, by one
        thread at a time.

        They are those of all server certificates of the domain, because some supplicants send another realm than that
        of the profile, or none. Raises Conflict if there is no certificate, if a name or the authority is not known, or
        if no authority of the profile issued a certificate of a chain.
        """
        chains, files = self._chains(profile.domain_id), self._credentials()
        key = (profile.anchors, tuple(map(tuple, chains)), files and files.stamp)
        found = self._known.get(key)
        if found is None:
            try:
                found = self._read(profile.anchors, chains)
            except Conflict as error:
                found = str(error)
            self._known.put(key, found, profile.domain_id)
        if isinstance(found, str):
            raise Conflict(found)
        own = list(dict.fromkeys(name for chain in chains for name in _names(chain)))
        names = profile.server_names or own
        if not names:
            raise Conflict("the server's certificate has no DNS name: set serverNames")
        return Trust(names, found.anchors, [*self._warnings(chains, names), *self._warnings_of_anchors(found)])

    def _read(self, anchors: str, chains: Sequence[Sequence[x509.Certificate]]) -> _Authorities:
        if not anchors:
            roots = dict.fromkeys(map(self._root, chains))
            return _Authorities([_anchor(each) for each in roots], list(roots))
        given = x509.load_pem_x509_certificates(anchors.encode())
        issued = [[any(_issued(each, link) for link in chain) for each in given] for chain in chains]
        if not any(map(any, issued)):
            raise Conflict(
                "none of the anchors issued the server's certificate or one of its chain: set anchors to the authority "
                "that did"
            )
        missing = [
            f"devices will refuse the server's certificate with {_label(chain)}: none of the anchors issued it"
            for chain, of_chain in zip(chains, issued, strict=True)
            if not any(of_chain)
        ]
        spare = [
            f"the authority {_name(each)} in anchors did not issue a present certificate of the server: devices will "
            "trust it too"
            for number, each in enumerate(given)
            if not any(of_chain[number] for of_chain in issued)
        ]
        return _Authorities([_anchor(each) for each in given], given, [*missing, *spare])

    def _warnings(self, chains: Sequence[Sequence[x509.Certificate]], names: Sequence[str]) -> Iterator[str]:
        """Yield hints on the certificates of the server that devices would refuse because of a name or the time."""
        now = self._now()
        for chain in chains:
            if not set(_names(chain)) & set(names):
                yield (
                    f"devices will refuse the server's certificate with {_label(chain)}: serverNames has none of its "
                    "names"
                )
            if chain[0].not_valid_after_utc < now:
                yield f"devices will refuse the server's certificate with {_label(chain)}: it has expired"

    def _warnings_of_anchors(self, found: _Authorities) -> Iterator[str]:
        yield from found.warnings
        now = self._now()
        for each in found.certificates:
            if each.not_valid_after_utc < now:
                yield f"the authority {_name(each)} has expired"

    def _chains(self, domain_id: int) -> list[Sequence[x509.Certificate]]:
        """Return the chains that the server may send to devices of a domain."""
        of_domain = self._certificates(domain_id) or {}
        chains = list[Sequence[x509.Certificate]](each.chain for each in of_domain.values())
        files = None if "" in of_domain else self._credentials()
        if files is not None:
            try:
                chains.append(read_certificates(files.certificate_file))
            except StartError:
                raise Conflict("the server's certificate for EAP cannot be read: run `sallyport cert list`") from None
        if not chains:
            raise Conflict("the server has no certificate for EAP: run `sallyport cert init` first")
        return chains

    def _root(self, chain: Sequence[x509.Certificate]) -> x509.Certificate:
        """Return the root of a chain. It is in the chain itself, or in the files of the installation."""
        top, files = _top(chain), self._credentials()
        known = [self._own_authority, *([files.ca_file] if files is not None and files.ca_file is not None else [])]
        roots = [*chain, *(each for path in known if path.exists() for each in _readable(path))]
        found = [each for each in roots if _issued(each, each) and (_issued(each, top) or each == top)]
        if found:
            # A renewed root has the name and the key of its predecessor.
            now = self._now()
            return max(found, key=lambda each: (each.not_valid_before_utc <= now, each.not_valid_after_utc))
        raise Conflict(
            "the root of the server's certificate is not in its files: set anchors to the certificate of the authority"
        )


def _names(chain: Sequence[x509.Certificate]) -> list[str]:
    """Return the DNS names of the server in a chain, in lower case."""
    names = (name.lower() for name in host_names(chain[0]))
    return [each for each in names if HOST.fullmatch(each)]


def _label(chain: Sequence[x509.Certificate]) -> str:
    """Return the names of a server certificate for a hint."""
    return ", ".join(_names(chain)) or "no DNS name"


def _top(chain: Sequence[x509.Certificate]) -> x509.Certificate:
    """Return the last certificate of a chain, in whatever order the chain has its certificates."""
    top, *rest = chain
    while upper := next((each for each in rest if each != top and _issued(each, top)), None):
        top = upper
        rest.remove(upper)
    return top


def _issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Return whether a certificate has the name and the signature of an issuer."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _readable(path: Path) -> list[x509.Certificate]:
    try:
        return read_certificates(path)
    except StartError:
        return []


def _name(certificate: x509.Certificate) -> str:
    name = "".join(each for each in common_name(certificate) if each.isprintable())[:_MAX_NAME_LENGTH]
    return name or "Authority"


def _anchor(certificate: x509.Certificate) -> Anchor:
    return Anchor(
        _name(certificate),
        certificate.public_bytes(Encoding.DER),
        certificate.public_bytes(Encoding.PEM).decode(),
        certificate.fingerprint(hashes.SHA1()).hex(),  # noqa: S303  Windows names certificates so
    )
