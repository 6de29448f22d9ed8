"""The files that a TLS server works with."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Credentials:
    """PEM files. certificate_file: the certificate, its chain behind it. key_file: its private key. ca_file: who signs
    the peers' certificates; it may hold revocation lists too; None: nobody is known by a certificate. crl_file: a
    revocation list apart.

    stamp: another one as soon as a file is another one: whoever has loaded them then loads them again.
    """

    certificate_file: Path
    key_file: Path
    ca_file: Path | None
    crl_file: Path | None = None
    stamp: tuple[int, ...] = ()
