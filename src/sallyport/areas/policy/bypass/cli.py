"""`sallyport bypass`: the stations of MAC authentication bypass."""

from collections.abc import Iterator
from typing import Final, TextIO

import click

from sallyport.areas.policy.bypass.bodies import MOST, AddBypassStation, ListBypassStations
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.fields import field_argument, option, options, pass_body
from sallyport.shell.options import Group, in_domain, json_form

COLUMNS: Final = ("station", "name", "addedAt")


@click.group(cls=Group, first=("add", "list"))
def bypass() -> None:
    """MAC authentication bypass: stations that are admitted by their MAC address."""


@bypass.command()
@field_argument("station", "stations", nargs=-1)
@in_domain
@option(AddBypassStation, "name", help="Name for all stations, such as `printers, 2nd floor`.")
@click.option(
    "--file",
    type=click.File(encoding="utf-8"),
    help="File with a line `ADDRESS` or `ADDRESS,NAME` for each station; `-` reads standard input.",
)
@pass_body
def add(line: CommandLine, body: Row, *, domain: str, file: TextIO | None) -> None:
    """Add stations by MAC address, in any notation. A station that is already listed gets the new name."""
    name, given = str(body.get("name", "")), body.get("station")
    wanted: dict[str, list[JSON]] = {name: given} if isinstance(given, list) else {}
    for address, own in _lines(file):
        wanted.setdefault(own or name, []).append(address)
    if not wanted:
        raise click.UsageError("give the MAC addresses as STATIONS, or a file with --file")
    for label, addresses in wanted.items():
        for at in range(0, len(addresses), MOST):
            line.run("/ad/AddBypassStation", {"station": addresses[at : at + MOST], "name": label}, domain=domain)
    line.note(f"{counted(sum(map(len, wanted.values())), 'station')} added to {domain}")


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
    line.print_rows(line.listed("/ad/ListBypassStations", "stations", body, domain=domain), COLUMNS, form)


def _lines(file: TextIO | None) -> Iterator[tuple[str, str]]:
    """Yield each address in a file, with its name. Empty lines, and lines that begin with #, are skipped."""
    for text in file or ():
        address, _, name = text.partition(",")
        if address.strip() and not address.startswith("#"):
            yield address.strip(), name.strip()
