"""`sallyport bypass`: the stations of MAC authentication bypass."""

from collections.abc import Iterator, Sequence
from typing import Final, TextIO

import click

from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.options import Group

COLUMNS: Final = ("station", "name", "addedAt")
BATCH: Final = 1000
"""Maximum number of stations in one request to the service."""

_domain = click.option("--domain", required=True, help="The domain's name or domainId.")


@click.group(cls=Group, first=("add", "list"))
def bypass() -> None:
    """MAC authentication bypass: stations that are admitted by their MAC address."""


@bypass.command()
@click.argument("stations", nargs=-1)
@_domain
@click.option("--name", default="", help="Name for all stations, such as `printers, 2nd floor`.")
@click.option(
    "--file",
    type=click.File(encoding="utf-8"),
    help="File with a line `ADDRESS` or `ADDRESS,NAME` for each station; `-` reads standard input.",
)
@click.pass_obj
def add(line: CommandLine, *, stations: Sequence[str], domain: str, name: str, file: TextIO | None) -> None:
    """Add stations by MAC address, in any notation. A station that is already listed gets the new name."""
    wanted = {name: list(stations)} if stations else {}
    for address, own in _lines(file):
        wanted.setdefault(own or name, []).append(address)
    if not wanted:
        raise click.UsageError("give the MAC addresses as STATIONS, or a file with --file")
    for label, addresses in wanted.items():
        for at in range(0, len(addresses), BATCH):
            body: Row = {"station": list[JSON](addresses[at : at + BATCH]), "name": label}
            line.run("/ad/AddBypassStation", body, domain=domain)
    line.note(f"{counted(sum(map(len, wanted.values())), 'station')} added to {domain}")


@bypass.command()
@click.argument("stations", nargs=-1, required=True)
@_domain
@click.pass_obj
def remove(line: CommandLine, *, stations: Sequence[str], domain: str) -> None:
    """Remove stations from the list. If one of them is not listed, none is removed."""
    done = line.run("/ad/DeleteBypassStation", {"station": list[JSON](stations)}, domain=domain)
    line.note(str(done["message"]))


@bypass.command("list")
@_domain
@click.option("--search", default="", help="Show only stations whose address or name contains this text.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.pass_obj
def list_(line: CommandLine, *, domain: str, search: str, form: Form | None) -> None:
    """List the stations of a domain."""
    line.print_rows(line.listed("/ad/ListBypassStations", "stations", {"search": search}, domain=domain), COLUMNS, form)


def _lines(file: TextIO | None) -> Iterator[tuple[str, str]]:
    """Yield each address in a file, with its name. Empty lines, and lines that begin with #, are skipped."""
    for text in file or ():
        address, _, name = text.partition(",")
        if address.strip() and not address.startswith("#"):
            yield address.strip(), name.strip()
