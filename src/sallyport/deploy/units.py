"""The service's units for systemd: their text, and the drop-ins that the settings require (systemd.exec(5))."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from sallyport.host.systemd import ADMIN_UNITS, BACKUP_UNIT, CONFIG_DIR, DATA_DIR, SOCKET, UNIT, UNITS
from sallyport.settings.settings import Settings

DROP_IN: Final = "50-settings.conf"
HIDDEN: Final = (Path("/home"), Path("/root"), Path("/run/user"), Path("/tmp"), Path("/var/tmp"))  # noqa: S108
"""The directories that the options ProtectHome= and PrivateTmp= of the unit hide from the service."""
_TEMPLATES: Final = Path(__file__).with_name("systemd")
PRIVATE: Final = frozenset({"passfile", "sslkey"})
"""The files of a database URL that no other user may read. Otherwise libpq does not use them."""
_DATABASE_FILES: Final = (*sorted(PRIVATE), "sslcert", "sslrootcert")
_PROGRAM: Final = "/opt/sallyport/bin/sallyport"
_CAPABILITY: Final = "CAP_NET_BIND_SERVICE"
_PRIVILEGED: Final = 1024
_DATABASE: Final = ("After=postgresql.service", "StartLimitIntervalSec=0")
"""Lines of the unit for a service that uses PostgreSQL. The service starts after a PostgreSQL server on this machine,
and tries again until the server answers."""


def unit(name: str, program: Path) -> str:
    """Return the text of a unit. program: the absolute path of `sallyport`."""
    return (_TEMPLATES / name).read_text(encoding="utf-8").replace(_PROGRAM, _quoted(program))


def unit_paths() -> list[Path]:
    """Return the paths of the units that `server install` writes."""
    return [ADMIN_UNITS / name for name in UNITS]


def drop_in_path(name: str) -> Path:
    """Return the path of a unit's drop-in."""
    return ADMIN_UNITS / f"{name}.d" / DROP_IN


def drop_ins(settings: Settings) -> dict[Path, str]:
    """Return the text of each drop-in, by path. A drop-in grants rights that the settings require, but that the unit
    itself does not grant. The text is empty if the unit grants all required rights. The settings must contain only
    absolute paths."""
    written = [path for _, path in written_paths(settings) if not path.is_relative_to(DATA_DIR)]
    writes = [f"ReadWritePaths=-{_quoted(path)}" for path in dict.fromkeys(written)]
    binds = [f"{kind}={_CAPABILITY}" for kind in ("CapabilityBoundingSet", "AmbientCapabilities")]
    ports = [address.port for _, address, _ in settings.addresses() if 0 < address.port < _PRIVILEGED]
    unit = _DATABASE if settings.database_url else ()
    return {
        drop_in_path(UNIT): _drop_in({"Unit": unit, "Service": [*writes, *(binds if ports else [])]}),
        drop_in_path(BACKUP_UNIT): _drop_in({"Service": writes}),
        drop_in_path(SOCKET): _drop_in({"Socket": _socket(settings)}),
    }


def _socket(settings: Settings) -> list[str]:
    """Return the lines of the socket unit for the addresses of the settings. The list is empty if the unit itself has
    these addresses. Each worker has a UDP socket of its own at each address."""
    wanted, usual = _listening(settings), _listening(Settings())
    if wanted == usual:
        return []
    return ["ListenStream=", *wanted, *(["ReusePort=yes"] if settings.workers > 1 else [])]  # empty: none of the unit


def _listening(settings: Settings) -> list[str]:
    return [
        f"{'ListenDatagram' if kind == socket.SOCK_DGRAM else 'ListenStream'}={address}"
        for _, address, kind in settings.addresses()
        if address.port
        for _ in range(settings.workers if kind == socket.SOCK_DGRAM else 1)
    ]


def read_paths(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yield each setting that names a file which the service must read: the name of the setting, and the path of the
    file."""
    files = ("tls_certificate", "tls_key", "eap_certificate", "eap_key", "eap_ca", "profile_certificate", "profile_key")
    for name in (*files, "dictionaries"):
        path = getattr(settings, name)
        if path is not None:
            yield name, path
    for name, path in database_files(settings):
        yield f"database, {name}", path


def database_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yield each file that the URL of a PostgreSQL database names: the name of the parameter in the URL, and the path
    of the file."""
    given = parse_qs(urlsplit(settings.database_url).query)
    for name in _DATABASE_FILES:
        for value in given.get(name, ()):
            if value != "system":  # sslrootcert=system stands for the authorities of the system
                yield name, DATA_DIR / value


def written_paths(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yield each setting that requires a directory in which the service can write: the name of the setting, and the
    path of the directory."""
    yield "data_dir", settings.data_dir
    yield "database", settings.database_path.parent
    for outlet in settings.event_outlets:
        if outlet.startswith("file:"):
            yield "event_outlets", Path(urlsplit(outlet).path).parent


def is_hidden(path: Path) -> bool:
    """Return whether the unit hides a path from the service."""
    return any(path.is_relative_to(directory) for directory in HIDDEN)


def _drop_in(sections: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a drop-in with the lines of each section. Return an empty text if there are no lines."""
    written = [line for name, lines in sections.items() if lines for line in (f"[{name}]", *lines)]
    if not written:
        return ""
    head = f"# Made by `sallyport server install` from the settings in {CONFIG_DIR}.\n"
    return head + "".join(f"{line}\n" for line in written)


def _quoted(path: Path) -> str:
    """Return a path as one word, quoted for a unit (systemd.syntax(7))."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"' if " " in text or "'" in text else text
