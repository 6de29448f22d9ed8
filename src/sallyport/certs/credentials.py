"""The certificate files that the service uses. Files in the settings take precedence over files in the data
directory."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sallyport.certs.folder import CertificateFolder

LOOK_S: Final = 0.02
"""Minimum time in seconds between two checks of the files. Each EAP login asks for them, and a check takes 8 µs."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The PEM files of a TLS server.

    certificate_file: the certificate and its chain. key_file: the private key of the certificate. ca_file: the
    authorities of peers' certificates, and possibly revocation lists; None if the server does not authenticate peers by
    certificates. crl_file: a separate revocation list. stamp: a value that changes when a file changes. A listener
    loads the files again when the stamp has changed.
    """

    certificate_file: Path
    key_file: Path
    ca_file: Path | None
    crl_file: Path | None = None
    stamp: tuple[int, ...] = ()


class Certificates:
    """The certificate files in use.

    certificate, key, ca: see `use`. look_s: the minimum time in seconds between two checks of the files.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        ca: Path | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        self._folder = CertificateFolder(data_dir)
        self._look_s = look_s
        self.use(certificate, key, ca)

    def use(self, certificate: Path | None, key: Path | None, ca: Path | None) -> None:
        """Use these files in place of the files of the data directory.

        If `certificate` is set and `ca` is None, the data directory does not need to have an authority. Without the
        authority, peers are not authenticated by certificates.
        """
        folder = self._folder
        self._certificate = certificate or folder.server
        self._key = key or folder.server_key
        self._ca = ca or folder.ca
        self._crl = None if ca else folder.crl
        self._shown = [self._certificate, self._key]
        self._files = [*self._shown, *(path for path in (self._ca, self._crl) if path is not None)]
        self._may_stand_alone = certificate is not None and ca is None
        self._looked_at = -math.inf
        self._found: Credentials | None = None

    def server(self) -> Credentials | None:
        """Return the files as the last check has found them, or None if a file was missing. If no file has changed, the
        same object is returned as before. The method checks only the status of the files, and does not read the
        files."""
        now = time.monotonic()
        if now >= self._looked_at + self._look_s:
            self._looked_at = now
            self._found = self._look()
        return self._found

    def _look(self) -> Credentials | None:
        alone = self._may_stand_alone and not self._ca.exists()
        try:
            status = [path.stat() for path in (self._shown if alone else self._files)]
        except OSError:
            return None
        stamp = tuple([part for each in status for part in (each.st_ino, each.st_mtime_ns, each.st_size)])
        if self._found is not None and stamp == self._found.stamp:
            return self._found
        ca, crl = (None, None) if alone else (self._ca, self._crl)
        return Credentials(self._certificate, self._key, ca, crl, stamp)
