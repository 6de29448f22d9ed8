"""`sallyport lockout`: who is locked out after failures, and the way back in."""

from collections.abc import Iterator

import click

from sallyport.base.command import CommandLine, Form
from sallyport.base.wire import Row

COLUMNS = ("domain", "kind", "name", "since", "until", "failures")


@click.group()
def lockout() -> None:
    """Lock-outs: users and stations that have failed too often."""


@lockout.command("list")
@click.option("--domain", help="Only of this domain (name or domainId).")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.pass_obj
def list_(line: CommandLine, *, domain: str | None, form: Form | None) -> None:
    """List who is locked out now."""
    domains = [(str(each["id"]), str(each["name"])) for each in line.rows("domain.list")] if domain is None else []
    wanted = domains or [(str(domain), str(domain))]
    line.print_rows((row for domain_id, name in wanted for row in _lockouts(line, domain_id, name)), COLUMNS, form)


@lockout.command()
@click.option("--domain", required=True, help="The domain's name or domainId.")
@click.option("--user", help="This user.")
@click.option("--station", help="This station (Calling-Station-Id), written in any way.")
@click.pass_obj
def remove(line: CommandLine, *, domain: str, user: str | None, station: str | None) -> None:
    """Let a user or a station in again."""
    if (user is None) is (station is None):
        raise click.UsageError("either --user or --station")
    kind, name = ("user", user) if user is not None else ("station", station)
    if not line.call("lockout.remove", domain=domain, kind=kind, name=name):
        line.note("was not locked out")


def _lockouts(line: CommandLine, domain: str, name: str) -> Iterator[Row]:
    """A domain's, a page at a time."""
    seen = 0
    while page := line.rows("lockout.list", domain=domain, offset=seen):
        yield from ({"domain": name, **each} for each in page)
        seen += len(page)
