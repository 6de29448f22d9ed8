"""The folder `certs/` in the data directory. It contains the authority, the certificates of the server and the
clients, and every certificate that was ever signed.

    ca.pem  ca.key            the authority's certificate and key
    crl.pem                   the authority's revocation list
    server.pem  server.key    the service's certificate and key; optionally followed by the authority's certificate
    clients/NAME.pem  .key    each client's certificate followed by the authority's certificate, and the client's key
    issued/SERIAL.pem         every certificate that was signed; `revoke` needs all certificates of a client

A file is replaced as a whole. A renewal keeps the key, and changes only the file of the certificate. If both files
changed, a reader could combine the old certificate with the new key. The server gets a new key only when its
certificate was revoked, or on demand; a reader that finds the wrong key keeps the previous certificate until the next
look. A lock serializes the commands.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from sallyport.base.clock import Clock, from_us, now_us
from sallyport.base.errors import Conflict, NotFound, StartError
from sallyport.base.text import fold
from sallyport.certs.authority import (
    LIFE,
    Authority,
    KeyKind,
    PublicKey,
    SigningKey,
    checked_name,
    common_name,
    host_names,
    kind_of,
    new_key,
    taken_back,
)
from sallyport.host import disk

FOLDER = "certs"
SERVER = "server"
CLIENT = "client"
_LIST = re.compile(b"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that this authority has signed. kind: whether the certificate is for a `server` or a `client`."""

    certificate: x509.Certificate
    kind: str
    revoked: bool

    @property
    def name(self) -> str:
        """The common name of the certificate's subject."""
        return common_name(self.certificate)

    def state(self, now: datetime) -> str:
        """Return `valid`, `expired` or `revoked`, at the time `now`."""
        if self.revoked:
            return "revoked"
        return "expired" if self.certificate.not_valid_after_utc <= now else "valid"


class CertificateFolder:
    """The authority and its certificates. The methods raise StartError if a file cannot be read, parsed or written.

    write: a function that writes a file.
    """

    def __init__(self, data_dir: Path, write: Callable[[Path, bytes], None] = disk.write) -> None:
        self._write = write
        self.path = data_dir / FOLDER
        self.ca = self.path / "ca.pem"
        self.crl = self.path / "crl.pem"
        self.server = self.path / "server.pem"
        self.server_key = self.path / "server.key"

    def staged(self, write: Callable[[Path, bytes], None]) -> "CertificateFolder":
        """Return a view of the folder. The view passes each changed file to `write`, and does not store the file."""
        return CertificateFolder(self.path.parent, write)

    def files(self) -> dict[str, bytes]:
        """Return the content of all files. The keys are the paths of the files, relative to the folder."""
        found = sorted(path for end in ("pem", "key") for path in self.path.rglob(f"*.{end}"))
        return {str(path.relative_to(self.path)): _read(path) for path in found}

    def adopt(self, files: Mapping[str, bytes]) -> None:
        """Write each file whose content differs from the stored file, or that is not stored yet.

        files: the content of the files by their paths, relative to the folder. A key is written before its
        certificate. The authority's certificate is written last.
        """
        with self._locked(make=True):
            for name in sorted(files, key=lambda name: (name == self.ca.name, name)):
                path = self.path / name
                if not path.exists() or _read(path) != files[name]:
                    self._write(path, files[name])

    def client(self, name: str) -> Path:
        """Return the path of a client's certificate. Raises Invalid if the name cannot be used.

        The key is in the same folder, in a file with the suffix .key.
        """
        return self.path / "clients" / f"{checked_name(name)}.pem"

    def make(
        self,
        ca_name: str,
        hosts: Sequence[str],
        now: datetime,
        kind: KeyKind = KeyKind.P256,
        *,
        with_root: bool = False,
    ) -> None:
        """Create an authority and a certificate for the server.

        kind: the kind of both keys. with_root: whether the server sends the authority's certificate; see `_keep`.

        Raises Conflict if there is an authority already. Raises Invalid if a name cannot be used.
        """
        with self._locked(make=True):
            if self.ca.exists():
                raise Conflict(
                    f"{self.ca} exists already; to issue a new certificate of the server: sallyport cert renew"
                )
            authority, key = Authority.new(ca_name, now, kind), new_key(kind)
            certificate = authority.server(hosts, key.public_key(), now)
            self._write(self.path / "ca.key", _key_pem(authority.key))
            self._sign_list(authority, (), now)
            self._write(self.server_key, _key_pem(key))
            self._keep(self.server, certificate, authority, with_root=with_root)
            self._write(self.ca, _pem(authority.certificate))  # written last: if this file exists, all others do

    def issue(self, name: str, now: datetime) -> x509.Certificate:
        """Issue a certificate with a new key to a client. Raises Conflict if the client already has a valid
        certificate."""
        path = self.client(name)
        with self._locked():
            for each in self.issued():
                if each.kind == CLIENT and fold(each.name) == fold(name) and each.state(now) == "valid":
                    raise Conflict(
                        f"{each.name} already has a certificate; to renew it: sallyport cert renew '{each.name}'"
                    )
            authority, key = self._authority(), new_key()
            certificate = authority.client(name, key.public_key(), now)
            self._write(path.with_suffix(".key"), _key_pem(key))
            return self._keep(path, certificate, authority, with_root=True)

    def renew(
        self,
        name: str | None,
        hosts: Sequence[str],
        now: datetime,
        new: KeyKind | None = None,
        *,
        with_root: bool | None = None,
    ) -> x509.Certificate:
        """Issue a new certificate for the server or a client, with the existing key. If the server's certificate was
        revoked, the server gets a new key of the same kind.

        name: the client's name, or None for the server's certificate. hosts: the new names of the server; if empty, the
        names do not change. new: the kind of a new key for the server, or None. with_root: whether the server sends the
        authority's certificate; None if this does not change.

        Raises NotFound if there is no certificate to renew. Raises Conflict if the client's certificate was revoked.
        """
        path = self.server if name is None else self.client(name)
        with self._locked():
            old, authority, revoked = self._newest(path, name), self._authority(), self._revoked()
            is_gone = old.serial_number in {each.serial_number for each in revoked}
            if name is None:
                key = _public_key(old, path)
                another = new_key(new or kind_of(key)) if is_gone or new is not None else None
                key = key if another is None else another.public_key()
                certificate = authority.server(hosts or host_names(old), key, now)
                if another is not None:
                    self._write(self.server_key, _key_pem(another))
            elif is_gone:
                raise Conflict(
                    f"the certificate of {name} was revoked; to issue a new one: sallyport cert revoke '{name}', "
                    "then sallyport cert issue"
                )
            else:
                certificate = authority.client(name, _public_key(old, path), now)
            if name is None or self._list_grows_old(now):
                self._sign_list(authority, revoked, now)
            if with_root is None:
                with_root = name is not None or (path.exists() and len(read_certificates(path)) > 1)
            return self._keep(path, certificate, authority, with_root=with_root)

    def _newest(self, path: Path, name: str | None) -> x509.Certificate:
        """Return the current certificate of the server or of a client. If the file of the certificate is missing,
        return the last certificate that was signed for the name.

        name: the client's name, or None for the server's certificate. Raises NotFound.
        """
        if path.exists():
            return read_certificates(path)[0]
        kind = SERVER if name is None else CLIENT
        found = [each.certificate for each in self.issued() if each.kind == kind and name in (None, each.name)]
        if not found:
            raise NotFound(f"{path} does not exist, and no certificate was issued before: there is nothing to renew")
        return found[-1]

    def revoke(self, wanted: str, now: datetime) -> list[x509.Certificate]:
        """Revoke all certificates of a client, or one certificate. Return the revoked certificates. Raises NotFound.

        wanted: the name of the client, in upper or lower case, or the serial number of the certificate in hex.
        """
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
                raise NotFound(
                    f"no certificate has the name or serial number {wanted}; to list them: sallyport cert show"
                )
            fresh = [each for each in found if each.serial_number not in gone]
            self._sign_list(authority, [*revoked, *(taken_back(each.serial_number, now) for each in fresh)], now)
            return found

    def issued(self) -> list[Issued]:
        """Return every certificate that this authority has signed. The certificates are ordered by kind, then by name,
        and then by age, the oldest first. Raises NotFound if there is no authority."""
        self._must_exist()
        found = self._all({each.serial_number for each in self._revoked()})
        return sorted(found, key=lambda each: (each.kind, each.name, each.certificate.not_valid_before_utc))

    def ca_pem(self) -> str:
        """Return the authority's certificate in PEM, to be installed on peers. Raises NotFound."""
        self._must_exist()
        return _pem(read_certificates(self.ca)[0]).decode()

    def _must_exist(self) -> None:
        try:
            self.ca.stat()
        except FileNotFoundError:
            raise NotFound(f"{self.ca} does not exist; to create an authority: sallyport cert init") from None
        except OSError as error:
            raise StartError(f"{self.ca}: {error.strerror}") from error

    def _authority(self) -> Authority:
        self._must_exist()
        return Authority(read_certificates(self.ca)[0], read_key(self.path / "ca.key"))

    def _keep(
        self, path: Path, certificate: x509.Certificate, authority: Authority, *, with_root: bool
    ) -> x509.Certificate:
        """Store a new certificate in the folder `issued`. Also replace the file at `path`. with_root: whether this file
        gets the certificate of the authority too.

        A server that sends the root takes one or two packets more for each login. Supplicants that have the root
        ignore it. Only an Android device that connects without a configured authority uses it (trust on first use,
        Android 13 and newer): it then stores the root. Without the root, Android 14 and newer store the fingerprint of
        the server's certificate instead, and ask the user again after each renewal. The first builds of Android 13
        refuse the network. Source: AOSP, packages/modules/Wifi, InsecureEapNetworkHandler.java.
        """
        self._write(self.path / "issued" / f"{certificate.serial_number:x}.pem", _pem(certificate))
        self._write(path, _pem(certificate) + (_pem(authority.certificate) if with_root else b""))
        return certificate

    def _all(self, revoked: set[int]) -> list[Issued]:
        files = (self.path / "issued").glob("*.pem")
        certificates = [read_certificates(path)[0] for path in files]
        return [Issued(each, _kind(each), each.serial_number in revoked) for each in certificates]

    def _revoked(self) -> list[x509.RevokedCertificate]:
        return list(read_list(self.crl)) if self.crl.exists() else []

    def _list_grows_old(self, now: datetime) -> bool:
        """Return whether the revocation list is so old that it must be signed again.

        The list is not signed more often, because peers reconnect after each new list.
        """
        ends = read_list(self.crl).next_update_utc if self.crl.exists() else None
        return ends is None or ends - now < LIFE / 2

    def _sign_list(self, authority: Authority, revoked: Sequence[x509.RevokedCertificate], now: datetime) -> None:
        number = 1
        if self.crl.exists():
            number += read_list(self.crl).extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
        self._write(self.crl, authority.revocations(revoked, number, now).public_bytes(Encoding.PEM))

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


def present(clock: Clock = now_us) -> datetime:
    """Return the current time in whole seconds. Times in certificates have this resolution."""
    return from_us(clock()).replace(microsecond=0)


def read_certificates(path: Path) -> list[x509.Certificate]:
    """Return the certificates of a PEM file. Raises StartError if the file cannot be read or has no certificate."""
    try:
        return x509.load_pem_x509_certificates(_read(path))
    except ValueError as error:
        raise StartError(f"{path} contains no certificate in PEM") from error


def read_key(path: Path) -> SigningKey:
    """Return the private key in a PEM file. Raises StartError."""
    try:
        key = load_pem_private_key(_read(path), None)
    except (ValueError, TypeError) as error:
        raise StartError(f"{path} contains no private key in PEM") from error
    if not isinstance(key, SigningKey):
        raise StartError(f"{path} has neither an RSA nor an EC key: use the files that sallyport cert created")
    return key


def read_list(path: Path) -> x509.CertificateRevocationList:
    """Return the revocation list in a PEM file. Raises StartError."""
    try:
        return x509.load_pem_x509_crl(_read(path))
    except ValueError as error:
        raise StartError(f"{path} contains no revocation list in PEM") from error


def read_lists(path: Path) -> list[x509.CertificateRevocationList]:
    """Return the revocation lists in a PEM file. The file may contain other objects. Raises StartError."""
    try:
        return [x509.load_pem_x509_crl(each) for each in _LIST.findall(_read(path))]
    except ValueError as error:
        raise StartError(f"{path} contains a revocation list that cannot be read") from error


def _kind(certificate: x509.Certificate) -> str:
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    return SERVER if ExtendedKeyUsageOID.SERVER_AUTH in usage else CLIENT


def _public_key(certificate: x509.Certificate, path: Path) -> PublicKey:
    key = certificate.public_key()
    if not isinstance(key, PublicKey):
        raise StartError(f"{path} has neither an RSA nor an EC key: use the files that sallyport cert created")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: SigningKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
