"""`sallyport lockout`: users and stations that are locked out after failures."""

from collections.abc import Iterator

import click

from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, domains
from sallyport.shell.options import Group

COLUMNS = ("domain", "kind", "name", "since", "until", "failures")


@click.group(cls=Group)
def lockout() -> None:
    """Lock-outs: users and stations that are locked out after too many failures."""


@lockout.command("list")
@click.option("--domain", help="Show only entries of this domain (name or domainId).")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.pass_obj
def list_(line: CommandLine, *, domain: str | None, form: Form | None) -> None:
    """List users and stations that are locked out now."""
    line.print_rows((row for each in domains(line, domain) for row in _lockouts(line, each)), COLUMNS, form)


@lockout.command()
@click.option("--domain", required=True, help="The domain's name or domainId.")
@click.option("--user", help="User to unlock.")
@click.option("--station", help="Station to unlock: a Calling-Station-Id, or a MAC address in any notation.")
@click.pass_obj
def remove(line: CommandLine, *, domain: str, user: str | None, station: str | None) -> None:
    """Unlock a user with the stations of the user's failures, or a station."""
    if (user is None) is (station is None):
        raise click.UsageError("give either --user or --station")
    done = line.run("/ad/Unlock", {"userName": user, "station": station}, domain=domain)
    if done["message"] != "unlocked":
        line.note(str(done["message"]))
        return
    line.note(f"{user or station} is unlocked")
    if user is not None and isinstance(done["stations"], list) and done["stations"]:
        line.note(f"unlocked too, because the user failed there: {', '.join(map(str, done['stations']))}")


def _lockouts(line: CommandLine, domain: Row) -> Iterator[Row]:
    for each in line.listed("/ad/ListLockouts", "lockouts", domain=str(domain["domainId"])):
        yield {"domain": domain["domainName"], **each}
