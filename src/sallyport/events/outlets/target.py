"""Where events go, as a setting says it.

file:///var/log/sallyport/logins.jsonl      a line of JSON each, appended
unix:///run/siem.sock, tcp://siem:5170      the same over a stream
syslog+udp://siem:514                       RFC 5424 in datagrams (RFC 5426)
syslog+tcp://siem:601                       RFC 5424 with octet counting (RFC 6587 section 3.4.1)
syslog+tls://siem:6514?ca=/etc/ssl/siem.pem RFC 5424 over TLS (RFC 5425); without `ca` the system's authorities
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from sallyport.base.config import Settings
from sallyport.base.errors import ConfigError

FILES: Final = frozenset({"file", "unix"})
PORTS: Final = {"tcp": 0, "syslog+udp": 514, "syslog+tcp": 601, "syslog+tls": 6514}


@dataclass(frozen=True, slots=True)
class Target:
    """One target. scheme: as above. path: of a file or a socket. ca: file of the authorities that its TLS trusts."""

    url: str
    scheme: str
    host: str = ""
    port: int = 0
    path: Path | None = None
    ca: Path | None = None

    @property
    def is_syslog(self) -> bool:
        """Whether it takes syslog messages and not JSON."""
        return self.scheme.startswith("syslog")

    @property
    def is_counted(self) -> bool:
        """Whether a message has its length before it."""
        return self.scheme in {"syslog+tcp", "syslog+tls"}


def parse_target(text: str) -> Target:
    """Return the target of a setting. ValueError, without the text: it is none."""
    parts = urlsplit(text.strip())
    if parts.scheme in FILES:
        if parts.netloc or not parts.path.startswith("/"):
            raise ValueError("file:// and unix:// take an absolute path")
        return Target(text.strip(), parts.scheme, path=Path(parts.path))
    if parts.scheme not in PORTS:
        raise ValueError(f"an outlet begins with {', '.join(sorted(FILES | PORTS.keys()))}")
    if not parts.hostname or parts.username or parts.path not in ("", "/"):
        raise ValueError("an outlet is a host and a port")
    port = parts.port or PORTS[parts.scheme]
    if not port:
        raise ValueError("tcp:// takes a port")
    (ca,) = parse_qs(parts.query).get("ca", [""])
    if ca and parts.scheme != "syslog+tls":
        raise ValueError("ca is for syslog+tls")
    return Target(text.strip(), parts.scheme, parts.hostname, port, ca=Path(ca) if ca else None)


def targets_of(settings: Settings) -> tuple[Target, ...]:
    """All outlets of the settings. ConfigError: one is none."""
    try:
        return tuple(dict.fromkeys(map(parse_target, settings.event_outlets)))
    except ValueError as error:
        raise ConfigError(f"setting event_outlets: {error}") from None
