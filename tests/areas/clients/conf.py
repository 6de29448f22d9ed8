"""Helpers for the tests that import clients.conf: they write files and read clients."""

from pathlib import Path

from sallyport.areas.clients.freeradius import Entries, Entry, read

GOOD = "8fT2kQ9zLw4XbN7c"


def write(folder: Path, text: str | bytes, name: str = "clients.conf") -> Path:
    """Write these octets to a file. A text is encoded in Latin-1."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("latin-1"))
    return path


def client(name: str = "nas", *, address: str = "ipaddr = 192.0.2.1", secret: str = GOOD, more: str = "") -> str:
    """Return a client section."""
    return f"client {name} {{\n{address}\nsecret = {secret}\n{more}\n}}\n"


def only(folder: Path, text: str | bytes, **environ: str) -> Entry:
    """Return the only client of a file."""
    entries = read(write(folder, text), environ=environ)
    assert entries.unusable == ()
    (entry,) = entries
    return entry


def names(entries: Entries) -> list[str]:
    """Return the names of the clients, in order."""
    return [entry.name for entry in entries]
