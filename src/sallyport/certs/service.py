"""Which certificate the service shows, and whose it takes: files of the settings, else those of the data directory."""

from pathlib import Path

from sallyport.base.config import Settings
from sallyport.certs.directory import Directory
from sallyport.certs.model import Credentials


class Certificates:
    """The files in use. certificate, key, ca: own ones, in the place of those of the data directory. An own certificate
    does without an authority, where none is named and the data directory has none: it is for those of clients."""

    def __init__(
        self, data_dir: Path, *, certificate: Path | None = None, key: Path | None = None, ca: Path | None = None
    ) -> None:
        directory = Directory(data_dir)
        self._certificate = certificate or directory.server
        self._key = key or directory.server_key
        self._ca = ca or directory.ca
        self._crl = None if ca else directory.crl
        self._shown = [self._certificate, self._key]
        self._files = [*self._shown, *(path for path in (self._ca, self._crl) if path is not None)]
        self._may_stand_alone = certificate is not None and ca is None
        self._now: Credentials | None = None

    @classmethod
    def of(cls, settings: Settings) -> "Certificates":
        """Those that the settings name."""
        own = {"certificate": settings.eap_certificate, "key": settings.eap_key, "ca": settings.eap_ca}
        return cls(settings.data_dir, **own)

    def server(self) -> Credentials | None:
        """The files as they are now, the same object while they are the same; None where one of them is missing. It
        costs a look at each, no reading: each login by EAP begins with it."""
        alone = self._may_stand_alone and not self._ca.exists()
        try:
            looks = [path.stat() for path in (self._shown if alone else self._files)]
        except OSError:
            return None
        stamp = tuple([part for each in looks for part in (each.st_ino, each.st_mtime_ns, each.st_size)])
        if self._now is None or stamp != self._now.stamp:
            ca, crl = (None, None) if alone else (self._ca, self._crl)
            self._now = Credentials(self._certificate, self._key, ca, crl, stamp)
        return self._now
