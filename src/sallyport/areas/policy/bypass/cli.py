"""`sallyport bypass`: the stations of MAC authentication bypass."""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Final, TextIO, cast

import click

from sallyport.areas.policy.bypass.bodies import MAX_STATIONS, AddBypassStation, ListBypassStations, ListUnknownStations
from sallyport.areas.policy.bypass.files import (
    EXPORTED,
    FILE_COLUMNS,
    message_with_line,
    parts_of,
    split_tags,
    stations_of,
)
from sallyport.areas.policy.bypass.vendors import FILE, compact
from sallyport.areas.users.accounts.bodies import in_a_cell
from sallyport.base.errors import Invalid, StartError
from sallyport.base.tags import as_texts
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, entries
from sallyport.shell.fields import field_argument, field_option, option, options, pass_body
from sallyport.shell.files import read_rows, source
from sallyport.shell.options import Group, InputFile, Time, in_domain, json_form

COLUMNS: Final = ("station", "name", "vlan", "role", "tags", "hasPsk", "until", "lastSeen", "addedAt")
LIST: Final = "/ad/ListBypassStations"
UNKNOWN: Final = ("station", "vendor", "randomised", "ssid", "port", "deviceName", "outcome", "requests", "lastSeen")
GENERATE: Final = "generate"
KEYS: Final = ("station", "psk")
UNTIL: Final = Time(1, "a time such as 90d, 12h or 2027-11-23, or an empty text for no end", allows_empty=True)


@click.group(cls=Group, first=("add", "list", "unknown", "import", "export"))
def bypass() -> None:
    """MAC authentication bypass: stations that are admitted by their MAC address."""


@bypass.command()
@field_argument("station", "stations", nargs=-1)
@in_domain
@option(AddBypassStation, "name", help="Name for all stations, such as `printers, 2nd floor`.")
@option(AddBypassStation, "vlan", metavar="NUMBER|NAME")
@options(AddBypassStation, "role", "tags")
@field_option(
    "psk",
    "--psk",
    "psk",
    expose_value=True,
    metavar="FILE|-|generate",
    help="File with the pre-shared key of the stations; - reads it from standard input. An empty file removes the key. "
    "`generate` makes a new key for each station, and prints them once.",
)
@option(AddBypassStation, "until", type=UNTIL, metavar="TIME", help=f"End of the entry: {UNTIL.accepted}.")
@click.option(
    "--file",
    type=click.File(encoding="utf-8"),
    help="File with a line `ADDRESS` or `ADDRESS,NAME` for each station; `-` reads standard input.",
)
@json_form
@pass_body
def add(line: CommandLine, body: Row, *, domain: str, file: TextIO | None, psk: str | None, form: Form | None) -> None:
    """Add stations by MAC address, in any notation. A station that is already listed gets the new name, and the values
    of the given options."""
    if psk == GENERATE:
        body["generatePsk"] = True
    elif psk is not None:
        body["psk"] = {"hex": _key(line, psk, file).hex()}
    name, given = str(body.get("name", "")), body.get("station")
    wanted: dict[str, list[JSON]] = {name: given} if isinstance(given, list) else {}
    for address, own in _lines(file):
        wanted.setdefault(own or name, []).append(address)
    if not wanted:
        raise click.UsageError("give the MAC addresses as STATIONS, or a file with --file")
    keys = _added(line, body, wanted, domain)
    first = next(keys, None)
    if first is not None:  # they are printed also if a later request fails
        line.print_rows(chain([first], keys), KEYS, form or "csv")
    elif form:
        line.print_rows((), KEYS, form)
    line.note(f"{counted(sum(map(len, wanted.values())), 'station')} added to {domain}")


def _added(line: CommandLine, body: Row, wanted: Mapping[str, Sequence[JSON]], domain: str) -> Iterator[Row]:
    """Add stations by name, and yield each new pre-shared key."""
    for label, addresses in wanted.items():
        for at in range(0, len(addresses), MAX_STATIONS):
            part: Row = {**body, "station": list(addresses[at : at + MAX_STATIONS]), "name": label}
            yield from entries(line.run("/ad/AddBypassStation", part, domain=domain)["keys"])


@bypass.command()
@field_argument("station", "stations", nargs=-1, required=True)
@in_domain
@pass_body
def remove(line: CommandLine, body: Row, *, domain: str) -> None:
    """Remove stations from the list. If one of them is not listed, none is removed."""
    line.note(str(line.run("/ad/DeleteBypassStation", body, domain=domain)["message"]))


@bypass.command("list")
@in_domain
@options(ListBypassStations, "search")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the stations of a domain."""
    line.print_rows(line.listed(LIST, "stations", body, domain=domain), COLUMNS, form)


@bypass.command()
@in_domain
@options(ListUnknownStations, "search")
@json_form
@pass_body
def unknown(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the stations that have asked for admission by their MAC address and are not on the list, the last seen
    first."""
    rows = line.listed("/ad/ListUnknownStations", "stations", body, domain=domain)
    line.print_rows(rows, UNKNOWN, form)


@bypass.command()
@click.argument("files_", metavar="FILES...", type=InputFile(), nargs=-1, required=True)
@click.pass_obj
def vendors(line: CommandLine, *, files_: tuple[Path, ...]) -> None:
    """Read the vendors of MAC addresses from CSV files of the IEEE: oui.csv, mam.csv and oui36.csv. They replace the
    vendors from former files. Lists then show the vendor of each station."""
    with ExitStack() as opened:
        try:
            found = compact([opened.enter_context(each.open(encoding="utf-8-sig", newline="")) for each in files_])
        except (OSError, ValueError, csv.Error) as error:
            raise StartError(f"{', '.join(map(str, files_))}: {error}") from None
    path = line.settings().data_dir / FILE
    try:
        new = path.with_name(f"{FILE}.new")
        new.write_text("".join(f"{each}\n" for each in found), encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    line.note(f"{counted(len(found), 'vendor')} written to {path}")


@bypass.command("import")
@source
@in_domain
@click.pass_obj
def import_(line: CommandLine, *, file: Path, domain: str) -> None:
    """Add stations from a CSV or JSON file in the format of `bypass export`, or change those that are listed. A value
    that the file does not have is kept. A value that is not valid ends the import; earlier lines may be imported."""
    rows = read_rows(file, FILE_COLUMNS)
    try:
        split_tags(rows)
    except ValueError as error:
        raise StartError(f"{file}: {error}") from None
    for part in parts_of(rows):
        try:
            line.run("/ad/ImportBypassStations", {"stations": stations_of(part)}, domain=domain)
        except Invalid as error:
            raise StartError(f"{file}: {message_with_line(error, part)}") from None
    line.note(f"{counted(len(rows), 'station')} imported to {domain}")


@bypass.command()
@in_domain
@json_form
@click.pass_obj
def export(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """Export the stations of a domain as CSV or JSON, without pre-shared keys."""
    rows = line.listed(LIST, "stations", domain=domain)
    if form is None:
        rows = ({**row, "tags": in_a_cell(as_texts(cast(dict[str, str], row["tags"])))} for row in rows)
    line.print_rows(rows, EXPORTED, form or "csv")


def _key(line: CommandLine, source: str, file: TextIO | None) -> bytes:
    """Read a pre-shared key from a file or from standard input. file: the file with the stations."""
    if source != "-":
        try:
            return Path(source).read_bytes().rstrip(b"\r\n")
        except OSError as error:
            raise StartError(f"--psk: {source}: {error.strerror}") from error
    if file is sys.stdin:
        raise click.UsageError("--psk and --file cannot both read standard input")
    return line.read_secret("Pre-shared key")


def _lines(file: TextIO | None) -> Iterator[tuple[str, str]]:
    """Yield each address in a file, with its name. Empty lines, and lines that begin with #, are skipped."""
    for text in file or ():
        address, _, name = text.partition(",")
        if address.strip() and not address.startswith("#"):
            yield address.strip(), name.strip()
