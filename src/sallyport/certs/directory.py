"""`certs/` in the data directory: the authority, the server's certificate, the clients', and everything ever signed.

    ca.pem  ca.key            the authority
    crl.pem                   what it has taken back
    server.pem  server.key    the service's certificate with the authority's behind it, and its key
    clients/NAME.pem  .key    each client's, as server.pem
    issued/SERIAL.pem         every certificate that was ever signed: taking a client's back means all that it has

A file is replaced as a whole, and a key is kept: a renewal changes one file, so that no reader combines a certificate
with the key of another one. Only a revoked certificate of the server gets a new key. A lock serializes the commands.
"""

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from sallyport.base import disk
from sallyport.base.errors import Conflict, NotFound, StartError
from sallyport.base.text import fold
from sallyport.certs.authority import LIFE, Authority, checked_name, common_name, host_names, new_key, taken_back

FOLDER = "certs"
SERVER = "server"
CLIENT = "client"
_LIST = re.compile(b"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that was signed here. name: its common name. kind: `server` or `client`."""

    certificate: x509.Certificate
    kind: str
    revoked: bool

    @property
    def name(self) -> str:
        """Whose it is."""
        return common_name(self.certificate)

    def state(self, now: datetime) -> str:
        """valid, expired or revoked."""
        if self.revoked:
            return "revoked"
        return "expired" if self.certificate.not_valid_after_utc <= now else "valid"


class Directory:
    """The authority and its certificates. Raises StartError where a file cannot be read, understood or written."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FOLDER
        self.ca = self.path / "ca.pem"
        self.crl = self.path / "crl.pem"
        self.server = self.path / "server.pem"
        self.server_key = self.path / "server.key"

    def client(self, name: str) -> Path:
        """Where a client's certificate lies; its key is beside it with the suffix .key. Invalid: no name."""
        return self.path / "clients" / f"{checked_name(name)}.pem"

    def make(self, ca_name: str, hosts: Sequence[str], now: datetime) -> None:
        """An authority and the server's certificate. Conflict: there is one. Invalid: a name that is none."""
        with self._locked(make=True):
            if self.ca.exists():
                raise Conflict(f"{self.ca} exists: cert renew makes a new certificate of the server")
            authority, key = Authority.new(ca_name, now), new_key()
            certificate = authority.server(hosts, key.public_key(), now)
            disk.write(self.path / "ca.key", _key_pem(authority.key))
            self._sign_list(authority, (), now)
            disk.write(self.server_key, _key_pem(key))
            self._keep(self.server, certificate, authority)
            disk.write(self.ca, _pem(authority.certificate))  # last: it is there, so all of it is

    def issue(self, name: str, now: datetime) -> x509.Certificate:
        """A client's first certificate, and its key. Conflict: it has one that is still good."""
        path = self.client(name)
        with self._locked():
            for each in self.issued():
                if each.kind == CLIENT and fold(each.name) == fold(name) and each.state(now) == "valid":
                    raise Conflict(f"{each.name} has a certificate: cert renew '{each.name}'")
            authority, key = self._authority(), new_key()
            certificate = authority.client(name, key.public_key(), now)
            disk.write(path.with_suffix(".key"), _key_pem(key))
            return self._keep(path, certificate, authority)

    def renew(self, name: str | None, hosts: Sequence[str], now: datetime) -> x509.Certificate:
        """A new certificate for the key of a client, or of the server; for a new key where the server's was revoked.
        hosts: the server's names; none keeps them. NotFound: there is none to renew. Conflict: the client's was
        revoked."""
        path = self.server if name is None else self.client(name)
        with self._locked():
            old, authority, revoked = self._newest(path, name), self._authority(), self._revoked()
            is_gone = old.serial_number in {each.serial_number for each in revoked}
            if name is None:
                another = new_key() if is_gone else None
                key = _public_key(old, path) if another is None else another.public_key()
                certificate = authority.server(hosts or host_names(old), key, now)
                if another is not None:
                    disk.write(self.server_key, _key_pem(another))
            elif is_gone:
                raise Conflict(f"the certificate of {name} was revoked: cert revoke '{name}' for all, then cert issue")
            else:
                certificate = authority.client(name, _public_key(old, path), now)
            if name is None or self._list_grows_old(now):
                self._sign_list(authority, revoked, now)
            return self._keep(path, certificate, authority)

    def _newest(self, path: Path, name: str | None) -> x509.Certificate:
        """The certificate in use, or where its files were taken away, the last one that was signed for the name; None:
        the server's. NotFound."""
        if path.exists():
            return read_certificates(path)[0]
        kind = SERVER if name is None else CLIENT
        found = [each.certificate for each in self.issued() if each.kind == kind and name in (None, each.name)]
        if not found:
            raise NotFound(f"{path} does not exist, nor was one made before: there is nothing to renew")
        return found[-1]

    def revoke(self, wanted: str, now: datetime) -> list[x509.Certificate]:
        """Take back all certificates of a client, whose name may be written in any case as a user's may, or the one of
        a serial number in hex. NotFound."""
        with self._locked():
            authority, revoked = self._authority(), self._revoked()
            gone = {each.serial_number for each in revoked}
            serial = wanted.replace(":", "").lower().lstrip("0")
            found = [
                each.certificate
                for each in self._all(gone)
                if (each.kind == CLIENT and fold(each.name) == fold(wanted))
                or f"{each.certificate.serial_number:x}" == serial
            ]
            if not found:
                raise NotFound(f"no certificate of {wanted}, by name or serial number")
            fresh = [each for each in found if each.serial_number not in gone]
            self._sign_list(authority, [*revoked, *(taken_back(each.serial_number, now) for each in fresh)], now)
            return found

    def issued(self) -> list[Issued]:
        """Every certificate that was signed here, by name, oldest first. NotFound: there is no authority."""
        self._must_exist()
        found = self._all({each.serial_number for each in self._revoked()})
        return sorted(found, key=lambda each: (each.kind, each.name, each.certificate.not_valid_before_utc))

    def ca_pem(self) -> str:
        """Return the authority's certificate, which peers install. NotFound."""
        self._must_exist()
        return _pem(read_certificates(self.ca)[0]).decode()

    def _must_exist(self) -> None:
        try:
            self.ca.stat()
        except FileNotFoundError:
            raise NotFound(f"{self.ca} does not exist: sallyport cert init makes an authority") from None
        except OSError as error:
            raise StartError(f"{self.ca}: {error.strerror}") from error

    def _authority(self) -> Authority:
        self._must_exist()
        return Authority(read_certificates(self.ca)[0], read_key(self.path / "ca.key"))

    def _keep(self, path: Path, certificate: x509.Certificate, authority: Authority) -> x509.Certificate:
        """Write a certificate and its authority: on first use, Android trusts only the certificates that it sees."""
        disk.write(self.path / "issued" / f"{certificate.serial_number:x}.pem", _pem(certificate))
        disk.write(path, _pem(certificate) + _pem(authority.certificate))
        return certificate

    def _all(self, revoked: set[int]) -> list[Issued]:
        files = (self.path / "issued").glob("*.pem")
        certificates = [read_certificates(path)[0] for path in files]
        return [Issued(each, _kind(each), each.serial_number in revoked) for each in certificates]

    def _revoked(self) -> list[x509.RevokedCertificate]:
        return list(read_list(self.crl)) if self.crl.exists() else []

    def _list_grows_old(self, now: datetime) -> bool:
        """Return whether the list is so old that signing it again is worth a reconnect of the peers."""
        ends = read_list(self.crl).next_update_utc if self.crl.exists() else None
        return ends is None or ends - now < LIFE / 2

    def _sign_list(self, authority: Authority, revoked: Sequence[x509.RevokedCertificate], now: datetime) -> None:
        number = 1
        if self.crl.exists():
            number += read_list(self.crl).extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
        disk.write(self.crl, authority.revocations(revoked, number, now).public_bytes(Encoding.PEM))

    @contextmanager
    def _locked(self, *, make: bool = False) -> Iterator[None]:
        if make:
            for folder in (self.path, self.path / "clients", self.path / "issued"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            self._must_exist()
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StartError(f"{self.path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def present() -> datetime:
    """The present in whole seconds, which is all that a certificate can say."""
    return datetime.now(UTC).replace(microsecond=0)


def read_certificates(path: Path) -> list[x509.Certificate]:
    """The certificates in a PEM file, at least one. StartError."""
    try:
        return x509.load_pem_x509_certificates(_read(path))
    except ValueError as error:
        raise StartError(f"{path}: no certificate in PEM") from error


def read_key(path: Path) -> rsa.RSAPrivateKey:
    """The private key in a PEM file. StartError."""
    try:
        key = load_pem_private_key(_read(path), None)
    except (ValueError, TypeError) as error:
        raise StartError(f"{path}: no private key in PEM") from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise StartError(f"{path} was not made here")
    return key


def read_list(path: Path) -> x509.CertificateRevocationList:
    """The revocation list in a PEM file. StartError."""
    try:
        return x509.load_pem_x509_crl(_read(path))
    except ValueError as error:
        raise StartError(f"{path}: no revocation list in PEM") from error


def read_lists(path: Path) -> list[x509.CertificateRevocationList]:
    """The revocation lists in a PEM file, whatever else it holds. StartError."""
    try:
        return [x509.load_pem_x509_crl(each) for each in _LIST.findall(_read(path))]
    except ValueError as error:
        raise StartError(f"{path}: a revocation list in it cannot be read") from error


def _kind(certificate: x509.Certificate) -> str:
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    return SERVER if ExtendedKeyUsageOID.SERVER_AUTH in usage else CLIENT


def _public_key(certificate: x509.Certificate, path: Path) -> rsa.RSAPublicKey:
    key = certificate.public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        raise StartError(f"{path} was not made here")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
