"""Which certificate the service shows, and whose it takes: files of the settings, else those of the data directory."""

from pathlib import Path

from sallyport.base.config import Settings
from sallyport.certs.directory import Directory
from sallyport.certs.model import Credentials


class Certificates:
    """The files in use. certificate, key, ca: own ones, in the place of those of the data directory."""

    def __init__(
        self, data_dir: Path, *, certificate: Path | None = None, key: Path | None = None, ca: Path | None = None
    ) -> None:
        directory = Directory(data_dir)
        self._certificate = certificate or directory.server
        self._key = key or directory.server_key
        self._ca = ca or directory.ca
        self._crl = None if ca else directory.crl

    @classmethod
    def of(cls, settings: Settings) -> "Certificates":
        """Those that the settings name."""
        own = {"certificate": settings.eap_certificate, "key": settings.eap_key, "ca": settings.eap_ca}
        return cls(settings.data_dir, **own)

    def server(self) -> Credentials | None:
        """The files as they are now; None where one of them is missing. It costs a look at each, no reading."""
        stamp: list[int] = []
        for path in (self._certificate, self._key, self._ca, self._crl):
            if path is not None:
                try:
                    status = path.stat()
                except OSError:
                    return None
                stamp += (status.st_ino, status.st_mtime_ns, status.st_size)
        return Credentials(self._certificate, self._key, self._ca, self._crl, tuple(stamp))
