"""Open log files, find their format, and yield their logins in the order of the lines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Final, TextIO

from sallyport.areas.shadow.logs.freeradius import DetailReader, LineReader
from sallyport.areas.shadow.logs.ise import IseReader
from sallyport.areas.shadow.logs.nps import NpsReader
from sallyport.areas.shadow.logs.record import Frame, LogReader, OldLogin, Tally
from sallyport.base.errors import StartError

MAX_LINE: Final = 65_536
"""Maximum number of characters of a line. A longer line is not read."""
LOOKED_AT: Final = 200
"""Number of lines from which the format is found."""
READERS: Final[Mapping[str, Callable[[Frame], LogReader]]] = {
    "nps": NpsReader,
    "detail": DetailReader,
    "linelog": LineReader,
    "ise": IseReader,
}
"""The readers by the name of their format."""


def read_logs(
    paths: Sequence[Path], zone: tzinfo | None, tally: Tally, *, form: str = "", encoding: str = "cp1252"
) -> Iterator[OldLogin]:
    """Yield the logins in files. All files together are one log.

    zone: the time zone of times without one; None for that of this host. tally: counts what was read. form: the format,
    or empty to find it. encoding: of lines that are not UTF-8. Raises StartError if a file cannot be read, or its
    format is unknown.
    """
    readers: dict[str, LogReader] = {}
    for path in paths:
        name = form or format_of(path)
        reader = readers.setdefault(name, READERS[name](Frame(zone, tally)))
        try:
            for number, line in lines(path, encoding):
                tally.lines += 1
                place = f"{path.name}:{number}"
                if line is None:
                    tally.note_unread(place)
                    continue
                for login in reader.read(line, place):
                    tally.logins += 1
                    yield login
        except (OSError, UnicodeError) as error:
            raise StartError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    for reader in readers.values():
        for login in reader.end():
            tally.logins += 1
            yield login


def format_of(path: Path) -> str:
    """Return the format of a file by its first lines. Raises StartError."""
    try:
        for number, line in lines(path, "cp1252"):
            text = (line or "").strip()
            if text.startswith(("<Event", "<?xml", '"')) or (text[:1].isdigit() and text.count(",") >= 7):
                return "nps"
            if "CISE_" in text:
                return "ise"
            if ": Auth: " in text or (("\t" in text or "\\t" in text) and "Packet-Type=" in text):
                return "linelog"
            if (line or "").startswith("\t") and " = " in text:
                return "detail"
            if number >= LOOKED_AT:
                break
    except (OSError, UnicodeError) as error:
        raise StartError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    raise StartError(f"{path}: the format is not known from the first lines; give --format: {', '.join(READERS)}")


def lines(path: Path, encoding: str) -> Iterator[tuple[int, str | None]]:
    """Yield the lines of a file with their numbers from 1, and None for a line that is too long. A file is UTF-8 or
    UTF-16; lines that are not UTF-8 are decoded by `encoding`."""
    with path.open("rb") as octets:
        mark = octets.read(2)
    wide = mark in (b"\xff\xfe", b"\xfe\xff")
    with path.open(encoding="utf-16" if wide else "utf-8-sig", errors="replace" if wide else "surrogateescape") as file:
        number = 0
        while line := file.readline(MAX_LINE):
            number += 1
            if len(line) == MAX_LINE and not line.endswith("\n"):
                _skip(file)
                yield number, None
            elif wide or line.isascii():
                yield number, line
            else:
                yield number, _decoded(line, encoding)


def _skip(file: TextIO) -> None:
    """Skip the rest of a line."""
    while (more := file.readline(MAX_LINE)) and not more.endswith("\n"):
        pass


def _decoded(line: str, encoding: str) -> str:
    try:
        line.encode()
    except UnicodeEncodeError:
        return line.encode("utf-8", "surrogateescape").decode(encoding, "replace")
    return line
