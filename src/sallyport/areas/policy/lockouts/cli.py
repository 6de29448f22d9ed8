"""`sallyport lockout`: users and stations that are locked out after failures."""

from collections.abc import Iterator

import click

from sallyport.areas.policy.lockouts.bodies import Unlock
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, domains
from sallyport.shell.fields import option, pass_body
from sallyport.shell.options import Group, any_domain, in_domain, json_form

COLUMNS = ("domain", "kind", "name", "since", "until", "failures")


@click.group(cls=Group)
def lockout() -> None:
    """Lock-outs: users and stations that are locked out after too many failures."""


@lockout.command("list")
@any_domain
@json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str | None, form: Form | None) -> None:
    """List users and stations that are locked out now."""
    line.print_rows((row for each in domains(line, domain) for row in _lockouts(line, each)), COLUMNS, form)


@lockout.command()
@in_domain
@option(Unlock, "userName", "--user")
@option(Unlock, "station")
@pass_body
def remove(line: CommandLine, body: Row, *, domain: str) -> None:
    """Unlock a user with the stations of the user's failures, or a station."""
    if len(body) != 1:
        raise click.UsageError("give either --user or --station")
    done = line.run("/ad/Unlock", body, domain=domain)
    if done["message"] != "unlocked":
        line.note(str(done["message"]))
        return
    line.note(f"{body.get('userName') or body['station']} is unlocked")
    if "userName" in body and isinstance(done["stations"], list) and done["stations"]:
        line.note(f"unlocked too, because the user failed there: {', '.join(map(str, done['stations']))}")


def _lockouts(line: CommandLine, domain: Row) -> Iterator[Row]:
    for each in line.listed("/ad/ListLockouts", "lockouts", domain=str(domain["domainId"])):
        yield {"domain": domain["domainName"], **each}
