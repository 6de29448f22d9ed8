"""The certificates that the settings select, and when the certificates and revocation lists in files and in stored
configurations expire."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from cryptography import x509

from sallyport.base.errors import StartError
from sallyport.certs.credentials import Certificates, Credentials
from sallyport.certs.folder import read_list, read_lists
from sallyport.settings.settings import Settings

BEGIN: Final = "-----BEGIN CERTIFICATE-----"


def certificates_of(settings: Settings) -> Certificates:
    """Return the certificates that the settings or `sallyport cert` have set up."""
    certificate, key, ca = files_of(settings)
    return Certificates(settings.data_dir, certificate=certificate, key=key, ca=ca)


def files_of(settings: Settings) -> tuple[Path | None, Path | None, Path | None]:
    """Return the files of certificate, key and authority that the settings name."""
    return settings.eap_certificate, settings.eap_key, settings.eap_ca


class FileExpiries:
    """The expiry of the certificate files that the service uses.

    api: the certificate of the HTTP listener, or None; a change applies to the next read. server: a function that
    returns the files for EAP and RadSec, or None. A file is parsed again only after it has changed.
    """

    def __init__(self, api: Path | None, server: Callable[[], Credentials | None]) -> None:
        self.api = api
        self._server = server
        self._known: dict[str, tuple[tuple[int, ...], float | None]] = {}

    def read(self) -> dict[tuple[str, ...], float]:
        """Return the time of the first expiry in each file, in seconds since 1970, by (use,). Files that cannot be read
        are absent. The uses: `api`, `eap` (EAP and RadSec), `authority` (of clients' certificates), `revocation_list`
        (of the own authority), `external_revocation_list`."""
        used = list(self._used())
        found = {(use,): self._first_expiry(use, path, read) for use, path, read in used}
        return {use: ends for use, ends in found.items() if ends is not None}

    def _used(self) -> Iterator[tuple[str, Path, Callable[[Path], float | None]]]:
        if self.api is not None:
            yield "api", self.api, _of_certificates
        files = self._server()
        if files is None:
            return
        yield "eap", files.certificate_file, _of_certificates
        if files.ca_file is not None:
            yield "authority", files.ca_file, _of_certificates
            yield "external_revocation_list", files.ca_file, _of_lists
        if files.crl_file is not None:
            yield "revocation_list", files.crl_file, _of_list

    def _first_expiry(self, use: str, path: Path, read: Callable[[Path], float | None]) -> float | None:
        try:
            status = path.stat()
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            known = self._known.get(use)
            if known is None or known[0] != stamp:
                known = self._known[use] = stamp, read(path)
        except (OSError, StartError):
            return None
        return known[1]


def first_expiry(pem: str) -> float | None:
    """Return the earliest time at which a certificate in a PEM text expires, in seconds since 1970. Return None if the
    text contains no certificate, or one that cannot be read."""
    try:
        found = x509.load_pem_x509_certificates(pem.encode()) if BEGIN in pem else []
    except ValueError:
        return None
    return min((each.not_valid_after_utc.timestamp() for each in found), default=None)


def pem_texts(value: object) -> Iterator[str]:
    """Yield each text with certificates in a JSON value, such as the settings of a directory."""
    if isinstance(value, str) and BEGIN in value:
        yield value
    parts: Iterable[object] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in parts:
        yield from pem_texts(each)


def _of_certificates(path: Path) -> float | None:
    return first_expiry(path.read_text(encoding="utf-8", errors="replace"))


def _of_list(path: Path) -> float | None:
    ends = read_list(path).next_update_utc
    return None if ends is None else ends.timestamp()


def _of_lists(path: Path) -> float | None:
    times = [each.next_update_utc for each in read_lists(path)]
    return min((each.timestamp() for each in times if each is not None), default=None)
